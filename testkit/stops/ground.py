"""A bench for rows of the table, and its drivers."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testkit.driver import Driver
from testkit.harness import RunningBench
from testkit.network.lan import Lan
from testkit.network.proxy import Link

BLOCKABLE = Path(__file__).parent / "blockable"


UNSEEN_STOPS = "--set=guard.unseen_limit = 0.0"
"""A direction with a silent sensor counts as blocked, wherever the guard is on."""


CLIENT = "driver-of-the-stops"


class Ground:
    """The bench of one suite, and the links over which a driver can connect to it."""

    def __init__(self, bench: RunningBench, stack: ExitStack) -> None:
        self.bench = bench
        self.link = stack.enter_context(Link(bench.port))
        self.lan = stack.enter_context(Lan()) if os.geteuid() == 0 else None
        codes = json.loads((bench.state / "codes.json").read_text())
        self.drive_code, self.grown_up_code = codes["drive"], codes["grown_up"]

    def driver(self, way: str) -> Driver:
        """Return a driver without a seat, connected over the named link."""
        if way == "link":
            return Driver(self.link.port, client=CLIENT)
        if way == "lan":
            assert self.lan is not None
            made = self.lan.connect(self.bench.port)
            return Driver(
                self.bench.port, client=CLIENT, code=self.drive_code, host=self.lan.near, link=made
            )
        return Driver(self.bench.port, client=CLIENT)


@contextmanager
def open_ground(
    home: Path, *options: str, kind: type[RunningBench] = RunningBench
) -> Iterator[Ground]:
    """Start a bench that is open to the LAN and whose processes can be blocked."""
    env = {"PYTHONPATH": str(BLOCKABLE)}
    bench = kind(home, "--host=0.0.0.0", UNSEEN_STOPS, *options, env=env)
    try:
        bench.wait_ready()
        with ExitStack() as stack:
            yield Ground(bench, stack)
    finally:
        bench.stop()


@dataclass
class Scene:
    """A bench with a driver at the wheel."""

    ground: Ground
    driver: Driver

    @property
    def bench(self) -> RunningBench:
        return self.ground.bench

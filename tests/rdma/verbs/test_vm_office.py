"""A drive of the bench is replicated to an office over RDMA verbs, through any break of the link.

The station's own replicator runs here. Its `rdcp` runs in the first VM, which has the store by its
share. The office is the second VM's disk. The link is Soft-RoCE, and a cable.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from testkit.base_station.stored import new_store, put
from testkit.driver import Driver, free, sit_down
from testkit.harness import RunningBench, started, wait_for
from testkit.vm.image import PIPES, image, long_marks
from testkit.vm.machine import Vm

from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.replicate import Replicator
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.sums_file import SUMS_FILE
from tests.rdma.copy.test_office import act

pytestmark = long_marks(PIPES)
OFFICE = "/root/office"
RATE = "100K"
"""Bytes a second. Slow, so that the faults hit while a session is sent."""
OUTAGE_S = 3.0
WITHIN_S = 120.0
IN_VM = """\
#!/usr/bin/env python3
import os, shlex, sys
words = [one.replace({share!r}, "/share") for one in sys.argv[1:]]
ssh = {ssh!r}
os.execvp("ssh", [*ssh, shlex.join(["/share/rdcp", "--remote-path", "/share", *words])])
"""


def driven(home: Path) -> list[Path]:
    """Return the segments that a bench has sealed of a drive."""
    with started(home, "--set=recording.segment_s = 5") as bench:
        with Driver(bench.port) as driver:
            sit_down(driver)
            free(driver)
            wait_for(lambda: len(sealed(bench)) >= 3, "no drive", 60.0)
        return sealed(bench)


def sealed(bench: RunningBench) -> list[Path]:
    return sorted((bench.state / "recordings").glob("*.mcap"))


class Machines:
    """The station's machine, with its store, and the office's, with a disk of its own."""

    def __init__(self, share: Path, home: Path) -> None:
        self.share, self.disk = share, home / "disk"
        shutil.copyfile(image(PIPES).root, self.disk)
        # The image has no journal, and a cut of the power may break its folders.
        subprocess.run(["tune2fs", "-O", "has_journal", self.disk], check=True, timeout=60)
        self.cable = home / "one", home / "two"
        one, two = self.cable
        self.station = Vm(share, "10.0.0.1", 1, (one, two))
        self.office = self._office()
        program = home / "bin" / "rdcp"
        program.parent.mkdir()
        program.write_text(IN_VM.format(share=str(share), ssh=self.station.ssh))
        program.chmod(0o755)
        self.programs = program.parent

    def wait(self) -> None:
        self.station.wait()
        self.office.wait()
        self.office.check(f"mkdir -p {OFFICE}")

    def _office(self) -> Vm:
        one, two = self.cable
        return Vm(self.share, "10.0.0.2", 1, (two, one), disk=self.disk)

    def cut(self) -> None:
        for end in self.cable:
            end.rename(f"{end}.cut")

    def mend(self) -> None:
        for end in self.cable:
            Path(f"{end}.cut").rename(end)

    def power_fails(self) -> None:
        """Cut the office's power; it comes back with the data of its disk."""
        self.office.close()
        self.cable[1].unlink(missing_ok=True)
        self.office = self._office()
        self.office.wait()

    def close(self) -> None:
        self.station.close()
        self.office.close()


@pytest.fixture
def machines(share: Path, tools_in_vms: None) -> Iterator[Machines]:
    with tempfile.TemporaryDirectory(prefix="office-") as home:
        with contextlib.closing(Machines(share, Path(home))) as both:
            both.wait()
            yield both


class Sending:
    """The replicator of one session, in the background, as often as needed."""

    def __init__(self, replicator: Replicator, machines: Machines) -> None:
        self.replicator, self.machines = replicator, machines
        self.bad: list[str] = []

    async def once(self) -> bool:
        """Replicate once; return whether the office verified all of it."""
        try:
            await self.replicator.once(True)
        except Exception as fault:
            self.bad.append(str(fault))
            return False
        self.bad += map(str, self.replicator.state.bad.values())
        return not self.replicator.state.bad

    @contextlib.asynccontextmanager
    async def under_way(self, more: int) -> AsyncIterator["asyncio.Task[bool]"]:
        """Run the block while the session is sent over verbs, after `more` further bytes have
        arrived."""
        before = await act(self.arrived)
        task = asyncio.create_task(self.once())
        for look in (self.connected, lambda: self.arrived() >= before + more):
            await seen(lambda look=look: task.done() or look())  # type: ignore[misc]
            assert not task.done(), self.bad
        yield task
        await task

    def connected(self) -> bool:
        """Return whether the office has a connected queue pair."""
        return "type RC state RTS" in self.machines.office.check("rdma resource show qp")

    def arrived(self) -> int:
        done = self.machines.office.check(f"du -sb {OFFICE} | cut -f1")
        return int(done)


async def seen(look: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not await act(look):
        assert time.monotonic() < until
        await asyncio.sleep(0.1)


async def test_drive_reaches_office_over_verbs_despite_outages(
    machines: Machines, share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{machines.programs}:{os.environ['PATH']}")
    root = share / "store"
    store, copies = new_store(root), ReplicaLog(Folder(root))
    (tmp_path / "car").mkdir()
    for one in await act(driven, tmp_path / "car"):
        put(store, one.name, one.read_bytes())
    (session,) = store.sessions()
    size, _ = store.extent(session)
    office = Rdcp(f"10.0.0.2:{OFFICE}", root, ["--rate", RATE])
    sending = Sending(Replicator(office, store, copies, act), machines)
    part = size // 8

    async with sending.under_way(part):
        machines.cut()
        await asyncio.sleep(OUTAGE_S)
        machines.mend()
        await seen(lambda: sending.arrived() > 2 * part)
        machines.office.run("pkill -KILL rd")
    assert sending.bad, "killed at the office"
    async with sending.under_way(part):
        await act(machines.power_fails)
    assert len(sending.bad) >= 2, "its power failed"
    until = time.monotonic() + WITHIN_S
    while not await sending.once():
        assert time.monotonic() < until, sending.bad

    (where,) = copies.states(session, store.listed(session))[1:]
    assert where.whole
    machines.office.check(f"cd {OFFICE}/{session} && sha256sum --quiet --strict -c {SUMS_FILE}")
    for one in store.listed(session):
        name = one.path.rpartition("/")[2]
        there = machines.office.check(f"sha256sum <{OFFICE}/{session}/{name}")
        assert there.split()[0] == one.sha256
    assert machines.office.check(f"find {OFFICE} -name '.*rdcp*'") == ""
    shutil.rmtree(root)

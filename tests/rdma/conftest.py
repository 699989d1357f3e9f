"""Runners of the pipe tools, and the tools under a storm of signals."""

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.network.lan import Lan
from testkit.network.pipes import Tools
from testkit.network.sshd import Sshd
from testkit.vm.ends import bring_tools

from tests.rdma.ends import Ends
from tests.rdma.near import Near, NearSsh, Seat, Sit

SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"


@pytest.fixture
def ends(rdma_tools: Path, tmp_path: Path) -> Iterator[Ends]:
    """Runner of rdsend and rdrecv. At the end none of their processes may be left."""
    with contextlib.closing(Ends(rdma_tools, tmp_path)) as pair:
        yield pair


@pytest.fixture(scope="session")
def tools_in_vms(rdma_tools: Path, share: Path) -> None:
    """Put the tools into the folder that VMs see as /share."""
    bring_tools(rdma_tools, share)


@pytest.fixture(scope="session")
def storm(rdma_tools: Path) -> Path:
    """The same tools, constantly interrupted by signals."""
    if not os.environ.get("RDMA_TOOLS"):
        subprocess.run(["make", "-s", "-C", str(SOURCE), "storm"], check=True)
    folders = [rdma_tools / "storm", rdma_tools / "build" / "storm"]
    return next(folder for folder in folders if folder.is_dir())


@pytest.fixture
def tools(rdma_tools: Path, sshd: Sshd, tmp_path: Path) -> Iterator[Tools]:
    """Runner of rdpipe and rdcp. At the end none of their processes may be left."""
    with contextlib.closing(Tools(rdma_tools, sshd, tmp_path)) as running:
        yield running


@pytest.fixture
def near(rdma_tools: Path, tmp_path: Path) -> Iterator[Near]:
    """Maker of runners for which each host is this machine, without an sshd."""
    numbers = itertools.count()
    with contextlib.ExitStack() as runners:

        def make(first: str = "") -> Tools:
            place = tmp_path / f"near{next(numbers)}" / "place"
            place.mkdir(parents=True)
            running = Tools(rdma_tools, NearSsh(place.parent, first), place)
            return runners.enter_context(contextlib.closing(running))

        yield make


@pytest.fixture
def sit(tools: Tools) -> Iterator[Sit]:
    """Start tools at a terminal of their own; `below` is a shell line that gets one as "$@"."""
    with contextlib.ExitStack() as seats:

        def sit_down(tool: str, *rest: str, reads: bool = True, below: str = "") -> Seat:
            words = tools.words(tool, rest)
            words = ["sh", "-c", below, "sh", *words] if below else words
            seat = Seat(words, tools.place, tools.environment, reads=reads)
            seats.callback(seat.close)
            return seat

        yield sit_down


@pytest.fixture
def lan() -> Iterator[Lan]:
    """A far host, with a cable to this one."""
    with Lan() as made:
        yield made

"""Runners of the pipe tools, and the tools under a storm of signals."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.network.sshd import Sshd
from testkit.pipes import Tools
from testkit.vm.ends import bring_tools

from tests.rdma.ends import Ends

SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"


@pytest.fixture
def ends(rdma_tools: Path, tmp_path: Path) -> Iterator[Ends]:
    """Runner of rdsend and rdrecv. At the end none of their processes may be left."""
    pair = Ends(rdma_tools, tmp_path)
    yield pair
    pair.close()


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
    running = Tools(rdma_tools, sshd, tmp_path)
    yield running
    running.close()

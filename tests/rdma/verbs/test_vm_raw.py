"""The raw stream of a drive, over RDMA verbs to a stand-in for a screen.

`fpvstation raw` decodes here, as no VM has a decoder. Its `rdpipe` runs in the first VM, and
the viewer in the second one. The link is Soft-RoCE.
"""

import hashlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from testkit.base_station.stored import new_store, put
from testkit.vm.image import PIPES, long_marks
from testkit.vm.machine import Pair, pair

from fpvcar.recordings.export.export import Report
from fpvcar.runtime.units import MB, SECOND_NS
from fpvstation.cli import decode
from fpvstation.store.store import Store
from tests.rdma.verbs.test_vm_office import driven

pytestmark = long_marks(PIPES)
EARLY_S, LATE_S = 0.5, 5.0
"""Tolerance for the whole film: the VMs are emulated, and the pipe begins while it plays."""
HOST = "10.0.2.2"
"""Address of this machine in QEMU's own network, for a VM."""
SCREEN = "/share/rdpipe -v --plain --remote-path /share 10.0.0.2:md5sum"


@pytest.fixture
def vms(share: Path, tools_in_vms: None) -> Iterator[Pair]:
    with pair(share) as both:
        yield both


class Film:
    """A store's data of a drive, decoded here: its checksum, length and pictures."""

    def __init__(self, store: Store, root: Path) -> None:
        (self.session,) = store.sessions()
        whole, self.count, self.bytes, at_ns = hashlib.md5(), 0, 0, 0
        files = [root / one.path for one in store.listed(self.session)]
        for one in decode.pictures_of(files, Report(print)):
            whole.update(one.data)
            self.count, self.bytes = self.count + 1, self.bytes + len(one.data)
            at_ns = one.at_ns
        self.md5, self.length_s = whole.hexdigest(), at_ns / SECOND_NS


class Shown(NamedTuple):
    """Status and output of the station, and of the pipe. `took_s` is the time from the first
    picture here until the last one had arrived."""

    status: int
    said: str
    pipe: "subprocess.CompletedProcess[str]"
    took_s: float


def shown(vms: Pair, root: Path, session: str) -> Shown:
    """Send a session from here, through the first VM, to the second one."""
    argv = [sys.executable, "-m", "fpvstation", "raw", f"--store={root}", session]
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(60.0)
        # Not by ssh: emulated decryption is slower than the pictures come.
        source = f"/dev/tcp/{HOST}/{listener.getsockname()[1]}"
        worker = stack.enter_context(ThreadPoolExecutor(1))
        pipe = worker.submit(vms.first.run, f"{SCREEN} <{source}", 600.0)
        way, _ = listener.accept()
        with way:
            station = stack.enter_context(
                subprocess.Popen(argv, stdout=way.fileno(), stderr=subprocess.PIPE, text=True)
            )
        assert station.stderr
        said = station.stderr.readline()
        began_s = time.monotonic()
        said += station.stderr.read()
        ended = pipe.result()
        took_s = time.monotonic() - began_s
        return Shown(station.wait(), said, ended, took_s)


def test_drive_is_shown_on_second_machine_over_verbs(vms: Pair, tmp_path: Path) -> None:
    root = tmp_path / "store"
    (tmp_path / "car").mkdir()
    store = new_store(root)
    for one in driven(tmp_path / "car"):
        put(store, one.name, one.read_bytes())
    film = Film(store, root)
    session = film.session.rpartition("/")[2]
    status, said, ended, took_s = shown(vms, root, session)
    print(
        f"{film.count} pictures, {film.length_s:.1f} s long, took {took_s:.1f} s "
        f"({film.bytes / took_s / MB:.1f} MB/s)"
    )
    assert status == ended.returncode == 0, (said, ended)
    assert ended.stderr.count("over rdma") >= 2, ended
    assert f"{film.count} pictures" in said and "640x480" in said
    assert ended.stdout.split()[0] == film.md5
    assert -EARLY_S <= took_s - film.length_s <= LATE_S

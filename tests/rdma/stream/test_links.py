"""rdsend and rdrecv on two hosts, with faults of the cable between them."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.network.lan import Lan

from tests.rdma.ends import End, Ends

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
CUT_S = 12.0
"""Time until both ends notice, at the default --timeout of 10 s."""
OUTAGE_S = 3.0


@pytest.fixture
def lan() -> Iterator[Lan]:
    with Lan() as made:
        yield made


@pytest.fixture
def ends(rdma_tools: Path, tmp_path: Path, lan: Lan) -> Iterator["Apart"]:
    pair = Apart(rdma_tools, tmp_path, lan)
    yield pair
    pair.close()


class Apart(Ends):
    """Ends on two hosts: the receiver is here, the sender on the far host."""

    def __init__(self, folder: Path, place: Path, lan: Lan) -> None:
        super().__init__(folder, place)
        self.lan = lan

    def pair(
        self, source: list[str], target: list[str], options: list[str], rate: str = "2M"
    ) -> tuple[End, End]:
        """Start and return sender and receiver."""
        receiver = self.receive(*target, options=options)
        where = ["--rate", rate, self.lan.near, str(self.port)]
        words = [str(self.folder / "rdsend"), *options, *where]
        sender = End([*self.lan.enter, *words, *source], self.place)
        self._started.append(sender)
        return sender, receiver


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def grows(path: Path, beyond: int, within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while size(path) <= beyond:
        assert time.monotonic() < until, f"{size(path)} bytes"
        time.sleep(0.02)


def begun(sender: End, within_s: float = 60.0) -> None:
    """Wait for the sender's second thread, which starts to read once the other end has proved
    itself."""
    until = time.monotonic() + within_s
    while len(os.listdir(f"/proc/{sender.pid}/task")) < 2:
        assert time.monotonic() < until, "it does not begin"
        time.sleep(0.02)


def test_cut_cable_ends_both_ends(ends: Apart) -> None:
    """Busy and idle transfers end; the producers and consumers are gone, too."""
    into = ["--", "sh", "-c", "cat > busy"]
    busy = ends.pair(["/dev/zero"], into, [])
    idle = ends.pair(["--", "sleep", "60"], ["idle"], [])
    for sender, _ in (busy, idle):
        begun(sender)
    grows(ends.place / "busy", 500_000)
    ends.lan.lose()
    since_s = time.monotonic()
    for end in (*busy, *idle):
        ended = end.ended(CUT_S + 5)
        took_s = time.monotonic() - since_s
        assert ended.status == 1, ended
        assert "nothing heard" in ended.err and "network cut" in ended.err
        assert 8.0 < took_s < CUT_S
    assert not (ends.place / "idle").exists()


def test_transfer_survives_outage(ends: Apart) -> None:
    data = os.urandom(6_000_000)
    (ends.place / "in").write_bytes(data)
    out = ends.place / "out"
    pair = ends.pair(["in"], ["--", "sh", "-c", "cat > out"], [])
    grows(out, 1_000_000)
    ends.lan.lose()
    time.sleep(0.5)  # bytes in flight have arrived
    before = size(out)
    time.sleep(OUTAGE_S - 0.5)
    assert size(out) == before < len(data)
    ends.lan.find()
    for end in pair:
        assert end.ended().status == 0
    assert out.read_bytes() == data


def receive_far(ends: Apart, *options: str) -> End:
    """Start an rdrecv on the far host; the link to it can be narrowed."""
    shown, told = os.pipe()
    words = ["--announce-fd", str(told), *options, "0", "out"]
    receiver = End(
        [*ends.lan.enter, str(ends.folder / "rdrecv"), *words], ends.place, pass_fds=[told]
    )
    ends._started.append(receiver)
    os.close(told)
    with open(shown) as lines:
        ends.port = int(lines.readline().split()[0].removeprefix("port="))
    return receiver


def test_slow_record_on_narrow_link_does_not_time_out(ends: Apart) -> None:
    """A record takes longer than the time-out, but its bytes count as activity."""
    data = os.urandom(150_000)
    (ends.place / "in").write_bytes(data)
    options = ["--timeout", "4"]
    receiver = receive_far(ends, *options)
    ends.lan.narrow(130_000, queue_bytes=20_000)
    since_s = time.monotonic()
    slow = ["sh", "-c", "head -c 999 in; sleep 1; tail -c +1000 in"]
    with subprocess.Popen(slow, stdout=subprocess.PIPE, cwd=ends.place) as made:
        sender = ends.send(stdin=made.stdout, options=options, host=ends.lan.far)
        sent, received = sender.ended(40), receiver.ended(40)
    assert (sent.status, received.status) == (0, 0), (sent.err, received.err)
    assert time.monotonic() - since_s > 6, "the link was not narrow"
    assert (ends.place / "out").read_bytes() == data


def test_failure_reason_arrives_behind_slow_data(ends: Apart) -> None:
    receiver = receive_far(ends)
    ends.lan.narrow(1_000_000, queue_bytes=20_000)
    produce = ["--", "sh", "-c", "head -c 400000 /dev/zero; sleep 0.3; exit 5"]
    since_s = time.monotonic()
    sender = ends.send(*produce, host=ends.lan.far)
    sent, received = sender.ended(), receiver.ended()
    assert time.monotonic() - since_s > 2.0, "the link was not narrow"
    assert (sent.status, received.status) == (5, 1)
    assert "producer sh failed with status 5" in received.err

"""rdsend and rdrecv on two hosts, with faults of the cable between them."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from testkit.harness import wait_for
from testkit.network.lan import Lan

from tests.rdma.ends import End, Ends

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
CUT_S = 12.0
"""Time until both ends notice, at the default --timeout of 10 s."""
OUTAGE_S = 3.0


def send_here(ends: Ends, lan: Lan, source: list[str], *target: str) -> tuple[End, End]:
    """Start a slow sender on the far host and a receiver here; return both."""
    receiver = ends.receive(*target)
    rate = ["--rate", "2M"]
    return ends.send(*source, options=rate, host=lan.near, enter=lan.enter), receiver


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def grows(path: Path, beyond: int, within_s: float = 60.0) -> None:
    wait_for(lambda: size(path) > beyond, "too few bytes came", within_s)


def begun(sender: End, within_s: float = 60.0) -> None:
    """Wait for the sender's second thread, which starts to read once the other end has proved
    itself."""
    tasks = f"/proc/{sender.pid}/task"
    wait_for(lambda: len(os.listdir(tasks)) > 1, "it does not begin", within_s)


def test_cut_cable_ends_both_ends(ends: Ends, lan: Lan) -> None:
    """Busy and idle transfers end; the producers and consumers are gone, too."""
    into = ["--", "sh", "-c", "cat > busy"]
    busy = send_here(ends, lan, ["/dev/zero"], *into)
    idle = send_here(ends, lan, ["--", "sleep", "60"], "idle")
    for sender, _ in (busy, idle):
        begun(sender)
    grows(ends.place / "busy", 500_000)
    lan.lose()
    since_s = time.monotonic()
    for end in (*busy, *idle):
        ended = end.ended(CUT_S + 5)
        took_s = time.monotonic() - since_s
        assert ended.status == 1, ended
        assert "nothing heard" in ended.err and "network cut" in ended.err
        assert 8.0 < took_s < CUT_S
    assert not (ends.place / "idle").exists()


def test_transfer_survives_outage(ends: Ends, lan: Lan) -> None:
    data = os.urandom(6_000_000)
    (ends.place / "in").write_bytes(data)
    out = ends.place / "out"
    pair = send_here(ends, lan, ["in"], "--", "sh", "-c", "cat > out")
    grows(out, 1_000_000)
    lan.lose()
    time.sleep(0.5)  # bytes in flight have arrived
    before = size(out)
    time.sleep(OUTAGE_S - 0.5)
    assert size(out) == before < len(data)
    lan.find()
    for end in pair:
        assert end.ended().status == 0
    assert out.read_bytes() == data


def test_slow_record_on_narrow_link_does_not_time_out(ends: Ends, lan: Lan) -> None:
    """A record takes longer than the time-out, but its bytes count as activity."""
    data = os.urandom(150_000)
    (ends.place / "in").write_bytes(data)
    options = ["--timeout", "4"]
    receiver = ends.receive("out", options=options, enter=lan.enter)
    lan.narrow(130_000, queue_bytes=20_000)
    since_s = time.monotonic()
    slow = ["sh", "-c", "head -c 999 in; sleep 1; tail -c +1000 in"]
    with subprocess.Popen(slow, stdout=subprocess.PIPE, cwd=ends.place) as made:
        sender = ends.send(stdin=made.stdout, options=options, host=lan.far)
        sent, received = sender.ended(40), receiver.ended(40)
    assert (sent.status, received.status) == (0, 0), (sent.err, received.err)
    assert time.monotonic() - since_s > 6, "the link was not narrow"
    assert (ends.place / "out").read_bytes() == data


def test_failure_reason_arrives_behind_slow_data(ends: Ends, lan: Lan) -> None:
    receiver = ends.receive("out", enter=lan.enter)
    lan.narrow(1_000_000, queue_bytes=20_000)
    produce = ["--", "sh", "-c", "head -c 400000 /dev/zero; sleep 0.3; exit 5"]
    since_s = time.monotonic()
    sender = ends.send(*produce, host=lan.far)
    sent, received = sender.ended(), receiver.ended()
    assert time.monotonic() - since_s > 2.0, "the link was not narrow"
    assert (sent.status, received.status) == (5, 1)
    assert "producer sh failed with status 5" in received.err

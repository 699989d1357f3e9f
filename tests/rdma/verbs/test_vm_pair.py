"""The pipe tools over RDMA verbs between two VMs: cut, slow and lossy cables."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.vm import speed
from testkit.vm.ends import RDMA, Ends
from testkit.vm.image import PIPES, long_marks
from testkit.vm.machine import Pair, pair

pytestmark = long_marks(PIPES)
CUT_S = 12.0
OUTAGE_S = 3.0
"""Longer than the queue pairs' former own time-out."""
BIG = 24 << 20


@pytest.fixture(scope="module")
def vms(share: Path, tools_in_vms: None) -> Iterator[Pair]:
    with pair(share) as both:
        yield both


@pytest.fixture
def ends(vms: Pair) -> Iterator[Ends]:
    """Ends in two VMs: the first sends, the second receives."""
    for vm in (vms.first, vms.second):
        vm.check("rm -rf /dev/shm/*; tc qdisc del dev eth1 root 2>/dev/null || true")
    both = Ends(vms.first, vms.second, limits=())
    yield both
    vms.mend()
    both.close()


def connected(ends: Ends, count: int) -> None:
    """Wait for so many connections: on a busy machine a VM is slow."""
    until = time.monotonic() + 20
    show = "rdma resource show qp | grep -c 'type RC state RTS' || true"
    while int(ends.receiver.check(show)) < count:
        assert time.monotonic() < until, "they do not connect"


def test_transfer_survives_outage_and_cut_cable_ends_both_ends(vms: Pair, ends: Ends) -> None:
    """The transfers are a file, a busy and an idle stream, at the default --timeout of 10 s."""
    ends.sender.check("head -c 8M /dev/urandom >/share/in")
    pairs = []
    for source, target in (
        (["/share/in"], "out"),
        (["/dev/zero"], "busy"),
        (["--", "sleep", "1000"], "idle"),
    ):
        receiver = ends.receive(target, options=[*RDMA, "-v"])
        sender = ends.send(*source, options=[*RDMA, "--rate", "3M", "-v"])
        pairs.append((sender, receiver))
    connected(ends, len(pairs))
    time.sleep(0.5)
    vms.cut()
    time.sleep(OUTAGE_S)
    assert all(end.process.poll() is None for pair_ in pairs for end in pair_)
    vms.mend()
    one, other = (end.ended() for end in pairs[0])
    assert one.status == other.status == 0, (one, other)
    ends.receiver.check("cmp /share/in /dev/shm/out")
    vms.cut()
    since = time.monotonic()
    for pair_ in pairs[1:]:
        for end in pair_:
            ended = end.ended()
            assert time.monotonic() - since < CUT_S
            assert ended.status == 1, ended
            assert "is the network cut?" in ended.err and "over rdma" in ended.err
    assert vms.second.check("ls /dev/shm").split() == ["out", "stdout"]


def test_chain_to_second_vm_and_back(vms: Pair, ends: Ends) -> None:
    """A chain goes from the first VM to the second and back to the first."""
    done = ends.sender.run(
        "echo hello | /share/rdpipe -v --remote-path /share"
        " 10.0.0.1:'tr a-z A-Z' 10.0.0.2:'ip -o -4 addr show eth1 >&2; rev'"
        " 10.0.0.1:'>/dev/shm/out'"
    )
    assert done.returncode == 0, done
    assert done.stderr.count("over rdma") >= 2 and "inet 10.0.0.2/" in done.stderr
    assert ends.sender.check("cat /dev/shm/out") == "OLLEH\n"


@pytest.mark.soak
def test_long_round_trip_keeps_throughput(vms: Pair, ends: Ends) -> None:
    """The delay is 10 ms each way. A protocol that waits for each answer would move one chunk
    per round trip."""
    speed.make_data(ends, BIG)
    speed.shape(vms, "delay 10ms")
    stop_and_wait = 65_536 / 0.020
    small = speed.rdsend(ends, "--chunk", "64K") / stop_and_wait
    print(f"of stop-and-wait, 64 KiB: {small:.1f}")
    assert small >= 2


def test_lossy_cable_loses_no_data(vms: Pair, ends: Ends) -> None:
    ends.sender.check("head -c 8M /dev/urandom >/dev/shm/in")
    ends.sender.check("cp /dev/shm/in /share/in")
    speed.shape(vms, "loss 0.2%")
    receiver = ends.receive("out")
    assert ends.send("in").ended().status == 0
    assert receiver.ended().status == 0
    ends.receiver.check("cmp /share/in /dev/shm/out")

"""The pipe tools over RDMA verbs between two guests: cut, slow and lossy cables."""

import json
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.ends import RDMA, Ends, bring_tools
from tests.guest.machine import Pair, pair

pytestmark = pytest.mark.e2e
CUT_S = 12.0
BIG_MIB = 32


@pytest.fixture(scope="module")
def guests(
    rdma_tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    share = tmp_path_factory.mktemp("share")
    bring_tools(rdma_tools, share)
    with pair(share) as both:
        yield both


@pytest.fixture
def ends(guests: Pair) -> Iterator[Ends]:
    """The first sends, the second receives."""
    for guest in (guests.first, guests.second):
        guest.check("rm -rf /dev/shm/*; tc qdisc del dev eth1 root 2>/dev/null || true")
    both = Ends(guests.first, guests.second)
    yield both
    guests.mend()
    both.close()


def shape(guests: Pair, how: str) -> None:
    for guest in (guests.first, guests.second):
        guest.check(f"tc qdisc replace dev eth1 root netem {how} limit 10000")


@pytest.mark.parametrize("source", [["/dev/zero"], ["--", "sleep", "1000"]])
def test_a_cut_cable_ends_both(guests: Pair, ends: Ends, source: list[str]) -> None:
    receiver = ends.receive("out", options=[*RDMA, "-v"])
    sender = ends.send(*source, options=[*RDMA, "--rate", "4M", "-v"])
    time.sleep(2)
    guests.cut()
    since = time.monotonic()
    one, other = sender.ended(), receiver.ended()
    assert time.monotonic() - since < CUT_S
    for ended in (one, other):
        assert ended.status == 1, (one, other)
        assert "is the network cut?" in ended.err and "over rdma" in ended.err
    assert "out" not in guests.second.check("ls /dev/shm").split()


def perftest(guests: Pair) -> float:
    """Bytes a second of ib_send_bw: 1 MiB messages, 16 at a time, one queue pair."""
    words = f"ib_send_bw -d rxe0 -F -s 1048576 -t 16 -r 16 -n {BIG_MIB}"
    guests.second.check(
        f"({words} >/dev/null 2>&1 </dev/null &);"
        " until ss -ltn | grep -q :18515; do sleep 0.1; done"
    )
    said = guests.first.check(f"{words} 10.0.0.2")
    found = re.search(r"^ *1048576 +\d+ +\S+ +(\S+)", said, re.M)
    assert found, said
    return float(found.group(1)) * (1 << 20)


def ours(ends: Ends, *chosen: str) -> float:
    options = [*RDMA, *chosen]
    receiver = ends.receive("/dev/null", options=options)
    ended = ends.send("big", options=[*options, "--json"]).ended()
    assert ended.status == receiver.ended().status == 0, ended
    return float(json.loads(ended.err)["bytes_per_s"])


def test_a_long_way_slows_nothing_down(guests: Pair, ends: Ends) -> None:
    """10 ms each way: what stands in line for an answer moves a chunk a round trip."""
    ends.sender.check(f"head -c {BIG_MIB}M /dev/zero >/dev/shm/big")
    shape(guests, "delay 10ms")
    ratios, small = [], []
    for _ in range(2):
        first = perftest(guests)
        mine = ours(ends, "--checksum", "none") + ours(ends, "--checksum", "none")
        small.append(ours(ends, "--chunk", "64K"))
        ratios.append(mine / (first + perftest(guests)))
    stop_and_wait = 65_536 / 0.020
    print("of ib_send_bw:", *(f"{ratio:.2f}" for ratio in ratios))
    print("of stop-and-wait, 64 KiB:", *(f"{one / stop_and_wait:.1f}" for one in small))
    assert statistics.median(ratios) >= 0.8, ratios
    assert max(small) >= 2 * stop_and_wait, small


def test_a_lossy_cable_loses_nothing(guests: Pair, ends: Ends) -> None:
    ends.sender.check("head -c 8M /dev/urandom >/dev/shm/in")
    ends.sender.check("cp /dev/shm/in /share/in")
    shape(guests, "loss 0.2%")
    receiver = ends.receive("out")
    assert ends.send("in").ended().status == 0
    assert receiver.ended().status == 0
    ends.receiver.check("cmp /share/in /dev/shm/out")

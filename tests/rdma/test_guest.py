"""The pipe tools over RDMA verbs: both ends in one guest with Soft-RoCE."""

import json
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.ends import RDMA, End, Ended, Ends, bring_tools
from tests.guest.machine import Guest

pytestmark = pytest.mark.e2e
CHUNK = 1 << 20  # what the tools choose for RDMA
SOON_S = 8.0  # an emulated machine's two seconds, with ssh's way there and back
BIG_MIB = 128


@pytest.fixture(scope="module")
def guest(
    rdma_tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guest]:
    share = tmp_path_factory.mktemp("share")
    bring_tools(rdma_tools, share)
    with Guest(share) as machine:
        yield machine


@pytest.fixture
def ends(guest: Guest) -> Iterator[Ends]:
    guest.check("rm -rf /dev/shm/*")
    pair = Ends(guest, guest)
    yield pair
    pair.close()


def both_fail(sender: End, receiver: End) -> tuple[Ended, Ended]:
    since = time.monotonic()
    one, other = sender.ended(), receiver.ended()
    assert time.monotonic() - since < SOON_S
    assert one.status != 0 and other.status != 0, (one, other)
    return one, other


def names(guest: Guest) -> list[str]:
    return sorted(guest.check("ls -A /dev/shm").split())


def busy(ends: Ends) -> tuple[End, End]:
    """A transfer that would never end by itself, and has begun."""
    receiver = ends.receive("out", options=[*RDMA, "--verbose"])
    sender = ends.send("/dev/zero", options=[*RDMA, "--rate", "4M"])
    written = "awk '/wchar/ {print $2}' /proc/$(pgrep -x rdrecv)/io"
    until = time.monotonic() + 10
    while int(ends.receiver.check(written)) < 2 * CHUNK:
        assert time.monotonic() < until, "no data came"
    return sender, receiver


@pytest.mark.parametrize(
    ("options", "most"),
    [([], 64 << 20), (["--checksum", "none"], 64 << 20), (["--encrypt"], 8 << 20)],
)
def test_every_size(ends: Ends, options: list[str], most: int) -> None:
    for length in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, most):
        ends.sender.check(f"head -c {length} /dev/urandom >/dev/shm/in")
        receiver = ends.receive("out", options=[*RDMA, *options])
        ended = ends.send("in", options=[*RDMA, *options]).ended()
        assert ended.status == 0, ended
        assert receiver.ended().status == 0
        ends.receiver.check("cmp /dev/shm/in /dev/shm/out")


def test_from_a_command_into_a_command(ends: Ends) -> None:
    receiver = ends.receive("--", "sh", "-c", "tr a-z A-Z >heard")
    sender = ends.send("--", "sh", "-c", "echo one; sleep 0.3; echo two")
    assert sender.ended().status == receiver.ended().status == 0
    assert ends.receiver.check("cat /dev/shm/heard") == "ONE\nTWO\n"


def test_over_ipv6(ends: Ends) -> None:
    ends.sender.check(
        "ip address replace fd00::1/64 dev eth1 nodad; echo six >/dev/shm/in"
    )
    receiver = ends.receive("out")
    ended = ends.send("in", options=[*RDMA, "-v"], host="fd00::1").ended()
    assert ended.status == receiver.ended().status == 0, ended
    assert "sending to [fd00::1]" in ended.err and "over rdma on rxe0:1" in ended.err
    assert ends.receiver.check("cat /dev/shm/out") == "six\n"


class TestWhichTransport:
    def test_auto_takes_rdma_where_it_is(self, ends: Ends) -> None:
        receiver = ends.receive("out", options=["-v"])
        ended = ends.send("/etc/hostname", options=["-v"]).ended()
        assert ended.status == 0 and "over rdma on rxe0:1" in ended.err
        assert "over rdma on rxe0:1" in receiver.ended().err

    def test_auto_falls_back_and_says_why(self, ends: Ends) -> None:
        receiver = ends.receive("out", options=["--transport", "tcp"])
        ended = ends.send("/etc/hostname", options=["-v"]).ended()
        assert ended.status == receiver.ended().status == 0
        assert "TCP, for over RDMA: refused" in ended.err and "over tcp" in ended.err

    def test_auto_takes_tcp_on_loopback(self, ends: Ends) -> None:
        receiver = ends.receive("out", options=[])
        ended = ends.send("/etc/hostname", options=["-v"], host="127.0.0.1").ended()
        assert ended.status == receiver.ended().status == 0
        assert "is loopback: TCP" in ended.err and "over tcp" in ended.err

    @pytest.mark.parametrize(
        ("host", "options", "says"),
        [
            (
                "10.0.0.1",
                [],
                "refused: is rdrecv running there, with RDMA, on this port",
            ),
            ("192.0.2.1", [], "no route to it by an RDMA device"),
            ("127.0.0.1", [], "the route to it is not by an RDMA device"),
            ("10.0.0.1", ["--device", "mlx5_0"], "is by rxe0:1, not by mlx5_0"),
            ("10.0.0.1", ["--gid-index", "77"], "GID index 77 is empty"),
            ("10.0.0.9", ["--connect-timeout", "1"], "is that host up"),
        ],
    )
    def test_rdma_alone_never_falls_back(
        self, ends: Ends, host: str, options: list[str], says: str
    ) -> None:
        listens = host == "10.0.0.1" and options or host == "127.0.0.1"
        receiver = (
            ends.receive("out", options=["--transport", "tcp"]) if listens else None
        )
        sender = ends.send(
            "/etc/hostname",
            options=[*RDMA, *options],
            host=host,
            port=ends.port or "4444",
        )
        ended = sender.ended()
        assert ended.status == 1 and says in ended.err
        assert ended.err.count("\n") == 1
        if receiver:
            ends.kill(ends.receiver, "rdrecv")


class TestStrangers:
    def test_a_wrong_key_ends_nothing(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        refused = ends.send("/etc/hostname", key="sixteen bytes of another").ended()
        assert refused.status == 1 and "the keys differ" in refused.err
        assert ends.send("/etc/hostname").ended().status == 0
        ended = receiver.ended()
        assert ended.status == 0 and "the key is wrong" in ended.err

    def test_a_program_of_another_kind_ends_nothing(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        ends.sender.run(f"timeout 5 rping -c -a 10.0.0.1 -p {ends.port} -C 1")
        assert ends.send("/etc/hostname").ended().status == 0
        ended = receiver.ended()
        assert ended.status == 0 and "turned 10.0.0.1" in ended.err

    def test_encryption_that_one_end_demands(self, ends: Ends) -> None:
        receiver = ends.receive("out", options=[*RDMA, "--connect-timeout", "3"])
        ended = ends.send("/etc/hostname", options=[*RDMA, "--encrypt"]).ended()
        assert ended.status == 1 and "--encrypt" in ended.err
        assert receiver.ended().status == 1
        assert "out" not in names(ends.receiver)


class TestFaults:
    def test_the_receiver_is_killed(self, ends: Ends) -> None:
        sender, receiver = busy(ends)
        ends.kill(ends.receiver, "rdrecv")
        one, other = both_fail(sender, receiver)
        assert one.status == 1 and "left without a word" in one.err
        assert other.status == 137

    def test_the_sender_is_killed(self, ends: Ends) -> None:
        sender, receiver = busy(ends)
        ends.kill(ends.sender, "rdsend")
        one, other = both_fail(sender, receiver)
        assert one.status == 137
        assert other.status == 1 and "left without a word" in other.err
        assert names(ends.receiver) == ["stdout"]

    def test_a_producer_that_fails(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        sender = ends.send("--", "sh", "-c", "echo half; exit 5")
        one, other = both_fail(sender, receiver)
        assert one.status == 5 and "status 5" in other.err
        assert names(ends.receiver) == ["stdout"]

    def test_a_consumer_that_takes_little(self, ends: Ends) -> None:
        receiver = ends.receive("--", "head", "-c", "5")
        _, other = both_fail(ends.send("/dev/zero"), receiver)
        assert "left before the end" in other.err

    def test_an_idle_stream_does_not_spin_and_hears_the_end(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        sender = ends.send("--", "sleep", "1000")
        time.sleep(1.5)
        ticks = (
            "cat /proc/$(pgrep -x rdsend)/stat /proc/$(pgrep -x rdrecv)/stat"
            " | awk '{n += $14 + $15} END {print n}'"
        )
        spent = -int(ends.sender.check(ticks))
        time.sleep(2)
        spent += int(ends.sender.check(ticks))
        assert spent < 40, "0.4 s of CPU time in 2 s of nothing"
        ends.kill(ends.sender, "rdsend")
        _, other = both_fail(sender, receiver)
        assert "left without a word" in other.err
        ends.sender.run("pkill -x sleep")


@pytest.mark.parametrize(
    ("limit_kib", "says"),
    [(8192, "16 buffers of 256 KiB"), (512, "4 buffers of 16 KiB")],
)
def test_a_user_who_may_pin_little(ends: Ends, limit_kib: int, says: str) -> None:
    ends.sender.check(
        "chmod 666 /dev/infiniband/*; head -c 3M /dev/urandom >/dev/shm/in"
    )
    bytes_ = limit_kib << 10
    user = (
        f"prlimit --memlock={bytes_}:{bytes_} "
        "setpriv --reuid=1000 --regid=1000 --clear-groups"
    )
    ends.sender.check("chmod 777 /dev/shm")
    receiver = ends.receive("out", wrap=user)
    one, other = ends.send("in", wrap=user).ended(), receiver.ended()
    assert one.status == other.status == 0, (one, other)
    assert says in one.err and says in other.err
    ends.receiver.check("cmp /dev/shm/in /dev/shm/out")


def test_rdpipe_over_rdma(ends: Ends) -> None:
    done = ends.sender.run(
        "echo hello | /share/rdpipe -v --remote-path /share"
        " 10.0.0.1:'tr [:lower:] [:upper:]' 10.0.0.1:rev"
    )
    assert done.returncode == 0 and done.stdout == "OLLEH\n", done
    assert "over rdma" in done.stderr


def perftest(guest: Guest) -> float:
    """Bytes a second of ib_send_bw: 8 MiB messages, 2 at a time."""
    words = f"ib_send_bw -d rxe0 -F -s 8388608 -t 2 -r 2 -n {BIG_MIB // 8}"
    said = guest.check(
        f"{words} >/dev/null & until ss -ltn | grep -q :18515; do sleep 0.1; done;"
        f"{words} 10.0.0.1; wait"
    )
    found = re.search(r"^ *8388608 +\d+ +\S+ +(\S+)", said, re.M)
    assert found, said
    return float(found.group(1)) * (1 << 20)


def ours(ends: Ends) -> float:
    options = [*RDMA, "--checksum", "none"]
    receiver = ends.receive("/dev/null", options=options)
    ended = ends.send("big", options=[*options, "--json"]).ended()
    assert ended.status == receiver.ended().status == 0, ended
    return float(json.loads(ended.err)["bytes_per_s"])


def test_speed_beside_perftest(ends: Ends) -> None:
    ends.sender.check(f"head -c {BIG_MIB}M /dev/zero >/dev/shm/big")
    ratios = []
    for _ in range(3):
        first = perftest(ends.sender)
        mine = ours(ends) + ours(ends)
        ratios.append(mine / (first + perftest(ends.sender)))
    print("of ib_send_bw:", *(f"{ratio:.2f}" for ratio in ratios))
    assert statistics.median(ratios) >= 0.8, ratios

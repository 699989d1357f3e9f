"""The pipe tools over RDMA verbs: both ends in one VM with Soft-RoCE."""

import time
from collections.abc import Iterator

import pytest
from testkit.vm.ends import KEY, NOW, PATIENT, RDMA, TOOLS, End, Ended, Ends
from testkit.vm.image import PIPES
from testkit.vm.machine import Vm

pytestmark = [pytest.mark.e2e, pytest.mark.vm, pytest.mark.needs(PIPES)]
CHUNK = 1 << 20  # the tools' choice for RDMA
SOON_S = 30.0  # by the VM's clock, and sooner than the --timeout of both ends
FAILED = f"{NOW} >/tmp/failed"
"""Command that records the time of its own failure."""
MOST = 25 << 20
"""Once around the ring of 16 buffers and the 8 spare ones, and further."""
LESS = 8 << 20
"""Enough where an option changes the chunks, but not the ring."""


@pytest.fixture
def ends(vm: Vm, tools_in_vms: None) -> Iterator[Ends]:
    vm.check("rm -rf /dev/shm/*")
    pair = Ends(vm, vm)
    yield pair
    pair.close()


def both_fail(sender: End, receiver: End, since_s: float) -> tuple[Ended, Ended]:
    one, other = sender.ended(), receiver.ended()
    assert 0 < max(one.at_s, other.at_s) - since_s < SOON_S, (since_s, one, other)
    assert one.status != 0 and other.status != 0, (one, other)
    return one, other


def failed_s(ends: Ends, sender: End) -> float:
    """Return the time at which the command failed, by the VM's clock."""
    sender.process.wait(60)
    return float(ends.receiver.check("cat /tmp/failed; rm /tmp/failed"))


def names(vm: Vm) -> list[str]:
    return sorted(vm.check("ls -A /dev/shm").split())


def busy(ends: Ends) -> tuple[End, End]:
    """Start a transfer that would never end by itself; wait until it has begun."""
    receiver = ends.receive("out", options=[*RDMA, "--verbose"])
    sender = ends.send("/dev/zero", options=[*RDMA, "--rate", "4M"])
    written = "awk '/wchar/ {print $2}' /proc/$(pgrep -x rdrecv)/io"
    until = time.monotonic() + 60
    while int(ends.receiver.check(written)) < 2 * CHUNK:
        assert time.monotonic() < until, "no data came"
    return sender, receiver


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ([], LESS),
        pytest.param([], MOST, marks=[pytest.mark.soak, pytest.mark.long]),
        pytest.param(["--checksum", "none"], LESS, marks=[pytest.mark.soak, pytest.mark.long]),
        (["--encrypt"], LESS),
    ],
)
def test_transfer_of_boundary_sizes(ends: Ends, options: list[str], most: int) -> None:
    for length in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, most):
        ends.sender.check(f"head -c {length} /dev/urandom >/dev/shm/in")
        receiver = ends.receive("out", options=[*RDMA, *options])
        ended = ends.send("in", options=[*RDMA, *options]).ended()
        assert ended.status == 0, ended
        assert receiver.ended().status == 0
        ends.receiver.check("cmp /dev/shm/in /dev/shm/out")


def test_command_output_reaches_command_input(ends: Ends) -> None:
    receiver = ends.receive("--", "sh", "-c", "tr a-z A-Z >heard")
    sender = ends.send("--", "sh", "-c", "echo one; sleep 0.3; echo two")
    assert sender.ended().status == receiver.ended().status == 0
    assert ends.receiver.check("cat /dev/shm/heard") == "ONE\nTWO\n"


def test_transfer_over_ipv6(ends: Ends) -> None:
    ends.sender.check("ip address replace fd00::1/64 dev eth1 nodad; echo six >/dev/shm/in")
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

    def test_verbose_receiver_names_port_and_transport(self, ends: Ends) -> None:
        receiver = ends.receive("out", options=[*RDMA, "-v"])
        assert ends.send("/etc/hostname").ended().status == 0
        assert f"waiting on port {ends.port} for RDMA\n" in receiver.ended().err

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
            ("10.0.0.1", [], "refused: is rdrecv running there, with RDMA, on this port"),
            ("192.0.2.1", [], "no route to it by an RDMA device"),
            ("127.0.0.1", [], "the route to it is not by an RDMA device"),
            ("10.0.0.1", ["--device", "mlx5_0"], "is by rxe0:1, not by mlx5_0"),
            ("10.0.0.9", ["--connect-timeout", "1"], "is that host up"),
        ],
    )
    def test_rdma_alone_never_falls_back(
        self, ends: Ends, host: str, options: list[str], says: str
    ) -> None:
        listens = host == "10.0.0.1" and options or host == "127.0.0.1"
        receiver = ends.receive("out", options=["--transport", "tcp"]) if listens else None
        sender = ends.send(
            "/etc/hostname", options=[*RDMA, *options], host=host, port=ends.port or "4444"
        )
        ended = sender.ended()
        assert ended.status == 1 and says in ended.err
        assert ended.err.count("\n") == 1
        if receiver:
            ends.kill(ends.receiver, "rdrecv")

    @pytest.mark.parametrize(
        ("options", "says"), [("--device nothere0", "no RDMA device nothere0 here: there is rxe0")]
    )
    def test_receiver_refuses_missing_device(self, ends: Ends, options: str, says: str) -> None:
        done = ends.receiver.run(f"RDPIPE_KEY='{KEY}' {TOOLS}/rdrecv --transport rdma {options} 0")
        assert done.returncode == 1 and says in done.stderr


class TestWhichDevice:
    def test_named_device_is_used(self, ends: Ends) -> None:
        device = [*RDMA, "--device", "rxe0:1"]
        receiver = ends.receive("out", options=device)
        ended = ends.send("/etc/hostname", options=device).ended()
        assert ended.status == receiver.ended().status == 0, ended


@pytest.mark.soak
@pytest.mark.long
class TestStrangers:
    def test_receiver_survives_wrong_key(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        refused = ends.send("/etc/hostname", key="sixteen bytes of another").ended()
        assert refused.status == 1 and "the keys differ" in refused.err
        assert ends.send("/etc/hostname").ended().status == 0
        ended = receiver.ended()
        assert ended.status == 0 and "the keys differ" in ended.err

    def test_receiver_survives_foreign_program(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        ends.sender.run(f"timeout 5 rping -c -a 10.0.0.1 -p {ends.port} -C 1")
        assert ends.send("/etc/hostname").ended().status == 0
        ended = receiver.ended()
        assert ended.status == 0 and "turned 10.0.0.1" in ended.err

    def test_encryption_demanded_by_one_end_is_used(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        options = ["--transport", "rdma", "-v"]
        ended = ends.send("/etc/hostname", options=options).ended()
        assert ended.status == receiver.ended().status == 0
        assert "encrypted by" in ended.err


@pytest.mark.soak
@pytest.mark.long
class TestFaults:
    def test_killed_receiver_ends_sender(self, ends: Ends) -> None:
        sender, receiver = busy(ends)
        killed_s = ends.kill(ends.receiver, "rdrecv")
        one, other = both_fail(sender, receiver, killed_s)
        assert one.status == 1 and "left without a word" in one.err
        assert other.status == 137

    def test_killed_sender_ends_receiver(self, ends: Ends) -> None:
        sender, receiver = busy(ends)
        killed_s = ends.kill(ends.sender, "rdsend")
        one, other = both_fail(sender, receiver, killed_s)
        assert one.status == 137
        assert other.status == 1 and "left without a word" in other.err
        assert names(ends.receiver) == ["stdout"]

    def test_failed_producer_publishes_no_file(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        sender = ends.send("--", "sh", "-c", f"echo half; {FAILED}; exit 5")
        one, other = both_fail(sender, receiver, failed_s(ends, sender))
        assert one.status == 5 and "status 5" in other.err
        assert names(ends.receiver) == ["stdout"]

    def test_consumer_that_leaves_early_ends_both_ends(self, ends: Ends) -> None:
        receiver = ends.receive("--", "sh", "-c", f"head -c 5; {FAILED}")
        sender = ends.send("/dev/zero")
        _, other = both_fail(sender, receiver, failed_s(ends, sender))
        assert "left before the end" in other.err

    def test_idle_stream_uses_little_cpu_and_notices_the_end(self, ends: Ends) -> None:
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
        killed_s = ends.kill(ends.sender, "rdsend")
        _, other = both_fail(sender, receiver, killed_s)
        assert "left without a word" in other.err
        ends.sender.run("pkill -x sleep")


def as_user(limit_kib: int) -> str:
    """Return a prefix for a command: it runs as a user who may pin so much memory."""
    bytes_ = limit_kib << 10
    return f"prlimit --memlock={bytes_}:{bytes_} setpriv --reuid=1000 --regid=1000 --clear-groups"


@pytest.fixture
def user_ends(ends: Ends) -> Ends:
    """Ends whose devices and folder are open to all users; there is a file to send."""
    ends.sender.check(
        "chmod 666 /dev/infiniband/*; chmod 777 /dev/shm; head -c 300K /dev/urandom >/dev/shm/in"
    )
    return ends


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize(
    ("limit_kib", "sends", "receives"),
    [
        (8192, "16 buffers of 256 KiB", "16 buffers of 256 KiB"),
        (64, "4 buffers of 8 KiB", "1 buffer of 4 KiB"),
    ],
)
def test_low_memlock_limit_shrinks_buffers(
    user_ends: Ends, limit_kib: int, sends: str, receives: str
) -> None:
    ends, user = user_ends, as_user(limit_kib)
    receiver = ends.receive("out", wrap=user)
    one, other = ends.send("in", wrap=user).ended(), receiver.ended()
    assert one.status == other.status == 0, (one, other)
    assert sends in one.err and receives in other.err
    ends.receiver.check("cmp /dev/shm/in /dev/shm/out")


@pytest.mark.soak
@pytest.mark.long
def test_too_low_memlock_limit_falls_back_to_tcp(user_ends: Ends) -> None:
    """Both ends use TCP by default and give the reason; told to use RDMA they refuse."""
    ends, user = user_ends, as_user(16)
    says = "this user may pin 16 KiB (ulimit -l), and RDMA needs"
    receiver = ends.receive("out", options=[], wrap=user)
    one, other = ends.send("in", options=["-v"], wrap=user).ended(), receiver.ended()
    assert one.status == other.status == 0, (one, other)
    assert says in one.err and says in other.err and "over tcp" in one.err
    refused = ends.send("in", wrap=user, port="4444").ended()
    assert refused.status == 1 and says in refused.err


def test_rdpipe_over_rdma(ends: Ends) -> None:
    done = ends.sender.run(
        f"echo hello | /share/rdpipe -v {' '.join(PATIENT)} --remote-path /share"
        " 10.0.0.1:'tr [:lower:] [:upper:]' 10.0.0.1:rev"
    )
    assert done.returncode == 0 and done.stdout == "OLLEH\n", done
    assert "over rdma" in done.stderr


def test_rdcp_over_rdma(ends: Ends) -> None:
    """rdcp copies a tree of small files, a big one and a link."""
    ends.sender.check(
        "cd /dev/shm; mkdir -p 'tree/a b'; head -c 3000001 /dev/urandom >tree/big;"
        ' for n in $(seq 50); do echo $n >"tree/a b/$n"; done; ln -s big tree/link'
    )
    done = ends.sender.run(
        f"cd /dev/shm; /share/rdcp -r -v {' '.join(PATIENT)} --remote-path /share"
        " tree 10.0.0.1:/dev/shm/to"
    )
    assert done.returncode == 0 and "over rdma" in done.stderr, done
    ends.sender.check("cd /dev/shm; diff -r --no-dereference tree to")


MEMCHECK = (
    "valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect"
)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("checked", ["rdsend", "rdrecv"])
def test_valgrind_finds_no_memory_error(ends: Ends, checked: str) -> None:
    """On an emulated processor this takes a minute each, and a proof up to half of --timeout."""
    ends.sender.check("head -c 100001 /dev/urandom >/dev/shm/in")
    wraps = {checked: MEMCHECK}
    receiver = ends.receive("out", wrap=wraps.get("rdrecv", ""))
    sender = ends.send("in", wrap=wraps.get("rdsend", ""))
    one, other = sender.ended(150), receiver.ended()
    assert one.status == other.status == 0, (one, other)
    ends.receiver.check("cmp /dev/shm/in /dev/shm/out")

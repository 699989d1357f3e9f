"""Faults of rdsend and rdrecv: the other end notices soon, and incomplete data never looks
complete."""

import errno
import os
import random
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.harness import wait_for
from testkit.network.pipes import SLOWNESS

from tests.rdma.ends import KEY, End, Ended, Ends
from tests.rdma.kernel import OPENAT, TMPFILE, without
from tests.rdma.records import END, RECEIVER, Hello

pytestmark = pytest.mark.e2e
SOON_S = 9.0  # the design's two seconds, on a busy machine; a time-out takes ten
CPU_S = 1.0
BEGUN_BYTES = 1 << 20


def both_fail(sender: End, receiver: End) -> tuple[Ended, Ended]:
    since = time.monotonic()
    one, other = sender.ended(), receiver.ended()
    assert time.monotonic() - since < SOON_S * SLOWNESS
    assert one.status != 0 and other.status != 0, (one, other)
    return one, other


def busy(ends: Ends, *target: str | Path) -> tuple[End, End]:
    """Start a transfer that would never end by itself; wait until it has begun."""
    receiver = ends.receive(*(target or ("/dev/null",)))
    sender = ends.send("/dev/zero", options=["--rate", "20M"])
    wait_for(lambda: written(receiver.pid) > BEGUN_BYTES, "no data came", 10.0 * SLOWNESS)
    return sender, receiver


def written(pid: int) -> int:
    """Return how many bytes the process has written (proc(5): wchar)."""
    fields = Path(f"/proc/{pid}/io").read_text().split()
    return int(fields[fields.index("wchar:") + 1])


def both_fail_idly(sender: End, receiver: End) -> tuple[Ended, Ended]:
    """Assert that both ends fail in time, and take next to no CPU time."""
    spent_s = -children_cpu_s()
    ended = both_fail(sender, receiver)
    spent_s += children_cpu_s()
    assert spent_s < CPU_S * SLOWNESS
    return ended


def children_cpu_s() -> float:
    """Return the CPU time of all children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


class TestProducers:
    def test_failed_producer_leaves_old_file(self, ends: Ends) -> None:
        (ends.place / "out").write_bytes(b"old")
        receiver = ends.receive("out")
        sender = ends.send("--", "sh", "-c", "echo half; exit 5")
        one, other = both_fail(sender, receiver)
        assert one.status == 5
        assert "sh failed with status 5" in one.err and "status 5" in other.err
        assert (ends.place / "out").read_bytes() == b"old"
        assert names(ends.place) == ["out"]

    def test_killed_producer_publishes_no_file(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        sender = ends.send("--", "sh", "-c", "echo half; kill -9 $$")
        one, other = both_fail(sender, receiver)
        assert one.status == 137 and "137" in other.err
        assert names(ends.place) == []

    def test_missing_producer_program_fails_both_ends(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        one, _ = both_fail(ends.send("--", "no-such-program"), receiver)
        assert one.status == 127 and "no-such-program" in one.err

    def test_consumer_of_failed_producer_sees_no_end(self, ends: Ends) -> None:
        receiver = ends.receive("--", "sh", "-c", "cat >/dev/null; echo complete > told")
        both_fail(ends.send("--", "sh", "-c", "echo half; exit 1"), receiver)
        assert names(ends.place) == []

    def test_read_error_publishes_no_file(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        sender = ends.send("/proc/self/mem")  # its first page cannot be read
        one, _ = both_fail(sender, receiver)
        assert "cannot read" in one.err
        assert names(ends.place) == []

    def test_read_error_on_stdin_publishes_no_file(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        with open("/proc/self/mem", "rb", buffering=0) as unreadable:
            one, _ = both_fail(ends.send(stdin=unreadable), receiver)
        assert "cannot read stdin" in one.err
        assert names(ends.place) == []

    def test_directory_as_stdin_is_refused(self, ends: Ends) -> None:
        fd = os.open(ends.place, os.O_RDONLY)
        ended = ends.send(stdin=fd, port=9).ended()
        os.close(fd)
        assert ended.status == 1 and "stdin is a directory" in ended.err


class TestConsumers:
    def test_failed_consumer_is_reported_to_sender(self, ends: Ends) -> None:
        receiver = ends.receive("--", "sh", "-c", "cat >/dev/null; exit 6")
        one, other = both_fail(ends.send("--", "echo", "all"), receiver)
        assert other.status == 6 and "status 6" in one.err

    def test_reader_that_leaves_ends_sender(self, ends: Ends) -> None:
        reader, writer = os.pipe()
        receiver = ends.receive(stdout=writer)
        os.close(writer)
        sender = ends.send("/dev/zero")
        os.read(reader, 5)
        os.close(reader)
        one, other = both_fail(sender, receiver)
        assert "reader" in one.err and "reader" in other.err

    def test_reader_that_leaves_after_last_data_is_no_fault(self, ends: Ends) -> None:
        """The reader leaves before the end record comes, and no data follow."""
        receiver = ends.receive("--", "head", "-n1")
        sender = ends.send("--", "sh", "-c", "echo all; sleep 0.2")
        assert sender.ended().status == 0
        ended = receiver.ended()
        assert (ended.status, ended.out) == (0, b"all\n")

    def test_reader_that_leaves_before_more_data_fails_both_ends(self, ends: Ends) -> None:
        receiver = ends.receive("--", "head", "-n1")
        sender = ends.send("--", "sh", "-c", "echo all; sleep 0.2; echo more")
        _, other = both_fail(sender, receiver)
        assert "left before the end" in other.err and other.out == b"all\n"

    def test_reader_that_leaves_idle_stream_is_noticed(self, ends: Ends) -> None:
        receiver = ends.receive("--", "sh", "-c", "exec <&-; exec sleep 60")
        both_fail(ends.send("--", "sleep", "60"), receiver)

    def test_reader_that_leaves_before_connection_ends_receiver(self, ends: Ends) -> None:
        reader, writer = os.pipe()
        receiver = ends.receive(stdout=writer)
        os.close(writer)
        os.close(reader)
        assert receiver.ended(SOON_S).status == 1

    def test_consumer_of_killed_receiver_sees_no_end(self, ends: Ends) -> None:
        for _ in range(5):
            receiver = ends.receive("--", "sh", "-c", "cat >/dev/null; echo > told")
            sender = ends.send("/dev/zero", options=["--rate", "20M"])
            time.sleep(0.2)
            receiver.kill()
            both_fail(sender, receiver)
            assert names(ends.place) == []


def test_full_disk_is_reported_without_busy_loop(ends: Ends) -> None:
    with open("/dev/full", "wb") as full:
        receiver = ends.receive(stdout=full)
    one, other = both_fail_idly(ends.send("/dev/zero"), receiver)
    assert "No space left" in one.err and "No space left" in other.err


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, with a file `out`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "fpv", folder], check=True)
    (folder / "out").write_bytes(b"old")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own needs root")
@pytest.mark.parametrize("options", [[], ["--checksum", "none"], ["--sync"]])
def test_filled_file_system_keeps_old_file(ends: Ends, disk: Path, options: list[str]) -> None:
    receiver = ends.receive("disk/out", options=options)
    theirs = [word for word in options if word != "--sync"]  # --sync is the receiver's
    sender = ends.send("/dev/zero", options=theirs)
    one, other = both_fail_idly(sender, receiver)
    assert "No space left" in one.err and "No space left" in other.err
    assert (disk / "out").read_bytes() == b"old"
    assert names(disk) == ["out"]
    (disk / "whole").write_bytes(bytes(1_000_000))  # no unnamed file takes the space


def test_target_beyond_size_limit_is_removed(ends: Ends) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    receiver = ends.receive("out", before=limit)
    one, _ = both_fail(ends.send("/dev/zero"), receiver)
    assert "File too large" in one.err
    assert names(ends.place) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("which", [0, 1])
def test_killed_end_is_noticed_by_the_other(ends: Ends, which: int, number: int) -> None:
    pair = busy(ends, "out")
    pair[which].kill(number)
    ended = both_fail(*pair)
    assert ended[1 - which].err
    assert names(ends.place) == []


def test_killed_idle_receiver_ends_sender(ends: Ends) -> None:
    receiver = ends.receive("/dev/null")
    sender = ends.send("--", "sleep", "60")
    time.sleep(0.3)
    receiver.kill()
    both_fail(sender, receiver)


@pytest.mark.parametrize("stopped", [0, 1])
def test_silence_of_the_other_end_is_noticed(ends: Ends, stopped: int) -> None:
    receiver = ends.receive("/dev/null", options=["--timeout", "1.5"])
    sender = ends.send("/dev/zero", options=["--timeout", "1.5", "--rate", "20M"])
    time.sleep(0.3)
    pair = (sender, receiver)
    pair[stopped].kill(signal.SIGSTOP)
    ended = pair[1 - stopped].ended(5)
    assert ended.status == 1 and "nothing heard" in ended.err
    pair[stopped].kill(signal.SIGCONT)
    assert pair[stopped].ended().status != 0


@pytest.mark.soak
def test_slow_ends_are_not_silent_ends(ends: Ends, soaking: bool) -> None:
    """A producer that sends no data and a writer that reads none both succeed."""
    pause_s, timeout_s = (60, 10) if soaking else (3.5 * SLOWNESS, 1.5 * SLOWNESS)
    options = ["--timeout", str(timeout_s)]
    receiver = ends.receive("--", "sh", "-c", f"sleep {pause_s}; wc -c", options=options)
    sender = ends.send(
        "--", "sh", "-c", f"head -c 30000000 /dev/zero; sleep {pause_s}", options=options
    )
    time.sleep(pause_s / 2)
    before = sender.cpu_s(), receiver.cpu_s()
    time.sleep(1)
    assert sender.cpu_s() - before[0] < 0.1 and receiver.cpu_s() - before[1] < 0.1
    assert sender.ended(pause_s * 2 + 10).status == 0
    ended = receiver.ended(pause_s * 2 + 10)
    assert (ended.status, ended.out.strip()) == (0, b"30000000")


def test_idle_timeout_ends_silent_stream(ends: Ends) -> None:
    receiver = ends.receive("/dev/null", options=["--idle-timeout", "1"])
    sender = ends.send("--", "sh", "-c", "echo; sleep 60")
    assert "--idle-timeout" in receiver.ended(5).err
    assert sender.ended(SOON_S).status == 1


@pytest.mark.soak
def test_random_kill_points(ends: Ends, soaking: bool) -> None:
    """Either end is killed at any time: the target is the old or the new file, complete, and an
    exit status of 0 is true."""
    rounds, chance = (1000 if soaking else 50), random.Random(4)
    old, new = b"old", os.urandom(3_000_000)
    (ends.place / "in").write_bytes(new)
    target = ends.place / "out"
    for round_ in range(rounds):
        target.write_bytes(old)
        receiver = ends.receive("out", options=["--connect-timeout", "1"])
        sender = ends.send("in")
        time.sleep(chance.random() * 0.04)
        victim = chance.choice([sender, receiver])
        if victim.process.poll() is None:
            victim.kill()
        sent, received = sender.ended(), receiver.ended()
        content = target.read_bytes()
        assert content in (old, new), f"round {round_}: {len(content)} bytes"
        if sent.status == 0 or received.status == 0:
            assert content == new, f"round {round_}"
        if content == old:
            assert sent.status != 0 and received.status != 0
    receiver = ends.receive("out")
    assert ends.send("in").ended().status == 0 and receiver.ended().status == 0
    # Only SIGKILL between the link and its rename leaves a part.
    left = [name for name in names(ends.place) if not re.fullmatch(r"\.out\.\w+\.part", name)]
    assert left == ["in", "out"]


def test_target_without_unnamed_files_is_replaced_when_complete(ends: Ends) -> None:
    nfs = without(OPENAT, errno.EOPNOTSUPP, TMPFILE)
    (ends.place / "out").write_bytes(b"old")
    failed = ends.receive("out", before=nfs)
    both_fail(ends.send("--", "sh", "-c", "echo; exit 3"), failed)
    assert (ends.place / "out").read_bytes() == b"old"
    receiver = ends.receive("out", before=nfs)
    assert ends.send("--", "echo", "new").ended().status == 0
    assert receiver.ended().status == 0
    assert (ends.place / "out").read_bytes() == b"new\n"
    assert names(ends.place) == ["out"]


def test_sender_without_confirmation_reports_unknown_outcome(ends: Ends) -> None:
    sender, peer = ends.send_to_peer("--", "echo", "x")
    peer.prove_as_receiver(KEY, Hello(RECEIVER))
    peer.until(END)
    peer.close()
    ended = sender.ended(SOON_S)
    assert ended.status == 3 and "outcome unknown" in ended.err

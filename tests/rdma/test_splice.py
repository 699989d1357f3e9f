"""Where no checksum needs the bytes they pass rdsend and rdrecv by: spliced from a file
or a pipe to the socket, and on into the target. What arrives is the same."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.rdma.ends import KEY, End, Ends
from tests.rdma.records import BYE, DATA, DONE, END, ENDING, SENDER, Hello, Peer, record

pytestmark = pytest.mark.e2e
NONE = ["--checksum", "none"]
MANY = 8_000_000
FEW = 1_000_000  # of bytes in read(2) and write(2) where none is to be copied

REFUSING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int kind(int fd)
{
    struct stat state;
    return fstat(fd, &state) < 0 ? 0 : S_ISSOCK(state.st_mode) ? 's' : S_ISFIFO(state.st_mode) ? 'p' : 'f';
}

ssize_t splice(int in, off_t *in_at, int out, off_t *out_at, size_t length, unsigned flags)
{
    const char *refused = getenv("REFUSED");
    if (refused && kind(in) == refused[0] && kind(out) == refused[1]) {
        errno = EINVAL;
        return -1;
    }
    ssize_t (*real)(int, off_t *, int, off_t *, size_t, unsigned) = dlsym(RTLD_NEXT, "splice");
    return real(in, in_at, out, out_at, length, flags);
}

ssize_t tee(int in, int out, size_t length, unsigned flags)
{
    ssize_t (*real)(int, int, size_t, unsigned) = dlsym(RTLD_NEXT, "tee");
    const char *refused = getenv("REFUSED");
    if (refused && refused[0] == 't')
        length = length > 5 && refused[1] == 'e' ? 5 : 0;
    if (length)
        return real(in, out, length, flags);
    errno = EINVAL;
    return -1;
}
"""  # noqa: E501


def source(ends: Ends, length: int = MANY) -> bytes:
    data = os.urandom(length)
    (ends.place / "in").write_bytes(data)
    return data


def copied(end: End) -> int:
    """The bytes that went through read(2) and write(2) of a running process."""
    lines = Path(f"/proc/{end.pid}/io").read_text().splitlines()
    counts = dict(line.split(": ") for line in lines)
    return int(counts["rchar"]) + int(counts["wchar"])


def reach(ends: Ends) -> Peer:
    connection = socket.create_connection(("127.0.0.1", ends.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Peer(connection)


def arrived(ends: Ends, length: int) -> None:
    """Waits until so much is in the target, under its temporary name or as `out`."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for path in [*ends.place.glob(".out.*.part"), ends.place / "out"]:
            if path.exists() and path.stat().st_size >= length:
                return
        time.sleep(0.02)
    raise AssertionError("too little arrived")


@pytest.mark.parametrize("options", [NONE, []], ids=["none", "xxh64"])
class TestNothingIsCopied:
    """Unless there is a checksum: which shows that the test would see it."""

    def judge(self, pair: tuple[End, End], options: list[str], length: int) -> None:
        for end in pair:
            if options == NONE:
                assert copied(end) < FEW
            else:
                assert copied(end) >= length

    def test_from_a_file_to_a_file(self, ends: Ends, options: list[str]) -> None:
        data = source(ends)
        receiver = ends.receive("out", options=options)
        sender = ends.send("in", options=[*options, "--rate", "6M"])
        arrived(ends, MANY // 4)
        self.judge((sender, receiver), options, MANY // 4)
        assert (sender.ended().status, receiver.ended().status) == (0, 0)
        assert (ends.place / "out").read_bytes() == data

    def test_from_a_pipe_to_a_command(self, ends: Ends, options: list[str]) -> None:
        data = source(ends)
        receiver = ends.receive("--", "sh", "-c", "cat > out", options=options)
        words = ["sh", "-c", "cat in; sleep 1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ends.place) as made:
            sender = ends.send(stdin=made.stdout, options=options)
            arrived(ends, MANY)
            self.judge((sender, receiver), options, MANY)
        assert (sender.ended().status, receiver.ended().status) == (0, 0)
        assert (ends.place / "out").read_bytes() == data


class TestTargets:
    def test_a_file_opened_for_appending_is_written(self, ends: Ends) -> None:
        data = source(ends, 1_000_001)
        (ends.place / "log").write_bytes(b"before ")
        with (ends.place / "log").open("ab") as log:
            receiver = ends.receive(options=[*NONE, "-v"], stdout=log)
            assert ends.send("in", options=NONE).ended().status == 0
            ended = receiver.ended()
        assert ended.status == 0 and "cannot be spliced to: written" in ended.err
        assert (ends.place / "log").read_bytes() == b"before " + data

    def test_a_fifo(self, ends: Ends) -> None:
        data = source(ends, 1_000_001)
        os.mkfifo(ends.place / "fifo")
        receiver = ends.receive("fifo", options=NONE)
        sender = ends.send("in", options=NONE)
        assert (ends.place / "fifo").read_bytes() == data
        assert (sender.ended().status, receiver.ended().status) == (0, 0)
        assert (ends.place / "fifo").is_fifo()

    def test_a_device_survives(self, ends: Ends) -> None:
        source(ends)
        before = os.stat("/dev/null")
        receiver = ends.receive("/dev/null", options=NONE)
        assert ends.send("in", options=NONE).ended().status == 0
        assert receiver.ended().status == 0
        after = os.stat("/dev/null")
        assert (before.st_ino, before.st_rdev) == (after.st_ino, after.st_rdev)

    def test_a_full_disk(self, ends: Ends) -> None:
        source(ends)
        receiver = ends.receive("/dev/full", options=NONE)
        sender = ends.send("in", options=NONE)
        assert "No space left" in sender.ended().err
        assert "No space left" in receiver.ended().err

    def test_a_non_blocking_pipe_with_a_slow_reader(self, ends: Ends) -> None:
        data = source(ends, 3_000_000)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        receiver = ends.receive(stdout=writer, options=NONE)
        os.close(writer)
        sender = ends.send("in", options=NONE)
        time.sleep(0.3)
        with open(reader, "rb") as pipe:
            assert pipe.read() == data
        assert (sender.ended().status, receiver.ended().status) == (0, 0)

    def test_what_a_pipe_holds_outlives_the_source(self, ends: Ends) -> None:
        """A reader who comes when both ends said 0 and the file was changed."""
        data = source(ends, 60_000)
        reader, writer = os.pipe()
        receiver = ends.receive(stdout=writer, options=NONE)
        os.close(writer)
        assert ends.send("in", options=NONE).ended().status == 0
        assert receiver.process.wait(10) == 0
        with (ends.place / "in").open("r+b") as changed:
            changed.write(bytes(len(data)))
        with open(reader, "rb") as pipe:
            assert pipe.read() == data


class TestSources:
    @pytest.mark.parametrize("size", [1, 7, 4095, 4097])
    def test_tiny_writes(self, ends: Ends, size: int) -> None:
        data = os.urandom(3_000 * size)
        reader, writer = os.pipe()
        receiver = ends.receive("out", options=NONE)
        sender = ends.send(stdin=reader, options=NONE)
        os.close(reader)
        with open(writer, "wb", buffering=0) as pipe:
            for at in range(0, len(data), size):
                pipe.write(data[at : at + size])
        assert (sender.ended().status, receiver.ended().status) == (0, 0)
        assert (ends.place / "out").read_bytes() == data

    def test_pauses_and_a_non_blocking_stdin(self, ends: Ends) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        receiver = ends.receive(options=NONE)
        sender = ends.send(stdin=reader, options=NONE)
        os.close(reader)
        assert receiver.process.stdout
        for line in [b"one\n", b"two\n"]:
            time.sleep(0.15)
            os.write(writer, line)
            assert os.read(receiver.process.stdout.fileno(), 100) == line
        os.close(writer)
        assert (sender.ended().status, receiver.ended().status) == (0, 0)

    def test_a_file_on_stdin_passes_by_from_where_it_stands(self, ends: Ends) -> None:
        data = source(ends, 4_000_000)
        receiver = ends.receive("out", options=NONE)
        with (ends.place / "in").open("rb") as file:
            file.seek(1001)
            sender = ends.send(stdin=file, options=[*NONE, "--rate", "6M"])
            arrived(ends, 2_000_000)
            assert copied(sender) < FEW and copied(receiver) < FEW
            assert (sender.ended().status, receiver.ended().status) == (0, 0)
        assert (ends.place / "out").read_bytes() == data[1001:]

    def test_odd_chunks_and_few_credits(self, ends: Ends) -> None:
        data = source(ends, 1_000_001)
        options = [*NONE, "--chunk", "5001", "--credits", "3"]
        receiver = ends.receive("out", options=options)
        assert ends.send("in", options=options).ended().status == 0
        assert receiver.ended().status == 0
        assert (ends.place / "out").read_bytes() == data

    @pytest.mark.parametrize("options", [NONE, []], ids=["none", "xxh64"])
    def test_one_buffer_is_filled_again_at_once(
        self, ends: Ends, options: list[str]
    ) -> None:
        """Not when the receiver, or nobody, happens to say something."""
        data = source(ends, 60 * 262_144)
        receiver = ends.receive("out", options=options)
        sender = ends.send("in", options=[*options, "--credits", "1"])
        assert sender.ended(20).status == 0
        assert receiver.ended().status == 0
        assert (ends.place / "out").read_bytes() == data

    def test_more_credits_than_there_may_be_pipes(self, ends: Ends) -> None:
        data = source(ends)
        options = [*NONE, "-v", "--credits", "1024", "--chunk", "4096"]
        receiver = ends.receive("out", options=options)
        sent = ends.send("in", options=options).ended()
        received = receiver.ended()
        assert "no pipes to splice" in sent.err and "no pipes to splice" in received.err
        assert (sent.status, received.status) == (0, 0)
        assert (ends.place / "out").read_bytes() == data


class TestFilesThatChange:
    """Spliced pages show what happens to the file until they have arrived."""

    @pytest.mark.parametrize("size", [10, 1_000_000, 2_000_000])
    def test_when_all_is_on_its_way(self, ends: Ends, size: int) -> None:
        """All is read and waits in pipes: the file shrinks, is rewritten, grows."""
        source(ends, 1_000_000)
        receiver = ends.receive("--", "sh", "-c", "sleep 1; cat > out", options=NONE)
        sender = ends.send("in", options=NONE)
        time.sleep(0.5)
        with (ends.place / "in").open("r+b") as changed:
            changed.write(b"something else")
            changed.truncate(size)
        sent = sender.ended()
        assert sent.status == 1 and "changed while it was read" in sent.err
        receiver.ended()

    def test_on_stdin(self, ends: Ends) -> None:
        source(ends, 1_000_000)
        receiver = ends.receive("--", "sh", "-c", "sleep 0.6; cat > out", options=NONE)
        with (ends.place / "in").open("r+b") as file:
            sender = ends.send(stdin=file, options=NONE)
            time.sleep(0.3)
            os.pwrite(file.fileno(), b"something else", 0)
            sent = sender.ended()
        assert sent.status == 1 and "something was written to it" in sent.err
        receiver.ended()

    def test_random_moments(self, ends: Ends) -> None:
        """The published file is the file as it was, before or after."""
        data = source(ends, 3_000_000)
        for round_ in range(12):
            (ends.place / "in").write_bytes(data)
            receiver = ends.receive("out", options=NONE)
            sender = ends.send("in", options=NONE)
            time.sleep(0.004 * round_)
            os.truncate(ends.place / "in", 1000 * round_)
            sent, received = sender.ended(), receiver.ended()
            if sent.status == 0:
                assert received.status == 0
                whole = data, data[: 1000 * round_]
                assert (ends.place / "out").read_bytes() in whole
            (ends.place / "out").unlink(missing_ok=True)


class TestPeers:
    def test_tiny_segments_fill_a_pipe_before_the_record_is_whole(
        self, ends: Ends
    ) -> None:
        """A pipe holds so many pieces, however small: the rest goes through memory."""
        chunk, pieces = 262_144, 100
        data = [os.urandom(chunk) for _ in range(3)]
        receiver = ends.receive("out", options=[*NONE, "--timeout", "5"])
        peer = reach(ends)
        hello = Hello(SENDER, checksum=0, chunk=chunk, nonce=os.urandom(32))
        peer.prove_as_sender(KEY, hello)
        for number, body in enumerate(data):
            whole = record(DATA, body, number)
            for at in range(0, len(whole), pieces):
                peer.send(whole[at : at + pieces])
        peer.send(record(END, ENDING.pack(3 * chunk, 0), 3))
        assert peer.until(DONE)[0] == 3
        peer.send(record(BYE))
        assert receiver.ended().status == 0
        peer.close()
        assert (ends.place / "out").read_bytes() == b"".join(data)

    def test_one_that_leaves_in_the_middle(self, ends: Ends) -> None:
        receiver = ends.receive("out", options=NONE)
        peer = reach(ends)
        hello = Hello(SENDER, checksum=0, chunk=65536, nonce=os.urandom(32))
        peer.prove_as_sender(KEY, hello)
        peer.send(record(DATA, bytes(65536), 0)[:30_000])
        time.sleep(0.2)
        peer.close()
        ended = receiver.ended()
        assert ended.status == 1 and "in the middle of a record" in ended.err
        assert not (ends.place / "out").exists()


class TestKernelsThatRefuse:
    @pytest.fixture(autouse=True)
    def refusing(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        place = tmp_path_factory.mktemp("refusing")
        (place / "refusing.c").write_text(REFUSING)
        words = "cc -shared -fPIC -o refusing.so refusing.c -ldl".split()
        subprocess.run(words, cwd=place, check=True, timeout=60)
        monkeypatch.setenv("LD_PRELOAD", str(place / "refusing.so"))
        monkeypatch.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")

    @pytest.mark.parametrize("refused", ["fp", "ps", "sp", "pf"])
    def test_it_is_copied(
        self, ends: Ends, refused: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From file to pipe, pipe to socket, socket to pipe, pipe to file."""
        monkeypatch.setenv("REFUSED", refused)
        data = source(ends)
        receiver = ends.receive("out", options=[*NONE, "-v"])
        sent = ends.send("in", options=[*NONE, "-v"]).ended()
        received = receiver.ended()
        assert (sent.status, received.status) == (0, 0), (sent.err, received.err)
        assert ("cannot be spliced: read" in sent.err) == (refused == "fp")
        assert ("cannot be spliced to" in received.err) == (refused == "pf")
        assert (ends.place / "out").read_bytes() == data

    @pytest.mark.parametrize("refused", ["t", "te"])
    def test_the_checksum_reads_what_passes_by(
        self, ends: Ends, refused: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pipe's pages are copied for the checksum by tee(2): refused, and short."""
        monkeypatch.setenv("REFUSED", refused)
        data = source(ends)
        receiver = ends.receive("--", "sh", "-c", "cat > out", options=["-v"])
        assert ends.send("in").ended().status == 0
        received = receiver.ended()
        assert received.status == 0 and "is not spliced to" in received.err
        assert (ends.place / "out").read_bytes() == data


def test_signals_that_interrupt_calls_change_nothing(ends: Ends) -> None:
    data = source(ends, 20_000_000)
    receiver = ends.receive("--", "sh", "-c", "cat > out", options=NONE)
    with subprocess.Popen(["cat", "in"], stdout=subprocess.PIPE, cwd=ends.place) as cat:
        sender = ends.send(stdin=cat.stdout, options=[*NONE, "--rate", "30M"])
        for _ in range(60):
            for end in (sender, receiver):
                end.kill(signal.SIGSTOP)
                end.kill(signal.SIGCONT)
            time.sleep(0.005)
        assert (sender.ended().status, receiver.ended().status) == (0, 0)
    assert (ends.place / "out").read_bytes() == data

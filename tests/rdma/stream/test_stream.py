"""rdsend and rdrecv over TCP: the output equals the input, and targets survive."""

import json
import os
import stat
import subprocess
import threading
import time

import pytest

from tests.rdma.ends import Ends

pytestmark = pytest.mark.e2e
CHUNK = 262_144


@pytest.mark.parametrize("options", [[], ["--encrypt"], ["--checksum", "none"]])
@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 20 * CHUNK, 9_999_999])
def test_transfer_of_boundary_sizes(ends: Ends, length: int, options: list[str]) -> None:
    data = os.urandom(length)
    (ends.place / "in").write_bytes(data)
    receiver = ends.receive("out", options=options)
    assert ends.send("in", options=options).ended().status == 0
    assert receiver.ended().status == 0
    assert (ends.place / "out").read_bytes() == data
    receiver = ends.receive(options=options)
    thread = threading.Thread(target=ends.send_bytes, args=(data, options))
    thread.start()
    ended = receiver.ended()
    thread.join()
    assert (ended.status, ended.out) == (0, data)


@pytest.mark.soak
@pytest.mark.parametrize("checksum", ["xxh3", "none"])
def test_sparse_file_arrives_unchanged(ends: Ends, checksum: str, soaking: bool) -> None:
    """The size exceeds 32 bits (in the soak form). It is compared as it comes."""
    size = 5 << 30 if soaking else 64 << 20
    with (ends.place / "in").open("wb") as file:
        file.seek(size // 3)
        file.write(b"middle")
        file.truncate(size)
    within_s = size / 20e6 + 20
    receiver = ends.receive("--", "sh", "-c", "cmp - in && echo same")
    sender = ends.send("in", options=["--checksum", checksum, "--json"])
    ended = sender.ended(within_s)
    assert ended.status == 0, ended.err
    assert json.loads(ended.err)["bytes"] == size
    assert receiver.ended(within_s).out == b"same\n"


def test_transfer_with_small_chunks_and_one_credit(ends: Ends) -> None:
    data = os.urandom(100_001)
    receiver = ends.receive("out", options=["--chunk", "4096", "--credits", "1"])
    assert ends.send_bytes(data, ["--credits", "3"]).status == 0
    assert receiver.ended().status == 0
    assert (ends.place / "out").read_bytes() == data


@pytest.mark.smoke
def test_command_output_reaches_command_input(ends: Ends) -> None:
    receiver = ends.receive("--", "tr", "a-z", "A-Z")
    sender = ends.send("--", "sh", "-c", "echo one; sleep 0.3; echo two")
    assert sender.ended().status == 0
    ended = receiver.ended()
    assert (ended.status, ended.out) == (0, b"ONE\nTWO\n")


def test_bytes_of_slow_producer_are_sent_before_chunk_is_full(ends: Ends) -> None:
    receiver = ends.receive()
    sender = ends.send(stdin=subprocess.PIPE)
    assert sender.process.stdin and receiver.process.stdout
    for line in [b"one\n", b"two\n"]:
        sender.process.stdin.write(line)
        sender.process.stdin.flush()
        assert os.read(receiver.process.stdout.fileno(), 100) == line
    assert sender.ended().status == 0
    assert receiver.ended().status == 0


def test_transfer_over_ipv6(ends: Ends) -> None:
    receiver = ends.receive(options=["--bind", "::1"])
    assert ends.send("--", "echo", "six", host="::1").ended().status == 0
    assert receiver.ended().out == b"six\n"


def test_addresses_are_tried_in_order(ends: Ends) -> None:
    receiver = ends.receive(options=["--bind", "127.0.0.1"])
    sender = ends.send("--", "echo", "found", host="127.0.0.2,127.0.0.1")
    assert sender.ended().status == 0
    assert receiver.ended().out == b"found\n"


def test_announcement_has_port_transports_and_addresses(ends: Ends) -> None:
    ends.receive("/dev/null")
    assert int(ends.announced["port"]) > 0
    assert "tcp" in ends.announced["transports"].split(",")
    assert all(ends.announced["addresses"].split(","))


class TestTargets:
    def test_target_file_keeps_mode_and_symlink(self, ends: Ends) -> None:
        real, link = ends.place / "real", ends.place / "link"
        real.write_bytes(b"old")
        real.chmod(0o640)
        link.symlink_to("real")
        ends.pass_on(b"new", "link", options=["--sync"])
        assert link.is_symlink() and real.read_bytes() == b"new"
        assert stat.S_IMODE(real.stat().st_mode) == 0o640

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_target_file_keeps_owner(self, ends: Ends) -> None:
        target = ends.place / "out"
        target.write_bytes(b"old")
        os.chown(target, 1234, 4321)
        target.chmod(0o604)
        ends.pass_on(b"new", "out")
        state = target.stat()
        assert target.read_bytes() == b"new"
        assert (state.st_uid, state.st_gid) == (1234, 4321)
        assert stat.S_IMODE(state.st_mode) == 0o604

    def test_dangling_symlink_target_is_created(self, ends: Ends) -> None:
        (ends.place / "link").symlink_to("absent")
        ends.pass_on(b"new", "link")
        assert (ends.place / "link").is_symlink()
        assert (ends.place / "absent").read_bytes() == b"new"

    def test_dev_null_is_written_in_place(self, ends: Ends) -> None:
        before = os.stat("/dev/null")
        ends.pass_on(b"gone", "/dev/null")
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        assert os.stat("/dev/null").st_ino == before.st_ino

    def test_inherited_stdout_is_not_rewound(self, ends: Ends) -> None:
        log = ends.place / "log"
        with log.open("wb") as out:
            out.write(b"before ")
            out.flush()
            ends.pass_on(b"after", stdout=out)
        assert log.read_bytes() == b"before after"

    def test_target_is_replaced_only_when_complete(self, ends: Ends) -> None:
        (ends.place / "out").write_bytes(b"old")
        receiver = ends.receive("out")
        sender = ends.send(stdin=subprocess.PIPE)
        assert sender.process.stdin
        sender.process.stdin.write(b"new")
        sender.process.stdin.flush()
        assert (ends.place / "out").read_bytes() == b"old"
        assert sender.ended().status == 0
        assert receiver.ended().status == 0
        assert (ends.place / "out").read_bytes() == b"new"

    @pytest.mark.parametrize(
        "name", ["two words", "new\nline", "'\"$HOME`", "é", "n" * 255, "./-x"]
    )
    def test_unusual_target_name_is_written(self, ends: Ends, name: str) -> None:
        ends.pass_on(b"named", name)
        assert (ends.place / name).read_bytes() == b"named"


def test_non_blocking_stdin_and_stdout(ends: Ends) -> None:
    data = os.urandom(3_000_000)
    (ends.place / "in").write_bytes(data)
    from_us, to_cat = os.pipe()
    from_slow, to_sender = os.pipe()
    os.set_blocking(to_cat, False)
    os.set_blocking(from_slow, False)
    with (ends.place / "out").open("wb") as out:
        late = subprocess.Popen(["sh", "-c", "sleep 0.3; cat"], stdin=from_us, stdout=out)
    slow = subprocess.Popen(
        ["sh", "-c", "sleep 0.3; head -c 9 in; sleep 0.3; tail -c +10 in"],
        stdout=to_sender,
        cwd=ends.place,
    )
    receiver = ends.receive(stdout=to_cat)
    sender = ends.send(stdin=from_slow)
    for fd in (from_us, to_cat, from_slow, to_sender):
        os.close(fd)
    assert sender.ended().status == 0
    assert receiver.ended().status == 0
    assert (late.wait(), slow.wait()) == (0, 0)
    assert (ends.place / "out").read_bytes() == data


def test_signals_that_interrupt_calls_change_nothing(ends: Ends) -> None:
    data = os.urandom(30_000_000)
    (ends.place / "in").write_bytes(data)
    receiver = ends.receive("--", "sh", "-c", "cat > out")
    sender = ends.send("in", options=["--rate", "30M"])
    for _ in range(60):
        for pid in (sender.pid, receiver.pid):
            subprocess.run(["kill", "-STOP", str(pid)])
            subprocess.run(["kill", "-CONT", str(pid)])
    assert sender.ended().status == 0
    assert receiver.ended().status == 0
    assert (ends.place / "out").read_bytes() == data


def test_rate_and_statistics(ends: Ends) -> None:
    receiver = ends.receive("/dev/null", options=["--json"])
    ended = ends.send_bytes(os.urandom(1_000_000), ["--rate", "2000000", "--json", "-v"])
    said = json.loads(ended.err.splitlines()[-1])
    assert said["bytes"] == 1_000_000 and said["status"] == 0
    assert said["transport"] == "tcp" and said["bytes_per_s"] <= 2_100_000
    assert "Bandwidth" in ended.err
    assert json.loads(receiver.ended().err)["bytes"] == 1_000_000


def test_rate_limit_grants_no_burst_after_a_pause(ends: Ends) -> None:
    receiver = ends.receive()
    line = "sleep 1; head -c 600000 /dev/zero"
    ends.send("--", "sh", "-c", line, options=["--rate", "600000"])
    assert receiver.process.stdout
    os.read(receiver.process.stdout.fileno(), 1)
    since_s = time.monotonic()
    assert len(receiver.ended().out) == 599_999
    assert time.monotonic() - since_s > 0.6  # and not at once


class TestKeys:
    def test_new_key_is_private_and_usable(self, ends: Ends) -> None:
        assert ends.start("rdrecv", "--new-key", "key").ended().status == 0
        made = ends.place / "key"
        assert stat.S_IMODE(made.stat().st_mode) == 0o600
        assert len(bytes.fromhex(made.read_text())) == 32
        again = ends.start("rdrecv", "--new-key", "key").ended()
        assert again.status == 1 and "key" in again.err
        receiver = ends.receive(options=["--key-file", "key"])
        sender = ends.send("--", "echo", "hi", options=["--key-file", "key"])
        assert sender.ended().status == 0
        assert receiver.ended().out == b"hi\n"

    def test_environment_key_does_not_reach_the_command(self, ends: Ends) -> None:
        receiver = ends.receive()
        sender = ends.send("--", "sh", "-c", "echo ${RDPIPE_KEY-none}")
        assert sender.ended().status == 0
        assert receiver.ended().out == b"none\n"

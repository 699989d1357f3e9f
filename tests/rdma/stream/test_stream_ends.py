"""Edge cases of rdsend and rdrecv: closed descriptors, targets that are links or gone, faults at
the end, files that change or have no size, a blocked stderr."""

import errno
import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest
from testkit.network.pipes import SLOWNESS

from tests.rdma.ends import KEY, End, Ends
from tests.rdma.kernel import CAP_CHOWN, OPENAT, without, without_capability
from tests.rdma.records import ABORT, DATA, END, ENDING, SENDER, Hello, record

pytestmark = pytest.mark.e2e
NONE = ["--checksum", "none"]


class TestDescriptors:
    def test_verbose_lines_stay_out_of_target_without_stderr(self, ends: Ends) -> None:
        """Neither socket nor file gets the number 2, where -v would write into it."""
        data = b"clean" * 200_000
        ends.pass_on(data, "out", options=["-v"], before=lambda: os.closerange(0, 3))
        assert (ends.place / "out").read_bytes() == data

    def test_closed_stdin_or_stdout_is_refused_before_connection(self, ends: Ends) -> None:
        for tool, words, fd in (("rdsend", "127.0.0.1 9", 0), ("rdrecv", "0", 1)):
            line = f"exec {ends.folder / tool} {words} {fd}>&-"
            ended = End(["sh", "-c", line], ends.place).ended(3)
            assert ended.status == 1 and "Bad file descriptor" in ended.err

    def test_command_needs_no_stdout(self, ends: Ends) -> None:
        take = ["--", "sh", "-c", "cat >out"]
        ends.pass_on(b"all", *take, before=lambda: os.close(1))
        assert (ends.place / "out").read_bytes() == b"all"

    def test_key_on_stdin_leaves_stdin_to_the_command(self, ends: Ends) -> None:
        receiver = ends.receive()
        line = f"printf %s '{KEY.decode()}' | {ends.folder}/rdsend --key-fd 0 127.0.0.1"
        words = ["sh", "-c", f"{line} {ends.port} -- sh -c 'cat && echo open'"]
        assert End(words, ends.place).ended().status == 0
        assert receiver.ended().out == b"open\n"

    def test_key_file_hides_environment_key_from_command(self, ends: Ends) -> None:
        (ends.place / "key").write_bytes(KEY)
        (ends.place / "key").chmod(0o600)
        receiver = ends.receive()
        sender = ends.send(
            "--", "sh", "-c", "echo ${RDPIPE_KEY-none}", options=["--key-file", "key"]
        )
        assert sender.ended().status == 0
        assert receiver.ended().out == b"none\n"

    def test_wait_for_key_can_be_interrupted(self, ends: Ends) -> None:
        reader, writer = os.pipe()
        receiver = ends.start("rdrecv", "--key-fd", str(reader), "0", pass_fds=[reader])
        time.sleep(0.2)
        receiver.kill(signal.SIGINT)
        assert receiver.ended(3).status == -signal.SIGINT
        os.close(reader)
        os.close(writer)


class TestTargets:
    @pytest.mark.parametrize("name", ["fifo", "/dev/stdout", "/dev/full"])
    def test_target_that_is_no_regular_file_is_refused(self, ends: Ends, name: str) -> None:
        os.mkfifo(ends.place / "fifo")
        ended = ends.start("rdrecv", "0", name).ended(3)
        assert ended.status == 1 and f"{name} is not a regular file: let a shell" in ended.err
        assert os.listdir(ends.place) == ["fifo"]

    def test_unlinked_target_file_is_refused(self, ends: Ends) -> None:
        with (ends.place / "gone").open("wb") as gone:
            os.unlink(ends.place / "gone")
            end = ends.start("rdrecv", "0", "/dev/stdout", stdout=gone)
            ended = end.ended(3)
        assert ended.status == 1 and "/dev/stdout" in ended.err
        assert list(ends.place.iterdir()) == []

    @pytest.mark.parametrize("name", ["", "absent/", "absent//"])
    def test_invalid_target_name_is_refused_before_connection(self, ends: Ends, name: str) -> None:
        ended = ends.start("rdrecv", "0", name).ended(3)
        assert ended.status == 1 and "cannot" in ended.err

    def test_receiver_without_sender_leaves_target_unchanged(self, ends: Ends) -> None:
        (ends.place / "out").write_bytes(b"old")
        before = (ends.place / "out").stat()
        receiver = ends.receive("out", options=["--connect-timeout", "1"])
        refused = ends.send("--", "true", key=b"another key of 16+").ended()
        assert refused.status == 1
        assert receiver.ended(5).status == 1
        after = (ends.place / "out").stat()
        assert (ends.place / "out").read_bytes() == b"old"
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert os.listdir(ends.place) == ["out"]

    def test_target_created_meanwhile_is_not_replaced(self, ends: Ends) -> None:
        receiver = ends.receive("out")
        os.mkfifo(ends.place / "out")
        sent, received = ends.send_bytes(b"late"), receiver.ended()
        assert sent.status == 1 and received.status == 1
        assert "File exists" in received.err
        assert stat.S_ISFIFO((ends.place / "out").stat().st_mode)
        assert os.listdir(ends.place) == ["out"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_set_uid_bit_is_dropped_with_the_owner(self, ends: Ends) -> None:
        target = ends.place / "out"
        target.write_bytes(b"old")
        os.chown(target, 1234, 4321)
        target.chmod(0o6755)
        ended = ends.pass_on(b"new", "out", before=without_capability(CAP_CHOWN))
        assert "another owner" in ended.err
        assert target.stat().st_uid == 0
        assert stat.S_IMODE(target.stat().st_mode) == 0o755

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_lost_owner_is_reported_though_group_is_kept(self, ends: Ends) -> None:
        """The file lies in a shared folder."""

        def colleague() -> None:
            os.setgroups([4321])
            without_capability(CAP_CHOWN)()

        target = ends.place / "out"
        target.write_bytes(b"old")
        os.chown(target, 1234, 4321)
        ended = ends.pass_on(b"new", "out", before=colleague)
        assert "belong to another owner: " in ended.err
        assert (target.stat().st_uid, target.stat().st_gid) == (0, 4321)

    def test_sync_with_command_is_refused(self, ends: Ends) -> None:
        with (ends.place / "log").open("wb") as log:
            words = ["--sync", "0", "--", "cat"]
            ended = ends.start("rdrecv", *words, stdout=log).ended(3)
        assert ended.status == 2 and "--sync: what cat reads" in ended.err


class TestWholeness:
    def test_abort_after_end_leaves_old_file(self, ends: Ends) -> None:
        """Much data is still to be written when the end and the abort arrive."""
        (ends.place / "out").write_bytes(b"old")
        receiver = ends.receive("out")
        peer = ends.peer()
        peer.prove_as_sender(KEY, Hello(SENDER, checksum=0))
        body = bytes(65536)
        count = 32
        said = [record(DATA, body, number) for number in range(count)]
        said.append(record(END, ENDING.pack(len(body) * count, 0), count))
        peer.send(b"".join(said) + record(ABORT, b"no", 1))
        ended = receiver.ended(5)
        whole = (ends.place / "out").read_bytes() != b"old"
        assert whole == (ended.status == 0), ended

    def test_status_after_late_signal_agrees_with_target(self, ends: Ends) -> None:
        """At any moment of the signal, the result is status 0 or a signal after it, or the old
        file."""
        for round_ in range(12):
            (ends.place / "out").write_bytes(b"old")
            receiver = ends.receive("out", options=["--sync"])
            sender = ends.send("/proc/self/exe")
            time.sleep(0.002 * round_)
            receiver.kill(signal.SIGTERM)
            sent, received = sender.ended(), receiver.ended()
            if (ends.place / "out").read_bytes() == b"old":
                assert sent.status != 0 and received.status != 0
            else:
                assert sent.status == 0, (round_, sent, received)

    def test_sync_includes_the_folder(self, ends: Ends) -> None:
        """An end that cannot open the folder cannot sync it, and reports that."""
        no_folders = without(OPENAT, errno.EACCES, os.O_DIRECTORY)
        receiver = ends.receive("out", options=["--sync"], before=no_folders)
        assert ends.send_bytes(b"new").status != 0
        ended = receiver.ended()
        assert ended.status == 1 and "cannot sync the folder of" in ended.err, ended

    def test_command_may_run_longer_than_idle_timeout(self, ends: Ends) -> None:
        idle = ["--idle-timeout", "1"]
        receiver = ends.receive("--", "sh", "-c", "cat >out; sleep 1.6", options=idle)
        assert ends.send("--", "echo", "all", options=idle).ended().status == 0
        assert receiver.ended().status == 0

    def test_empty_file_that_grows_is_reported(self, ends: Ends) -> None:
        """The file is open before rdsend connects."""
        (ends.place / "in").touch()
        sender, peer = ends.send_to_peer("in")
        (ends.place / "in").write_bytes(b"late")
        peer.prove_as_receiver(KEY)
        assert "changed while it was read" in peer.last_words()
        assert sender.ended().status == 1

    @pytest.mark.parametrize("options", [[], NONE])
    @pytest.mark.parametrize("name", ["/proc/self/status", "/sys/kernel/mm/ksm/run"])
    def test_kernel_files_without_size_are_sent(
        self, ends: Ends, name: str, options: list[str]
    ) -> None:
        if not Path(name).exists():
            name = "/sys/kernel/fscaps"
        receiver = ends.receive(options=options)
        assert ends.send(name, options=options).ended().status == 0
        ended = receiver.ended()
        assert ended.status == 0 and ended.out


class TestWords:
    def test_json_reports_refused_connection(self, ends: Ends) -> None:
        ended = ends.start("rdsend", "--json", "127.0.0.1", "1").ended()
        said = json.loads(ended.err.splitlines()[-1])
        assert ended.status == 1 == said["status"]
        assert said["bytes"] == 0 and "connection refused" in said["error"]

    def test_name_with_newline_stays_in_one_line(self, ends: Ends) -> None:
        for words in (["127.0.0.1", "1", "a\nb\x1b[2J"], ["--key-file", "a\nb", "h", "1"]):
            ended = ends.start("rdsend", *words).ended()
            assert ended.err.count("\n") == 1 and "\x1b" not in ended.err
            assert "a?b" in ended.err

    def test_blocked_stderr_does_not_stop_heartbeats(self, ends: Ends) -> None:
        """After Ctrl-S its stderr blocks, but the other end still gets heartbeats."""
        receiver = ends.receive("/dev/null", options=["--timeout", "1.5"])
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(writer, True)
        sender = ends.send("/dev/zero", options=["--rate", "2M", "-v"], stderr=writer)
        time.sleep(2.5 * SLOWNESS)
        assert receiver.process.poll() is None
        sender.close()
        os.close(reader)
        os.close(writer)
        assert "left without a word" in receiver.ended().err

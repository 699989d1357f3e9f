"""Bad input gets one line that names the refused value and the next step."""

import os
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from testkit.network.pipes import Tools

from tests.rdma.ends import KEY, End, Ended, Ends
from tests.rdma.near import Near
from tests.rdma.records import SENDER, VERSION, Hello

pytestmark = pytest.mark.e2e

SILENT_NAME_SERVER = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
sys.exit(subprocess.call(sys.argv[1:]))
"""


def advises(ended: Ended, status: int, *words: str) -> None:
    """Assert that the advice is one line with these words."""
    assert ended.status == status, ended
    assert ended.err.count("\n") == 1 and ended.err.endswith("\n"), ended.err
    assert all(word in ended.err for word in words), ended.err


def run(ends: Ends, tool: str, *words: str, key: bytes | None = KEY) -> Ended:
    return ends.start(tool, *words, key=key).ended()


def alone(ends: Ends, *words: str) -> Ended:
    """Run rdsend on a machine that has no network, and a silent name server."""
    (ends.place / "resolv").write_text("nameserver 127.0.0.1\noptions timeout:30\n")
    inside = 'mount --bind resolv /etc/resolv.conf && exec "$0" "$@"'
    python = [sys.executable, "-c", SILENT_NAME_SERVER]
    end = End(
        ["unshare", "-mn", "sh", "-c", inside, *python, str(ends.folder / "rdsend")] + [*words],
        ends.place,
    )
    return end.ended()


class TestWhereTo:
    def test_silent_name_server_is_reported_in_time(self, ends: Ends) -> None:
        since = time.monotonic()
        ended = alone(ends, "--connect-timeout", "1", "some.where", "9")
        assert 0.9 < time.monotonic() - since < 20
        advises(ended, 1, '"some.where"', "no name server says within 1 s")

    def test_missing_route_is_reported(self, ends: Ends) -> None:
        advises(alone(ends, "192.0.2.1", "9"), 1, "192.0.2.1", "no route to it: check")

    def test_unknown_host_is_reported(self, ends: Ends) -> None:
        ended = ends.send(host="no-such-host.invalid", port=9).ended()
        advises(ended, 1, 'unknown host "no-such-host.invalid"')

    def test_missing_receiver_is_reported(self, ends: Ends) -> None:
        receiver = ends.receive("/dev/null")
        receiver.kill()
        receiver.ended()
        ended = ends.send("/dev/null").ended()
        where = f"127.0.0.1:{ends.port}"
        advises(ended, 1, where, "is rdrecv running there, on this port?")

    def test_missing_rdma_device_is_reported(self, ends: Ends) -> None:
        rdma = ["--transport", "rdma", "--device", "nothere0"]
        says = "there is no RDMA device here (see ibv_devices)"
        advises(ends.send(options=rdma, port=9).ended(), 1, says)
        advises(run(ends, "rdrecv", *rdma, "0"), 1, says)

    def test_taken_port_is_reported(self, ends: Ends) -> None:
        ends.receive("/dev/null")
        ended = run(ends, "rdrecv", str(ends.port), "/dev/null")
        advises(ended, 1, f"port {ends.port}", "it is taken: end the other program")

    @pytest.mark.parametrize("port", ["0", "65536", "http", "-1", ""])
    def test_invalid_port_is_refused(self, ends: Ends, port: str) -> None:
        advises(run(ends, "rdsend", "localhost", port), 2, f'"{port}"', "65535")


@pytest.mark.parametrize("option", ["--connect-timeout", "--idle-timeout"])
def test_timeout_below_a_millisecond_is_refused(ends: Ends, option: str) -> None:
    ended = run(ends, "rdsend", option, "0.0005", "localhost", "9")
    advises(ended, 2, f'{option} "0.0005"', "0, or at least 0.001")


def write_key(ends: Ends, key: bytes) -> None:
    (ends.place / "key").write_bytes(key)
    (ends.place / "key").chmod(0o600)


class TestKeys:
    def test_missing_key_is_refused(self, ends: Ends) -> None:
        for tool, words in (("rdsend", ["localhost", "9"]), ("rdrecv", ["0"])):
            advises(run(ends, tool, *words, key=None), 2, "no key", "--key-file FILE")

    @pytest.mark.parametrize("key", [b"", b"fifteen bytes .", b"fifteen bytes .\n"])
    def test_short_key_is_refused(self, ends: Ends, key: bytes) -> None:
        write_key(ends, key)
        said = ("the key from key has", "fewer than 16")
        words = ["--key-file", "key"]
        advises(run(ends, "rdsend", *words, "localhost", "9"), 2, *said)
        advises(run(ends, "rdrecv", *words, "0"), 2, *said)
        if key.strip():
            ended = run(ends, "rdrecv", "0", key=key.strip())
            advises(ended, 2, "RDPIPE_KEY", "fewer than 16")

    def test_oversized_key_file_is_refused(self, ends: Ends) -> None:
        write_key(ends, os.urandom(1026))
        ended = run(ends, "rdrecv", "--key-file", "key", "0")
        advises(ended, 2, "the key in key", "is it the right file?")

    @pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o666])
    def test_key_file_open_to_others_is_refused(self, ends: Ends, mode: int) -> None:
        write_key(ends, KEY)
        (ends.place / "key").chmod(mode)
        for tool, words in (("rdsend", ["localhost", "9"]), ("rdrecv", ["0"])):
            ended = run(ends, tool, "--key-file", "key", *words)
            advises(ended, 2, f"key has mode 0{mode:o}", "chmod 600 key", "rdrecv --new-key")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_key_file_of_other_user_is_refused(self, ends: Ends) -> None:
        write_key(ends, KEY)
        os.chown(ends.place / "key", 1234, 0)
        ended = run(ends, "rdrecv", "--key-file", "key", "0")
        advises(ended, 2, "key belongs to user 1234", "rdrecv --new-key")

    @pytest.mark.parametrize(
        "key", [b"a" * 16, b"aabcdefgabcdefgb", b"abcdefg" * 9, b"abcdefghi" * 2, b"0123456" * 3]
    )
    def test_guessable_key_is_refused(self, ends: Ends, key: bytes) -> None:
        write_key(ends, key)
        said = "is easy to guess", "8 different", "rdrecv --new-key"
        advises(run(ends, "rdrecv", "--key-file", "key", "0"), 2, "the key from key", *said)
        advises(run(ends, "rdsend", "localhost", "9", key=key), 2, "from RDPIPE_KEY", *said)

    @pytest.mark.parametrize("name", ["nothere", "a\nb\x1b[2J/key"])
    def test_missing_key_file_is_reported(self, ends: Ends, name: str) -> None:
        ended = run(ends, "rdsend", "--key-file", name, "localhost", "9")
        advises(ended, 2, "cannot open the key file", "No such file")
        assert "\x1b" not in ended.err

    @pytest.mark.parametrize("name", ["there", "a\nb\x1b[2J/key"])
    def test_uncreatable_new_key_file_is_reported(self, ends: Ends, name: str) -> None:
        (ends.place / "there").touch()
        ended = run(ends, "rdrecv", "--new-key", name)
        advises(ended, 1, "cannot make the key file")
        assert "\x1b" not in ended.err

    def test_wrong_key_is_reported_at_both_ends(self, ends: Ends) -> None:
        """Both ends get the message; the receiver waits on."""
        receiver = ends.receive()
        ended = ends.send("--", "true", key=b"another key of 16+").ended()
        advises(ended, 1, "the keys differ: check that both have the same key")
        receiver.kill(15)
        said = receiver.ended().err.splitlines()
        assert len(said) == 2 and "the keys differ" in said[0], said

    def test_other_protocol_version_is_reported_at_both_ends(self, ends: Ends) -> None:
        receiver = ends.receive()
        stranger = ends.peer()
        stranger.send(Hello(SENDER, version=7).whole())
        assert f"receiver version {VERSION}: install" in stranger.last_words()
        receiver.kill(15)
        said = receiver.ended().err.splitlines()
        assert len(said) == 2 and "the sender speaks version 7 of" in said[0], said


class TestFiles:
    def test_directory_as_source_is_refused(self, ends: Ends) -> None:
        advises(ends.send(".", port=9).ended(), 1, ". is a directory", "rdcp -r")

    @pytest.mark.parametrize("name", ["no", "a\nb", "it's", '"q"', " ", "./-x"])
    def test_missing_source_file_is_reported(self, ends: Ends, name: str) -> None:
        shown = name.replace("\n", "?")
        advises(ends.send(name, port=9).ended(), 1, f"cannot open {shown}: No such")

    @pytest.mark.parametrize(
        ("target", "says"),
        [(".", "Is a directory"), ("no/where", "No such file"), ("a\nb/", "a?b/")],
    )
    def test_unwritable_target_is_reported(self, ends: Ends, target: str, says: str) -> None:
        advises(run(ends, "rdrecv", "0", target), 1, says)
        assert not list(ends.place.iterdir())

    def test_sync_without_target_file_is_refused(self, ends: Ends) -> None:
        advises(run(ends, "rdrecv", "--sync", "0"), 2, "--sync", "stdout is not a file")

    def test_name_with_leading_dash_is_refused(self, ends: Ends) -> None:
        advises(run(ends, "rdsend", "-input", "h", "9"), 2, "./-name")
        advises(run(ends, "rdsend", "h", "9", "-input"), 2, '"-input"', "./-name")

    def test_option_after_port_is_refused(self, ends: Ends) -> None:
        ended = run(ends, "rdrecv", "0", "--encrypt")
        advises(ended, 2, '"--encrypt"', "options before PORT")
        assert not list(ends.place.iterdir())

    @pytest.mark.parametrize("checksum", ["xxh3", "none"])
    @pytest.mark.parametrize("size", [11_000_000, 10])
    def test_source_that_changes_size_is_reported(
        self, ends: Ends, size: int, checksum: str
    ) -> None:
        (ends.place / "in").touch()
        os.truncate(ends.place / "in", 10_000_000)
        receiver = ends.receive("/dev/null")
        sender = ends.send("in", options=["--rate", "10M", "--checksum", checksum])
        timer = threading.Timer(0.3, os.truncate, (ends.place / "in", size))
        timer.start()
        advises(sender.ended(), 1, "in changed while it was read")
        advises(receiver.ended(), 1, "in changed while it was read")
        timer.join()


@pytest.fixture
def tools(near: Near) -> Tools:
    return near()


class TestTools:
    """Advice of rdpipe and rdcp."""

    def said(self, tools: Tools, tool: str, words: Sequence[str]) -> Ended:
        ended = tools.run(tool, *words)
        return Ended(ended.returncode, ended.stdout, ended.stderr.decode())

    @pytest.mark.parametrize(
        ("words", "status", "says"),
        [
            (["no", "to"], 1, "rdcp: no: No such file"),
            (["a\nb", "to"], 1, "rdcp: a\\nb: No such file"),
            (["host1:no", "to"], 1, "rdcp: no: No such file"),
            (["dir", "to"], 1, "rdcp: dir: a directory: give -r to copy it"),
            (["file", "no/to"], 1, "rdcp: no/to: No such file"),
            (["file", "file", "to"], 1, "rdcp: to: No such file"),
            (["file", "./file"], 1, "rdcp: file: source and target are the same"),
            (["-r", "dir", "dir/to"], 1, "dir: a directory cannot be copied into"),
            (["--", "-oX:file", "to"], 2, '"-oX:file": a host name cannot begin with'),
            (["", "to"], 2, '"": an empty name'),
            (["h1:a", "h2:b", "to"], 2, 'rdcp: "h2:b": not on the machine of the first source'),
        ],
    )
    def test_rdcp(self, tools: Tools, words: list[str], status: int, says: str) -> None:
        (tools.place / "dir").mkdir()
        (tools.place / "file").touch()
        advises(self.said(tools, "rdcp", words), status, says)
        assert not (tools.place / "to").exists()

    @pytest.mark.parametrize(
        ("segments", "status", "says"),
        [
            (["host1:exit 3", "host2:cat"], 3, "segment 1 (host1:exit 3): exit status"),
            (["echo", "host1:cat; exit 4"], 4, "segment 2 (host1:cat; exit 4): exit"),
        ],
    )
    def test_rdpipe_reports_failed_segment_once(
        self, tools: Tools, segments: list[str], status: int, says: str
    ) -> None:
        """The fault is printed once, not by each hop that it ends."""
        advises(self.said(tools, "rdpipe", segments), status, f"rdpipe: {says}")

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--", "-oX:cat"], '"-oX:cat": '),
            (["host1:"], '"host1:": '),
            (["cat", "<in"], '"<in": only the first segment'),
            ([">out", "cat"], '">out": only the last segment'),
            (["cat", ">a\nb", "cat"], '">a\\nb": only the last segment'),
            (["--rsh", "--", "-oX", "cat"], '"-oX": a host name cannot begin with'),
            (["--rsh", "-l", "-oX", "host", "cat"], '"-oX@host": a host name cannot begin with'),
            (["--via", "host1=-x", "cat"], '"host1=-x": not HOST=ADDRESS'),
            (["cat", "host1:>>f"], '"host1:>>f": to append to a file, give the command cat >>'),
            (["--sync", "<in", "cat >f"], '"cat >f": --sync needs a file'),
        ],
    )
    def test_rdpipe(self, tools: Tools, words: list[str], says: str) -> None:
        advises(self.said(tools, "rdpipe", words), 2, says)
        assert os.listdir(tools.place) == []

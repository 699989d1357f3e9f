"""Login shells of other machines that print before the tool starts, ask, or never start it."""

import os
import subprocess
import time

import pytest
from testkit.network.pipes import Tools

from tests.rdma.near import Near

pytestmark = pytest.mark.e2e
NOISE = {
    "title": r"printf '\033]0;h\007'",
    "word": "printf Welcome",
    "lines": "echo Welcome; echo 'to the NAS'",
    "zeros": r"printf 'a\0b\n\0c'",
    "bytes": r"head -c 5000 /dev/zero | tr '\0' '\377'",
    "long line": "head -c 300000 /dev/zero | tr '\\0' x",
    "much": "yes | head -c 600000",
    "greeting": "echo rdpipe-agent; printf 'rdpipe-agent '",
}


@pytest.mark.parametrize("noise", NOISE)
def test_output_of_login_shell_is_ignored(near: Near, noise: str) -> None:
    tools = near(f"{NOISE[noise]}\n")
    ended = tools.run("rdpipe", "printf one", "host1:tr o O", "host2:rev", within_s=9)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"enO", b"")
    (tools.place / "file").write_bytes(b"there")
    ended = tools.run("rdcp", "file", "host1:copy", within_s=9)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tools.place / "copy").read_bytes() == b"there"
    ended = tools.run("rdpipe", "--rsh", "host1", "printf out", within_s=9)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"out", b"")


@pytest.mark.parametrize(
    ("first", "status", "says"),
    [
        ("echo No shell; exit 3", 3, b'ssh ended with status 3; the login shell printed "No shell'),
        ("exit 0", 1, b"(host1:cat): the session ended before rdpipe started there\n"),
        ("printf Bye; exit", 1, b'before rdpipe started there; the login shell printed "Bye": its'),
        ("yes", 1, rb'the login shell printed "y\ny\n'),
    ],
)
def test_login_that_starts_no_tool_is_quoted(
    near: Near, first: str, status: int, says: bytes
) -> None:
    ended = near(f"{first}\n").run("rdpipe", "host1:cat", within_s=9)
    assert ended.returncode == status
    assert says in ended.stderr


def test_time_limit_includes_start_of_session(near: Near) -> None:
    started: dict[str, tuple[Tools, subprocess.Popen[bytes]]] = {}
    for first in ("printf 'Press a key:'; exec sleep 600", "exec sleep 600"):
        tools = near(f"{first}\n")
        words = ["--timeout", "5", "printf x", "host1:cat"]
        started[first] = tools, tools.start("rdpipe", *words, before=os.setsid)
    since = time.monotonic()
    for first, (tools, process) in started.items():
        _, said = process.communicate(timeout=30)
        assert process.returncode == 1
        assert time.monotonic() - since < 15
        assert b"segment 2 (host1:cat): no rdpipe answered there within 5 s (--timeout)" in said
        assert b"try '%s' host1 true" % os.fsencode(tools.place.parent / "ssh") in said
        assert (b'the login shell printed "Press a key:"' in said) == ("Press" in first)
        tools.none_left()

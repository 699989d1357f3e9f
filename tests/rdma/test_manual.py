"""The examples of the manual pages and of docs/pipes.md, typed as they are printed.

All hosts are this machine, by a fake ssh that runs the command here. Folders at the root of a host
are below one of the test's own.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.harness import wait_for
from testkit.network.pipes import SLOWNESS

from tests.rdma.copy.test_rdcp import facts, make_tree
from tests.rdma.near import NearSsh

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
PAGES = ROOT / "base-station" / "rdma"
BLOCK = re.compile(r"^\.nf\n(.*?)^\.fi$", re.MULTILINE | re.DOTALL)
PAST_NS = 1_700_000_000_123_456_789
"""Time of folders. rsync keeps a time that differs by less than a second."""
ESCAPED = {r"\-": "-", r"\(aq": "'"}
OF_A_HOST = re.compile(r"(?<=[ :'<>])/(?=(home|scratch|store|plague)\b)")


def examples(tool: str) -> list[str]:
    """Return the lines that a page tells its reader to type."""
    text = (PAGES / f"{tool}.1").read_text()
    for escape, means in ESCAPED.items():
        text = text.replace(escape, means)
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    return [line for line in lines if re.search(r"\brd(send|recv|pipe|cp)\b", line)]


class Shell:
    """Shell in a folder with the files that the manual's lines name."""

    def __init__(self, tools: Path, place: Path) -> None:
        self.place = place
        self.started: list[subprocess.Popen[bytes]] = []
        programs = place / "bin"
        for folder in (programs, place / "home", place / "scratch", place / "plague"):
            folder.mkdir()
        (place / "home" / "letter").write_bytes(b"dear")
        (place / "scratch" / "zeroes").write_bytes(bytes(100_000))
        make_tree(place / "a")
        make_tree(place / "recordings")
        for path, _, _ in os.walk(place / "recordings", topdown=False):
            os.utime(path, ns=(PAST_NS, PAST_NS))
        NearSsh(programs).command  # noqa: B018 (the property writes the file)
        zfs = programs / "zfs"
        zfs.write_text('#!/bin/sh\n[ "$1" = send ] && echo "$@" || cat >received\n')
        zfs.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{tools}:{os.environ['PATH']}"}

    def start(self, line: str) -> "subprocess.Popen[bytes]":
        """Start a line. On each host its `/a` is another folder than the `a` that it comes from."""
        line = re.sub(r"(\w+):/a\b", r"\1:/\1", line).replace(" host ", " 127.0.0.1 ")
        line = OF_A_HOST.sub(f"{self.place}/", line)
        process = subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.place,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def types(self, line: str) -> bytes:
        return said(self.start(line), line)


def listens(port: int) -> bool:
    """Return whether a process listens at this TCP port (/proc/net/tcp, tcp6: state 0A)."""
    wanted = re.compile(rf"^ *\d+: [0-9A-F]+:{port:04X} \S+ 0A ", re.MULTILINE)
    return any(wanted.search(Path(f"/proc/net/{name}").read_text()) for name in ("tcp", "tcp6"))


def said(process: "subprocess.Popen[bytes]", line: str) -> bytes:
    """Return the output of a process that ended well."""
    out, err = process.communicate(timeout=30 * SLOWNESS)
    assert process.returncode == 0, (line, err)
    return out


@pytest.fixture
def shell(rdma_tools: Path, tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(rdma_tools, tmp_path)
    yield shell
    for process in shell.started:
        process.kill()  # bash has become the one program of its line
        process.communicate()


def test_rdsend_and_rdrecv(shell: Shell) -> None:
    new_key, takes, sends = examples("rdsend")
    shell.types(new_key)
    taking = shell.start(takes)
    wait_for(lambda: listens(7471), "rdrecv does not listen", 10.0 * SLOWNESS)
    shell.types(sends)
    said(taking, takes)
    listed = subprocess.check_output(["tar", "-tf", shell.place / "backup.tar"])
    assert listed.strip().endswith(b"/home/letter")


def test_rdpipe(shell: Shell) -> None:
    lines = examples("rdpipe")
    here = Path("/etc/hostname").read_bytes()
    expected = (b"OLLEH\n", b"", here, here + here, b"", b"")
    assert [shell.types(line) for line in lines] == list(expected)
    received = (shell.place / "received").read_bytes()
    assert received == b"send -I tank@a tank@b\n"
    assert facts(shell.place / "plague") == facts(shell.place / "recordings")


def test_rdcp(shell: Shell) -> None:
    for line in examples("rdcp"):
        shell.types(line)
    assert facts(shell.place / "store") == facts(shell.place / "a")
    assert facts(shell.place / "plague") == facts(shell.place / "recordings")


def test_documentation_of_the_pipes(shell: Shell) -> None:
    (shell.place / "store").mkdir()
    page = (ROOT / "docs" / "pipes.md").read_text()
    lines = re.findall(r"^ {4}(?!make |sudo |man )(.*)$", page, re.MULTILINE)
    here = Path("/etc/hostname").read_bytes()
    assert [shell.types(line) for line in lines] == [b"OLLEH\n", *[b""] * 4, here + here]
    plague = shell.place / "store" / "plague"
    assert facts(plague) == facts(shell.place / "recordings")

"""`rdpipe --rsh`, alone and as the transport of rsync."""

import contextlib
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from testkit.network.pipes import SLOWNESS, Ended, Tools, processes
from testkit.network.sshd import Sshd

from tests.rdma.near import Near

pytestmark = pytest.mark.e2e
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, may, who)
    for tag, may, who in [(1, 6, -1 & 0xFFFFFFFF), (2, 4, 1234), (4, 4, -1 & 0xFFFFFFFF)]
    + [(16, 4, -1 & 0xFFFFFFFF), (32, 0, -1 & 0xFFFFFFFF)]
)
"""ACL in the kernel's form: the owner reads and writes, user 1234 and the group read."""


def make_tree(folder: Path) -> None:
    """Make files of all kinds that rsync keeps, two names of one file among them."""
    (folder / "deep").mkdir(parents=True)
    (folder / "big").write_bytes(os.urandom(3_000_000))
    for number in range(200):
        (folder / "deep" / f"{number} of them").write_bytes(b"%d" % number)
    (folder / "link").symlink_to("nowhere")
    os.link(folder / "big", folder / "deep" / "same")
    with contextlib.suppress(OSError):  # a file system without them
        os.setxattr(folder / "big", "user.fpvcar", b"value")
        os.setxattr(folder / "big", "system.posix_acl_access", ACL)


def words(tools: Tools, *more: str | Path) -> list[str]:
    far = f"--ssh \"{tools.ssh}\" --remote-path '{tools.folder}'"
    return ["rsync", "-e", f"'{tools.folder}/rdpipe' {far} --rsh", *map(str, more)]


def rsync(tools: Tools, *more: str | Path) -> Ended:
    return subprocess.run(
        words(tools, *more), capture_output=True, timeout=60 * SLOWNESS, env=tools.environment
    )


def differences(one: Path, other: Path, *more: str, kept: str = "-aHAX") -> bytes:
    """Return a line for each difference between two folders of this machine."""
    row = ["rsync", kept, "-cni", "--delete", *more, f"{one}/", f"{other}/"]
    return subprocess.run(row, capture_output=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(("source", "target"), [("", "host1:"), ("host1:", "")])
def test_rsync_keeps_all_and_repeats_nothing(tools: Tools, source: str, target: str) -> None:
    tree, copy = tools.place / "tree", tools.place / "copy"
    make_tree(tree)
    row = ["-aHAX", "-i", f"{source}{tree}/", f"{target}{copy}/"]
    ended = rsync(tools, *row)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert differences(tree, copy) == b""
    assert (copy / "big").stat().st_ino == (copy / "deep" / "same").stat().st_ino
    ended = rsync(tools, *row)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_rsync_deletes_and_excludes(tools: Tools) -> None:
    tree, copy = tools.place / "tree", tools.place / "copy"
    make_tree(tree)
    make_tree(copy)
    os.utime(copy / "big", (1, 1))  # rsync compares size and time
    (copy / "other").write_bytes(b"x")
    (tree / "deep" / "left out").write_bytes(b"x")
    row = ["-aHAX", "--delete", "--exclude", "left*", f"{tree}/", f"host1:{copy}/"]
    ended = rsync(tools, *row)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert differences(tree, copy, "--exclude", "left*") == b""
    assert not (copy / "other").exists() and not (copy / "deep" / "left out").exists()


def test_rsync_reports_partial_copy(tools: Tools) -> None:
    """The remote rsync ends with 23, after messages that have to arrive first."""
    make_tree(tools.place / "tree")
    there = f"host1:{tools.place}/"
    ended = rsync(tools, "-a", f"{there}missing", f"{there}tree", tools.place / "copy")
    assert ended.returncode == 23
    assert b"missing" in ended.stderr and b"\nrd" not in b"\n" + ended.stderr
    assert differences(tools.place / "tree", tools.place / "copy" / "tree", kept="-a") == b""


def test_interrupted_rsync_leaves_no_process(tools: Tools) -> None:
    (tools.place / "big").write_bytes(os.urandom(20_000_000))
    row = words(tools, "--bwlimit=1000", tools.place / "big", f"host1:{tools.place}/copy")
    process = subprocess.Popen(
        row, stderr=subprocess.DEVNULL, start_new_session=True, env=tools.environment
    )
    tools.pid_of("rsync\0--server\0")
    time.sleep(0.5)  # under way
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=10 * SLOWNESS) in (20, 130)  # of rsync, of rdpipe
    tools.none_left()
    assert not (tools.place / "copy").exists()


def sessions(sshd: Sshd) -> list[int]:
    """Return the processes of the server's open sessions."""
    below = {sshd.process.pid}
    for pid, row in sorted(processes()):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent in below and row[0].startswith("sshd"):
                below.add(pid)
    return sorted(below - {sshd.process.pid})


def test_rsync_ends_when_host_is_gone(tools: Tools, sshd: Sshd) -> None:
    (tools.place / "big").write_bytes(os.urandom(20_000_000))
    row = words(tools, "--bwlimit=1000", tools.place / "big", f"host1:{tools.place}/copy")
    process = subprocess.Popen(row, stderr=subprocess.PIPE, env=tools.environment)
    tools.pid_of("rsync\0--server\0")
    gone = sessions(sshd)
    assert gone
    for pid in gone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, said = process.communicate(timeout=15 * SLOWNESS)
    assert process.returncode != 0, said  # 20: the agent's SIGTERM reached the server in time
    tools.none_left()


@pytest.mark.parametrize("status", [0, 3, 23, 255])
def test_status_and_output_are_those_of_the_command(tools: Tools, status: int) -> None:
    """All output arrives, even that of a command that failed."""
    line = f"head -c 3000000 /dev/zero; echo why >&2; exit {status}"
    process = tools.start("rdpipe", "--rsh", "host1", line)  # stdin stays open
    assert process.stdout and process.stderr
    assert process.stdout.read() == bytes(3_000_000)
    assert process.stderr.read() == b"why\n"
    assert process.wait(timeout=10) == status


def test_rdpipe_ends_with_the_command(tools: Tools) -> None:
    process = tools.start("rdpipe", "--rsh", "host1", "sleep 0.5; date +%s.%N")  # stdin stays open
    assert process.stdout
    ended_s = float(process.stdout.read())
    assert process.wait(timeout=10) == 0
    assert time.time() - ended_s < 9.0 * SLOWNESS


def test_command_need_not_read_its_input(tools: Tools) -> None:
    with open("/dev/zero", "rb") as endless:
        process = tools.start("rdpipe", "--rsh", "host1", "head -c 1", stdin=endless.fileno())
    out, said = process.communicate(timeout=20)
    assert (process.returncode, out, said) == (0, b"\0", b"")


def test_small_writes_are_passed_on_at_once(tools: Tools) -> None:
    process = tools.start("rdpipe", "--rsh", "host1", "cat")
    assert process.stdin and process.stdout
    took_s = []
    for number in range(20):
        since_s = time.monotonic()
        process.stdin.write(b"%d\n" % number)
        process.stdin.flush()
        assert process.stdout.readline() == b"%d\n" % number
        took_s.append(time.monotonic() - since_s)
    assert sorted(took_s)[10] < 0.1 * SLOWNESS
    process.communicate(timeout=10)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("row", "host"), [(["host"], "host"), (["-l", "me", "::1"], "me@::1"), (["me@host"], "me@host")]
)
def test_command_is_joined_and_host_given_as_to_ssh(near: Near, row: list[str], host: str) -> None:
    tools = near('echo "$1" >asked\n')
    ended = tools.run("rdpipe", "--rsh", *row, "echo", "a;", "echo  'b  c'")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"a\nb  c\n", b"")
    assert (tools.place / "asked").read_text() == f"{host}\n"

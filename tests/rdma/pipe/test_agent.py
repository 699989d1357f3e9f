"""rdpipe's agents on this machine: files as segments, faults, and causes of their end."""

import os
import pwd
import re
import signal
import subprocess

import pytest
from testkit.harness import wait_for
from testkit.network.pipes import Tools

from tests.rdma.agent import READ, VERSION, WRITE, frame, texts, work
from tests.rdma.near import Near

pytestmark = pytest.mark.e2e


@pytest.fixture
def tools(near: Near) -> Tools:
    return near()


def agents(tools: Tools, count: int, within_s: float = 30) -> list[int]:
    """Wait until so many processes are agents or their guards."""

    def found() -> list[int]:
        return [pid for pid, words in tools.ours().items() if words[1:2] == ["--agent"]]

    wait_for(lambda: len(found()) >= count, f"fewer agents than {count}", within_s)
    return found()


@pytest.mark.parametrize("host", ["", "host1:"])
def test_executable_target_file_is_written_not_run(tools: Tools, host: str) -> None:
    target = tools.place / "script"
    target.write_text("#!/bin/sh\ntouch ran\n")
    target.chmod(0o755)
    ended = tools.run("rdpipe", f"{host}>script", stdin=b"data\n")
    assert ended.returncode == 0, ended.stderr
    assert not (tools.place / "ran").exists()
    assert target.read_bytes() == b"data\n"


@pytest.mark.parametrize("middle", [READ, WRITE])
def test_agent_refuses_file_segment_without_hop(tools: Tools, middle: int) -> None:
    (tools.place / "script").write_text("#!/bin/sh\ntouch ran\n")
    (tools.place / "script").chmod(0o755)
    asked = frame(b"R", work(middle, b"script"))
    words = [str(tools.folder / "rdpipe"), "--agent", "10000"]
    ended = subprocess.run(words, input=asked, capture_output=True, timeout=10, cwd=tools.place)
    assert b"a segment that does not fit its hops" in ended.stdout
    assert not (tools.place / "ran").exists()


def test_ctrl_c_ends_rdpipe_though_an_agent_is_stuck(tools: Tools) -> None:
    process = tools.start("rdpipe", "sleep 1000", "cat")
    tools.await_words("sleep", "1000")
    stuck = agents(tools, 4)
    for pid in stuck:
        os.kill(pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=8) == 130
    for pid in sorted(set(stuck) & set(tools.ours())):
        os.kill(pid, signal.SIGCONT)
    tools.none_left()


@pytest.mark.parametrize("host", ["", "host1:"])
@pytest.mark.parametrize("fails", ["producer", "consumer"])
def test_command_may_clean_up_after_failure_of_other_segment(
    tools: Tools, host: str, fails: str
) -> None:
    tidy = "trap 'sleep 0.2; echo >tidied; exit 0' TERM; echo >ready; echo x; {0}"
    fault = "until [ -e ready ]; do sleep 0.1; done; exit 4"
    segments = {
        "producer": [f"echo x; {fault}", host + tidy.format("cat")],
        "consumer": [host + tidy.format("sleep 1000"), fault],
    }
    ended = tools.run("rdpipe", *segments[fails])
    assert ended.returncode == 4, ended.stderr
    assert (tools.place / "tidied").exists()


def test_ignored_signals_stay_ignored(tools: Tools) -> None:
    def ignore() -> None:  # as nohup, and as sh with "&"
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = tools.start("rdpipe", "echo x; sleep 0.5", "host1:cat", before=ignore)
    tools.await_words("sleep", "0.5")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (0, b"x\n"), err


@pytest.mark.parametrize("host", ["", "host1:"])
def test_commands_run_by_the_login_shell(tools: Tools, host: str) -> None:
    """The user's login shell runs the commands, as with sshd."""
    shell = os.path.realpath(pwd.getpwuid(os.getuid()).pw_shell)
    ended = tools.run("rdpipe", f"{host}readlink /proc/$$/exe; true")
    assert (ended.returncode, ended.stdout.decode()) == (0, f"{shell}\n"), ended.stderr


def test_verbose_lines_name_host_and_hop(tools: Tools) -> None:
    ended = tools.run("rdpipe", "-v", "echo x", "host1:cat", "host2:cat")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.decode().splitlines()
    where = re.compile(r"rd(send|recv): (here|host[12]), hop ([123]): ")
    found = [where.match(line) for line in lines]
    assert lines and all(found), lines
    places = {(one[1], one[2], one[3]) for one in found if one}
    assert places == {
        ("send", "here", "1"),
        ("recv", "host1", "1"),
        ("send", "host1", "2"),
        ("recv", "host2", "2"),
        ("send", "host2", "3"),
        ("recv", "here", "3"),
    }


def stand_in(tools: Tools, output: bytes) -> list[str]:
    """Return the options for an rdpipe on the other machine that sends these bytes."""
    folder = tools.place / "other"
    folder.mkdir()
    (folder / "output").write_bytes(output)
    program = folder / "rdpipe"
    program.write_text(f"#!/bin/sh\ncat '{folder}/output'\nexec cat >/dev/null\n")
    program.chmod(0o755)
    return ["--remote-path", str(folder)]


def test_agent_of_other_version_is_reported(tools: Tools) -> None:
    other = stand_in(tools, b"Welcome!\nrdpipe-agent 8\n")
    ended = tools.run("rdpipe", *other, "host1:cat")
    assert ended.returncode != 0
    says = b"agent version 8 there and %d here: install the same release" % VERSION
    assert says in ended.stderr


def test_machine_with_older_release_is_reported(tools: Tools) -> None:
    """An rdpipe before version 7 knows no agents, only leashes."""
    other = stand_in(tools, b"")
    program = tools.place / "other" / "rdpipe"
    program.write_text("#!/bin/sh\necho \"rdpipe: unrecognized option '$1'\" >&2\nexit 2\n")
    ended = tools.run("rdpipe", *other, "host1:cat")
    assert ended.returncode == 2
    assert b"segment 1 (host1:cat): rdpipe there is older, without agent version 7" in ended.stderr


def test_remote_note_is_escaped_into_one_line(tools: Tools) -> None:
    note = frame(b"N", texts(b"a\nrdpipe: b\x1b[2J")) + frame(b"X", texts(b"3"))
    other = stand_in(tools, b"rdpipe-agent %d\n" % VERSION + note)
    ended = tools.run("rdpipe", *other, "host1:cat", "cat")
    assert ended.returncode == 3
    assert b"segment 1 (host1:cat): a\\nrdpipe: b\\x1b[2J\n" in ended.stderr


def test_agent_refuses_rdpipe_of_other_version(tools: Tools) -> None:
    words = [str(tools.folder / "rdpipe"), "--agent", "10000"]
    ended = subprocess.run(words, input=b"leash 4 - -\n", capture_output=True, timeout=10)
    assert ended.stdout.startswith(b"rdpipe-agent %d\n" % VERSION)
    assert b"refused what rdpipe sent: no message of this version" in ended.stdout


def test_older_rdpipe_is_told_to_install_the_same_release(tools: Tools) -> None:
    ended = subprocess.run([tools.folder / "rdpipe", "--leash"], capture_output=True, timeout=10)
    assert ended.returncode == 2
    assert b"all machines need the same" in ended.stderr

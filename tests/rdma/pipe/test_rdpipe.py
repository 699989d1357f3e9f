"""rdpipe between hosts that are all this machine, over SSH."""

import os
import re
import signal
import subprocess
import time

import pytest
from testkit.network.pipes import MARK, SLOWNESS, Tools, environment
from testkit.network.sshd import Sshd

pytestmark = pytest.mark.e2e


@pytest.mark.smoke
def test_first_example_of_the_article(tools: Tools) -> None:
    line = (
        f"PATH='{tools.folder}':$PATH; rdpipe() {{ command rdpipe --ssh"
        f' "{tools.ssh}" --remote-path \'{tools.folder}\' "$@"; }}\n'
        "echo hello | rdpipe host1:'tr [:lower:] [:upper:]' host2:'rev'"
    )
    words = ["bash", "-c", line]
    ended = subprocess.run(words, capture_output=True, timeout=30 * SLOWNESS)
    assert (ended.stdout, ended.returncode) == (b"OLLEH\n", 0), ended.stderr


def test_tee_gives_data_to_two_hosts(tools: Tools) -> None:
    """The output of both hosts shows that the outer pipe waits for the inner one."""
    inner = tools.place / "rdpipe"
    far = f"--ssh \"{tools.ssh}\" --remote-path '{tools.folder}'"
    inner.write_text(f"#!/bin/sh\nexec '{tools.folder}/rdpipe' {far} \"$@\"\n")
    inner.chmod(0o755)
    tee = f"host2:tee >({inner} host3:'sleep 0.5; rev') | cat"
    ended = tools.run("rdpipe", "host1:cat", tee, stdin=b"hello\n")
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == [b"hello", b"olleh"]


@pytest.mark.parametrize(
    ("segments", "stdin", "out"),
    [
        (["host1:tr a-z A-Z"], b"one", b"ONE"),
        (["host1:cat", "host1:rev", "host1:cat"], b"same\n", b"emas\n"),
        (["echo here", "host1:rev", "cat"], b"", b"ereh\n"),
        (["host1:echo there", "tr t T"], b"", b"There\n"),
        (["cat", "rev"], b"local\n", b"lacol\n"),
        (["host1:true"], b"", b""),
        ([":host1:tr a b 2>&1 | grep -c found", "cat"], b"", b"1\n"),
        (["host1:printf %s 'a  b' \"c'd\" e\\\\nf\nprintf '!g'"], b"", b"a  bc'de\\nf!g"),
        (["host1:cat"] * 4, b"x" * 300_000, b"x" * 300_000),
        (["echo a; sleep 0.2", "host1:head -n1", "host2:cat"], b"", b"a\n"),
    ],
)
def test_pipe_passes_data_through_segments(
    tools: Tools, segments: list[str], stdin: bytes, out: bytes
) -> None:
    ended = tools.run("rdpipe", *segments, stdin=stdin)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == out


@pytest.mark.parametrize(
    "name", ["plain", "two words", "new\nline", 'it\'s "quoted"', "-n", "$HOME `id` !!"]
)
def test_file_names_reach_the_file_system_as_typed(tools: Tools, name: str) -> None:
    source, target = tools.place / name, tools.place / f"{name}.out"
    source.write_bytes(b"content")
    ended = tools.run("rdpipe", f"host1:<{source}", f"host2:>{target}")
    assert ended.returncode == 0, ended.stderr
    assert target.read_bytes() == b"content"
    ended = tools.run("rdpipe", f"<{name}", f">{name}.copy")  # in the current folder
    assert ended.returncode == 0, ended.stderr
    assert (tools.place / f"{name}.copy").read_bytes() == b"content"


def test_tilde_is_home_of_remote_user(tools: Tools, sshd: Sshd) -> None:
    ended = tools.run("rdpipe", "echo x", "host1:>~/said")
    assert ended.returncode == 0, ended.stderr
    assert (sshd.folder / "said").read_bytes() == b"x\n"
    assert tools.run("rdpipe", "host1:<~/said", "cat").stdout == b"x\n"


@pytest.mark.parametrize(
    ("segments", "status", "said"),
    [
        (["host1:exit 3", "host2:cat"], 3, b"segment 1 (host1:exit 3): exit status 3"),
        (["host1:echo", "host2:cat; exit 4"], 4, b"segment 2 "),
        (["echo lots", "exit 5"], 5, b"segment 2 (exit 5): exit status 5"),
        (["host1:kill -9 $$", "host2:cat"], 137, b"segment 1 "),
        (["host1:yes", "host2:head -c 4"], 141, b"segment 1 (host1:yes)"),
        (["host1:echo why >&2; exit 6", "cat"], 6, b"why\n"),
        (["host1:nothere", "cat"], 127, b"nothere"),
        (["host1:</nothere", "host2:cat"], 1, b"segment 1 (host1:</nothere)"),
        (["echo x", "host1:>/nothere/x"], 1, b"segment 2 (host1:>/nothere/x)"),
    ],
)
def test_failed_segment_sets_status_and_is_named(
    tools: Tools, segments: list[str], status: int, said: bytes
) -> None:
    ended = tools.run("rdpipe", *segments)
    assert ended.returncode == status, ended.stderr
    assert said in ended.stderr


def test_verbose_reports_transport_and_bandwidth(tools: Tools) -> None:
    ended = tools.run("rdpipe", "-v", "host1:echo x", "cat")
    assert ended.returncode == 0
    assert b"Bandwidth " in ended.stderr and b"over tcp" in ended.stderr


def test_last_example_of_the_article(tools: Tools) -> None:
    (tools.place / "zeroes").write_bytes(bytes(3_000_000))
    before = os.stat("/dev/null")
    row = [f"host1:<{tools.place}/zeroes", "host2:>/dev/null"]
    ended = tools.run("rdpipe", "-v", *row)
    assert ended.returncode == 0, ended.stderr
    assert b"Bandwidth " in ended.stderr and b"3.000 MB in " in ended.stderr
    after = os.stat("/dev/null")
    assert (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)


def test_via_sets_data_address_of_host(tools: Tools) -> None:
    row = ["-v", "--via", "host1=::1", "cat", "host1:cat"]
    ended = tools.run("rdpipe", *row, stdin=b"x")
    assert (ended.stdout, ended.returncode) == (b"x", 0), ended.stderr
    assert b"sending to [::1]:" in ended.stderr
    row[2] = "host1=127.0.0.1 -x"
    assert tools.run("rdpipe", *row, stdin=b"x").returncode == 2


def test_first_segment_need_not_read_stdin(tools: Tools) -> None:
    process = tools.start("rdpipe", "host1:echo x", "host2:cat")  # stdin stays open
    assert process.stdout and process.stdout.read() == b"x\n"
    assert process.wait(timeout=10) == 0


def test_failed_producer_leaves_old_file(tools: Tools) -> None:
    target = tools.place / "target"
    target.write_bytes(b"old")
    ended = tools.run("rdpipe", "host1:echo new; exit 1", f"host2:>{target}")
    assert ended.returncode == 1
    assert target.read_bytes() == b"old"
    assert os.listdir(tools.place) == ["target"]


def test_consumer_of_cut_stream_sees_no_end(tools: Tools) -> None:
    seen = tools.place / "seen"
    ended = tools.run("rdpipe", "host1:echo a; exit 9", f"host2:cat; echo end >{seen}")
    assert ended.returncode == 9
    assert not seen.exists()


@pytest.mark.parametrize(
    "refused",
    [
        ["-oProxyCommand=touch x:cat"],
        ["--", "-oProxyCommand=touch:cat"],
        ["--", "me@-oProxyCommand=touch:cat"],
        ["host1:"],
        ["<"],
        ["cat", "<file"],
        [">file", "cat"],
        [],
    ],
)
def test_bad_arguments_are_refused(tools: Tools, refused: list[str]) -> None:
    ended = tools.run("rdpipe", *refused)
    assert ended.returncode == 2
    assert ended.stderr
    assert os.listdir(tools.place) == []


def test_host_unreachable_by_ssh_is_named(tools: Tools) -> None:
    ended = subprocess.run(
        [tools.folder / "rdpipe", "--ssh", "ssh -F none -p 1", "127.0.0.1:cat", "cat"],
        input=b"",
        capture_output=True,
        timeout=30,
    )
    assert ended.returncode == 255
    assert b"segment 1 (127.0.0.1:cat): no session: ssh ended" in ended.stderr


def test_missing_tools_are_named(tools: Tools) -> None:
    words = [str(tools.folder / "rdpipe"), "--ssh", tools.ssh, "--remote-path", "/no/where"]
    ended = subprocess.run([*words, "host1:cat", "cat"], input=b"", capture_output=True, timeout=30)
    assert ended.returncode == 127
    assert b"no rdpipe found there: install it or give --remote-path" in ended.stderr


def _chain(tools: Tools, *options: str) -> "subprocess.Popen[bytes]":
    """Start a chain over two hosts. Each host's shell has a child of its own, and one leaves its
    group."""
    mark = tools.place
    (tools.place / "sleeper").write_text("#!/bin/sh\nsleep 1000\n")
    (tools.place / "sleeper").chmod(0o755)
    process = tools.start(
        "rdpipe",
        *options,
        f"host1:setsid {mark}/sleeper one & {mark}/sleeper two; true",
        f"host2:trap '' TERM; {mark}/sleeper three; cat",
    )
    for name in ("one", "two", "three"):
        tools.await_words(f"{mark}/sleeper", name)
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ended_rdpipe_leaves_no_process(tools: Tools, number: signal.Signals) -> None:
    process = _chain(tools)
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    tools.none_left()


def test_ctrl_c_on_process_group_leaves_no_process(tools: Tools) -> None:
    process = subprocess.Popen(
        tools.words("rdpipe", ["host1:sleep 1000; true", "host2:cat"]),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=tools.environment,
    )
    tools.await_words("sleep", "1000")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    tools.none_left()


@pytest.mark.parametrize(
    "needles",
    [
        ("ssh", "host1", "exec"),
        ("ssh", "host2", "exec"),
        ("rdpipe\0--agent\0",),
        ("rdsend\0", "one"),
        ("rdrecv\0", "three"),
    ],
)
def test_killed_part_leaves_no_process(tools: Tools, needles: tuple[str, ...]) -> None:
    process = _chain(tools)
    os.kill(tools.pid_of(*needles), signal.SIGKILL)
    process.communicate(timeout=15)
    assert process.returncode != 0
    tools.none_left()


@pytest.mark.parametrize(("options", "limit_s"), [([], 10), (["--timeout", "5"], 5)])
def test_silent_link_ends_both_sides(tools: Tools, options: list[str], limit_s: int) -> None:
    process = _chain(tools, *options)
    begun = time.monotonic()
    frozen = tools.pid_of("ssh", "host2", "exec")
    os.kill(frozen, signal.SIGSTOP)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert time.monotonic() - begun > limit_s - 1
    assert b"segment 2 " in said and b"nothing heard from there for %d s" % limit_s in said
    tools.none_left()


def test_stall_shorter_than_timeout_is_survived(tools: Tools) -> None:
    """The limit holds for the sessions, too."""
    process = tools.start("rdpipe", "--timeout", "60", "host1:sleep 14; echo late", "host2:cat")
    tools.await_words("sleep", "14")
    frozen = tools.pid_of("ssh", "host2", "exec")
    os.kill(frozen, signal.SIGSTOP)
    time.sleep(12)
    os.kill(frozen, signal.SIGCONT)
    out, said = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"late\n"), said


KEY_LIKE = re.compile(r"[0-9A-Za-z]{32}")
"""Pattern of a key: rdpipe makes keys of 64 hexadecimal digits."""


def _shown(tools: Tools, pid: int, words: list[str]) -> str:
    """Return the words of ps about a process, without those that this test itself added."""
    text = "\n".join([*words, *environment(pid)])
    for ours in (tools.place, tools.folder, tools.environment[MARK]):
        text = text.replace(str(ours), "")
    return text


def test_key_is_on_no_command_line(tools: Tools) -> None:
    process = _chain(tools)
    shown = {pid: _shown(tools, pid, words) for pid, words in tools.ours().items()}
    process.kill()
    assert sum("ssh" in text for text in shown.values()) >= 2, shown
    assert not [text for text in shown.values() if KEY_LIKE.search(text)]


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["sh", "-c", f"read -r line; RDPIPE_KEY={'0a' * 32} exec cat"], {}),
        (["cat"], {"RDPIPE_KEY": "0a" * 32}),
    ],
)
def test_shown_key_is_detected(tools: Tools, words: list[str], variables: dict[str, str]) -> None:
    shows = subprocess.Popen(words, stdin=subprocess.PIPE, env={**tools.environment, **variables})
    tools.await_words(*words)
    shown = _shown(tools, shows.pid, words)
    shows.communicate()
    assert KEY_LIKE.search(shown)


def test_silent_pipe_outlives_timeouts(tools: Tools) -> None:
    ended = tools.run("rdpipe", "host1:sleep 13; echo late", "host2:cat", within_s=40)
    assert (ended.stdout, ended.returncode) == (b"late\n", 0), ended.stderr

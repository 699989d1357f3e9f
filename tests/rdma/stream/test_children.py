"""Commands of rdsend or rdrecv that ask at the terminal, run as another user, or outlive their
stream, and signals that the tools were told to ignore."""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.harness import wait_for
from testkit.network.pipes import SLOWNESS, Tools

from tests.rdma.ends import End, Ends
from tests.rdma.near import NearSsh

pytestmark = pytest.mark.e2e
USER = 1000
LEFT = "could not be ended: it runs as another user"


def become_user() -> None:
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)


@pytest.fixture
def place() -> Iterator[Path]:
    """Folder that an ordinary user may enter, too, with an `asroot` in it: a sudo."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    asroot = folder / "asroot"
    shutil.copy(shutil.which("setpriv") or "setpriv", asroot)
    asroot.chmod(0o4755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def users(rdma_tools: Path, place: Path) -> Iterator[Ends]:
    """Both ends run as the user and may start processes that the user cannot end."""
    with contextlib.closing(Ends(rdma_tools, place)) as ends:
        yield ends


def roots(place: Path, *words: str) -> list[str]:
    return [f"{place}/asroot", "--reuid=0", "--regid=0", "--clear-groups", *words]


def await_roots(ends: Ends, *words: str) -> None:
    """Wait until setpriv has made the processes root's: the user who started setpriv may end it."""
    wait_for(lambda: [*words, ""] in ends.left().values(), f"no {words}", 10 * SLOWNESS)


def leave(end: End, within_s: float = 4) -> int:
    """Wait for the process alone: commands that it left behind hold its stderr."""
    return end.process.wait(timeout=within_s * SLOWNESS)


def end_roots(ends: Ends) -> set[str]:
    """End root's remaining processes; return the names of all of them."""
    left = {}
    for pid in ends.left():
        with contextlib.suppress(OSError):
            left[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
    for pid, name in left.items():
        if name in ("sh", "sleep", "cat"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(os.getpgid(pid), signal.SIGKILL)
    return set(left.values())


def test_consumer_of_root_is_named(users: Ends) -> None:
    words = ["sh", "-c", "cat >/dev/null; sleep 1000"]
    command = ["--", *roots(users.place, *words)]
    receiver = users.receive(*command, before=become_user)
    sender = users.send("/dev/zero", options=["--rate", "1M"])
    await_roots(users, *words)
    sender.kill()
    assert leave(receiver) == 1
    assert "sh" in end_roots(users)
    assert LEFT in receiver.ended(5).err


@pytest.mark.parametrize("command", [("cat", "/dev/zero"), ("sleep", "1000")])
def test_producer_of_root_does_not_block_sender(users: Ends, command: tuple[str, ...]) -> None:
    """A producer that writes gets an error, too."""
    receiver = users.receive("/dev/null")
    sender = users.send("--", *roots(users.place, *command), before=become_user)
    await_roots(users, *command)
    receiver.kill()
    assert leave(sender) == 1
    assert ("cat" in end_roots(users)) is False
    assert (LEFT in sender.ended(5).err) is (command[0] == "sleep")


def test_agent_gives_up_process_of_root(rdma_tools: Path, place: Path) -> None:
    """The agent gives up without a busy loop."""
    tools = Tools(rdma_tools, NearSsh(place), place)
    tools.environment["RDPIPE_TEST"] = str(place)
    line = " ".join(f"'{word}'" for word in roots(place, "sleep", "999"))
    rows = ["yes | head -n9; sleep 1000", f"host1:{line}"]
    process = tools.start("rdpipe", *rows, before=become_user)
    tools.await_words("sleep", "1000")
    await_roots(Ends(rdma_tools, place), "sleep", "999")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=8 * SLOWNESS) == 130
    left = {os.path.basename(words[0]) for words in tools.ours().values()}
    assert left <= {"sh", "sleep", "asroot", "rdrecv"}, left
    end_roots(Ends(rdma_tools, place))
    assert process.stderr and LEFT.encode() in process.stderr.read()
    tools.close()


IN_BACKGROUND = "exec 3<&0; (cat <&3 >/dev/null; echo all >seen) & exit 0"


@pytest.mark.parametrize("status", [0, 1])
def test_background_reader_sees_end_of_complete_stream_only(ends: Ends, status: int) -> None:
    """The background reader gets the end of the stream only if it is complete. The command
    itself has ended well in both cases."""
    receiver = ends.receive("--", "sh", "-c", IN_BACKGROUND)
    sender = ends.send("--", "sh", "-c", f"echo x; sleep 0.5; exit {status}")
    assert sender.ended(5).status == status
    assert receiver.ended(5).status == status  # its stderr is the background's, too
    assert (ends.place / "seen").exists() == (status == 0)


def test_background_reader_may_clean_up(ends: Ends) -> None:
    line = "exec 3<&0; (trap 'echo >told; exit' TERM; cat <&3 >/dev/null) & exit 0"
    receiver = ends.receive("--", "sh", "-c", line)
    ends.send("--", "sh", "-c", "echo x; sleep 0.5; exit 1")
    assert receiver.ended(5).status == 1
    assert (ends.place / "told").exists()


def test_background_process_of_producer_ends_with_sender(ends: Ends) -> None:
    receiver = ends.receive("out")
    sender = ends.send("--", "sh", "-c", "sleep 1000 & exit 0")
    time.sleep(0.3)
    sender.kill(signal.SIGINT)
    assert sender.ended(5).status == 128 + signal.SIGINT
    assert receiver.ended(5).status == 1


def test_background_work_survives_completed_transfer(ends: Ends) -> None:
    line = "(sleep 0.7; echo >{0}) </dev/null >/dev/null 2>&1 & {1} exit 0"
    receiver = ends.receive("--", "sh", "-c", line.format("one", "cat >/dev/null;"))
    sender = ends.send("--", "sh", "-c", line.format("other", "echo x;"))
    assert (sender.ended(5).status, receiver.ended(5).status) == (0, 0)
    wait_for(lambda: len(os.listdir(ends.place)) == 2, "no background work", 5.0)


def test_producer_that_reads_the_terminal_is_ended(ends: Ends) -> None:
    receiver = ends.receive("out")
    seat = ends.sit("--", "cat")
    assert seat.ended(5) == 128 + signal.SIGTTIN
    assert b"the producer cat was stopped: it asks at the terminal" in seat.shown
    assert receiver.ended().status == 1


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_ignored_signal_stays_ignored(ends: Ends, number: signal.Signals) -> None:
    def ignore() -> None:
        signal.signal(number, signal.SIG_IGN)

    receiver = ends.receive(before=ignore)
    receiver.kill(number)
    assert ends.send_bytes(b"all").status == 0
    ended = receiver.ended()
    assert (ended.status, ended.out) == (0, b"all"), ended.err


def test_signal_to_the_group_is_no_status_of_the_command(ends: Ends) -> None:
    """A signal to the sender's group may also reach a command that just starts."""
    statuses, told = os.pipe()
    receiver = ends.receive("/dev/null")
    words = ["sh", "-c", "echo $$ >pid; exec sleep 1000"]
    options = ["--status-fd", str(told)]
    sender = ends.send("--", *words, options=options, pass_fds=[told])
    os.close(told)
    seen = ends.place / "pid"
    wait_for(lambda: seen.exists() and seen.read_text().endswith("\n"), "no command", 10 * SLOWNESS)
    command = int(seen.read_text())
    sender.kill(signal.SIGSTOP)
    sender.kill(signal.SIGTERM)
    os.kill(command, signal.SIGTERM)
    gone = Path(f"/proc/{command}/stat")
    wait_for(lambda: ") Z " in gone.read_text(), "it runs", 10 * SLOWNESS)
    sender.kill(signal.SIGCONT)
    assert sender.ended(5).status == 128 + signal.SIGTERM
    assert os.read(statuses, 10) == b""
    os.close(statuses)
    assert receiver.ended(5).status == 1

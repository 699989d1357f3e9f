"""Bytes lost on the way while the connection goes on: both ends end, in time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from testkit.network.pipes import SLOWNESS

from tests.rdma.ends import Ended, Ends
from tests.rdma.records import BYE, CREDIT, DATA, DONE, END, HEADER
from tests.rdma.stream.test_stream_relays import Relay

pytestmark = pytest.mark.e2e
TIMEOUT_S = 4
SOON_S = 2 * (TIMEOUT_S + 2) + 20
"""The limit for the rest of a record, twice, and an allowance for a busy machine."""
BYTES = 60_000
Change = Callable[[bytes, int], bytes]
PROTECTED = pytest.mark.parametrize("how", ["--plain", "--encrypt"])


def without(kind: int) -> Change:
    """Return a change that removes the first record of that type, and all later ones."""

    def change(data: bytes, way: int) -> bytes:
        left, at = b"", 0
        while at + HEADER.size <= len(data):
            _, one, _, length, _ = HEADER.unpack_from(data, at)
            end = at + HEADER.size + length
            left += b"" if one == kind else data[at:end]
            at = end
        return left

    return change


def lossy(count: int) -> Change:
    """Return a change that removes bytes from the middle of the first data record."""
    taken: list[int] = []

    def change(data: bytes, way: int) -> bytes:
        at = 0
        while not way and not taken and at < len(data):
            _, kind, _, length, _ = HEADER.unpack_from(data, at)
            if kind == DATA:
                taken.append(count)
                return data[: at + HEADER.size] + data[at + HEADER.size + count :]
            at += HEADER.size + length
        return data

    return change


def through(ends: Ends, change: Change, how: str, *source: str) -> tuple[Ended, Ended, float]:
    """Return sender, receiver, and their total time."""
    options = [how, "--timeout", str(TIMEOUT_S * SLOWNESS)]
    receiver = ends.receive("out", options=options)
    relay = Relay(ends.port, change)
    since_s = time.monotonic()
    sender = ends.send("--", *source, options=options, port=relay.port)
    ended = sender.ended(SOON_S), receiver.ended(SOON_S)
    took_s = time.monotonic() - since_s
    relay.close()
    return *ended, took_s


Loss = tuple[int, str]
"""Number of bytes lost, and the protection."""
LOSSES = [(count, how) for count in (1, 1000) for how in ("--plain", "--encrypt")]
MORE_THAN_HEARTBEATS_FILL = (5_000, "--plain")


@dataclass
class Lost:
    sent: Ended
    received: Ended
    took_s: float
    out: bool
    """True if the file was published."""


@pytest.fixture(scope="module", autouse=True)
def lost(
    rdma_tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Loss, Future[Lost]]]:
    """All losses run side by side, and beside the other tests: most wait for a limit of 12 s."""

    def lose(count: int, how: str) -> Lost:
        ends = Ends(rdma_tools, tmp_path_factory.mktemp("lost"))
        (ends.place / "in").write_bytes(bytes(BYTES))
        try:
            ended = through(ends, lossy(count), how, "cat", "in")
            return Lost(*ended, (ends.place / "out").exists())
        finally:
            ends.close()

    losses = [*LOSSES, MORE_THAN_HEARTBEATS_FILL]
    with ThreadPoolExecutor(len(losses)) as pool:
        yield {loss: pool.submit(lose, *loss) for loss in losses}


@PROTECTED
@pytest.mark.parametrize("kind", [DATA, END, CREDIT])
def test_lost_record_ends_both_ends(ends: Ends, how: str, kind: int) -> None:
    sent, received, took_s = through(ends, without(kind), how, "echo", "all")
    assert took_s < SOON_S * SLOWNESS
    assert sent.status in (1, 3) and received.status == 1, (sent, received)
    assert not (ends.place / "out").exists()


@PROTECTED
def test_lost_confirmation_leaves_outcome_unknown(ends: Ends, how: str) -> None:
    """The file is there, but the sender cannot know it."""
    sent, received, took_s = through(ends, without(DONE), how, "echo", "all")
    assert took_s < SOON_S * SLOWNESS
    assert (sent.status, received.status) == (3, 0), (sent, received)
    assert (ends.place / "out").read_bytes() == b"all\n"


@PROTECTED
def test_lost_goodbye_is_no_fault(ends: Ends, how: str) -> None:
    sent, received, _ = through(ends, without(BYE), how, "echo", "all")
    assert (sent.status, received.status) == (0, 0), (sent, received)


def test_missing_confirmation_times_out(ends: Ends) -> None:
    receiver = ends.receive("--", "sh", "-c", "cat >/dev/null; exec sleep 60")
    sender = ends.send("--", "echo", "all", options=["--finish-timeout", "1"])
    ended = sender.ended(4)
    assert ended.status == 3 and "--finish-timeout" in ended.err
    assert receiver.ended(4).status == 1


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss[1]}-{loss[0]}")
def test_lost_bytes_within_record_end_both_ends(lost: dict[Loss, Future[Lost]], loss: Loss) -> None:
    """The bytes that follow fill the gap."""
    end = lost[loss].result()
    assert end.took_s < SOON_S * SLOWNESS
    assert end.sent.status in (1, 3) and end.received.status == 1, end
    assert not end.out


def test_gap_beyond_heartbeats_times_out(lost: dict[Loss, Future[Lost]]) -> None:
    received = lost[MORE_THAN_HEARTBEATS_FILL].result().received
    late = "lost on the way: a record does not end", "nothing heard from"
    assert any(words in received.err for words in late), received

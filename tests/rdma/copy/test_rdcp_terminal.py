"""rdcp at a terminal: progress, speed, and time left."""

import os
import re
from pathlib import Path

import pytest
from testkit.network.pipes import Tools

from tests.rdma.near import Near, Sit

pytestmark = pytest.mark.e2e
CLEAR = b"\r\x1b[K"
SHOWN = re.compile(rb"([\d.]+) MB, [\d.]+ [kM]?B/s(?:, (\d+) %, (\d+) s left)?(?:\r\x1b\[K)")
BIG = 12_000_000


@pytest.fixture
def tools(near: Near) -> Tools:
    return near()


def shares(shown: bytes) -> list[tuple[int, int]]:
    """Return per cent done and seconds left of each line shown; -1 without."""
    found = SHOWN.findall(shown)
    assert len(found) >= 2, shown
    return [(int(row[1] or -1), int(row[2] or -1)) for row in found]


def make(tree: Path) -> None:
    (tree / "deep").mkdir(parents=True)
    for name in ("a", "deep/b", "z"):
        (tree / name).write_bytes(os.urandom(BIG // 3))


@pytest.mark.parametrize(
    ("source", "target"), [("", ""), ("host1:", ""), ("", "host1:"), ("h1:", "h2:")]
)
def test_share_and_time_left(sit: Sit, tools: Tools, source: str, target: str) -> None:
    """Progress is shown for any place of the source, and only in its own line."""
    make(tools.place / "tree")
    seat = sit("rdcp", "-rv", "--rate", "4M", f"{source}tree", f"{target}copy", reads=False)
    assert seat.ended(20) == 0, seat.shown
    rows = shares(seat.shown)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert all(0 <= share <= 100 for share, _ in rows), rows
    assert rows[0][1] >= 1 and rows[0][1] >= rows[-1][1] and rows[-1][0] > 50, rows
    assert b"rdcp: 3 files, 12000000 bytes" in seat.shown


def test_progress_needs_terminal_and_verbose(sit: Sit, tools: Tools) -> None:
    make(tools.place / "tree")
    ended = tools.run("rdcp", "-rv", "--rate", "8M", "tree", "copy")
    assert ended.returncode == 0 and b"\r" not in ended.stderr
    seat = sit("rdcp", "-r", "--rate", "8M", "tree", "again", reads=False)
    assert seat.ended(20) == 0 and seat.shown == b""


def test_resumed_bytes_count_as_done(sit: Sit, tools: Tools) -> None:
    (tools.place / "f").write_bytes(os.urandom(BIG))
    state = (tools.place / "f").stat()
    part = (tools.place / "f").read_bytes()[: BIG // 2]
    (tools.place / ".copy.rdcp-part").write_bytes(part)
    note = f"{BIG} {state.st_ino} {state.st_mtime_ns}\ncopy"
    (tools.place / ".copy.rdcp-from").write_text(note)
    seat = sit("rdcp", "-v", "--rate", "2M", "f", "copy", reads=False)
    assert seat.ended(20) == 0, seat.shown
    rows = shares(seat.shown)
    assert rows[0][0] >= 50, rows
    assert f"1 files, {BIG // 2} bytes".encode() in seat.shown


def test_total_of_many_files_is_known_soon(sit: Sit, tools: Tools) -> None:
    """The source lists its files faster than it sends them."""
    (tools.place / "tree").mkdir()
    for number in range(3000):
        (tools.place / "tree" / str(number)).write_bytes(bytes(4000))
    seat = sit("rdcp", "-rv", "--rate", "4M", "tree", "copy", reads=False)
    assert seat.ended(20) == 0, seat.shown
    known = [share for share, _ in shares(seat.shown) if share >= 0]
    assert known and known[0] < 50, seat.shown


def test_complaint_has_its_own_line(sit: Sit, tools: Tools) -> None:
    make(tools.place / "tree")
    os.mkfifo(tools.place / "tree" / "f")
    seat = sit("rdcp", "-rv", "--rate", "4M", "tree", "copy", reads=False)
    assert seat.ended(20) == 1
    assert CLEAR + b"rdcp: tree/f: skipped: " in seat.shown

"""The pure parts of rdpipe and rdcp: segments, quoting, the frames to an agent, the exit status,
the records of a tree."""

import ctypes
import re
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rdma.agent import KEY, PASS, RDCP, READ, SHELL, THROUGH_SSH, WRITE, frame, texts, work
from tests.rdma.tree import (
    ANSWER,
    BODY,
    BROKEN,
    BYE,
    DATA,
    END,
    ENTER,
    FILE,
    LEAVE,
    LINK,
    START,
    START_OF_7,
    TARGET,
    WHOLE,
    numbers,
    record,
)

SOURCE = Path(__file__).parents[3] / "base-station" / "rdma"
PURE = [f"base/{name}" for name in ("bytes", "descriptors", "error", "net", "reap", "signals")]
PURE += ["chain/agent_protocol", "chain/pipe_end", "chain/pipe_options", "copy/tree"]

# The syntax in the manual.
HOST = re.compile(
    rb"^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?"
    rb"([A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.%]+\]):"
)


class Segment(ctypes.Structure):
    """A pipe_segment of one word."""

    _fields_ = [
        ("host", ctypes.c_char_p),
        ("label", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("text", ctypes.POINTER(ctypes.c_char_p)),
        ("count", ctypes.c_size_t),
    ]


class Bytes(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
        ("secret", ctypes.c_bool),
    ]

    def text(self) -> bytes:
        return ctypes.string_at(self.data, self.length) if self.data else b""


class Frame(ctypes.Structure):
    _fields_ = [
        ("verb", ctypes.c_int),
        ("hop", ctypes.c_int),
        ("body", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
    ]


class End(ctypes.Structure):
    _fields_ = [
        ("command", ctypes.c_bool),
        ("command_status", ctypes.c_int),
        ("status", ctypes.c_int),
        ("order", ctypes.c_int),
    ]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_int), ("parent", ctypes.c_int), ("started", ctypes.c_ulonglong)]


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("pure") / "pure.so"
    words = ["cc", "-std=c11", "-D_GNU_SOURCE", "-g", "-shared", "-fPIC"]
    words += ["-Ibase", "-Istream", "-Ichain", "-Icopy", "-o"]
    subprocess.run(
        [*words, str(library), *(f"{name}.c" for name in PURE)], check=True, cwd=SOURCE, timeout=60
    )
    loaded = ctypes.CDLL(str(library))
    loaded.tree_get.restype = ctypes.c_long
    return loaded


COMMAND = SHELL


def next_frame(pure: ctypes.CDLL, data: bytes) -> tuple[int, Frame]:
    """Return the first frame in `data`. The result keeps the data alive."""
    parsed = Frame()
    parsed.kept = ctypes.create_string_buffer(data, len(data) + 1)
    held = Bytes(ctypes.addressof(parsed.kept), len(data), len(data) + 1)
    return pure.agent_frame_next(ctypes.byref(held), ctypes.byref(parsed)), parsed


@pytest.mark.parametrize(
    ("text", "host", "kind", "rest"),
    [
        (b"host:cmd", b"host", COMMAND, b"cmd"),
        (b"me@host:cmd a:b", b"me@host", COMMAND, b"cmd a:b"),
        (b"me@[fe80::1%1]:cmd", b"me@fe80::1%1", COMMAND, b"cmd"),
        (b"[::1]:<f", b"::1", READ, b"f"),
        (b"cat", None, COMMAND, b"cat"),
        (b":host:cmd", None, COMMAND, b"host:cmd"),
        (b"echo a:b", None, COMMAND, b"echo a:b"),
        (b"/bin/x:y", None, COMMAND, b"/bin/x:y"),
        (b"./x:y", None, COMMAND, b"./x:y"),
        (b".x:y", None, COMMAND, b".x:y"),
        (b"<a b", None, READ, b"a b"),
        (b"< a", None, READ, b" a"),
        (b">a\nb", None, WRITE, b"a\nb"),
        (b":>a", None, WRITE, b"a"),
        (b"h: x", b"h", COMMAND, b" x"),
    ],
)
def test_segment_is_parsed(
    pure: ctypes.CDLL, text: bytes, host: bytes | None, kind: int, rest: bytes
) -> None:
    segment, why = Segment(), ctypes.c_char_p()
    assert pure.segment_open(ctypes.byref(segment), text, ctypes.byref(why)) == 0
    assert (segment.host, segment.kind, segment.text[0]) == (host, kind, rest)
    assert segment.count == 1
    pure.segment_close(ctypes.byref(segment))


@pytest.mark.parametrize(
    "text", [b"", b":", b"host:", b"<", b">", b">>", b"-x:y", b"me@-x:y", b"--a=b:c"]
)
def test_bad_segment_is_refused(pure: ctypes.CDLL, text: bytes) -> None:
    segment, why = Segment(), ctypes.c_char_p()
    assert pure.segment_open(ctypes.byref(segment), text, ctypes.byref(why)) == -1
    assert why.value
    pure.segment_close(ctypes.byref(segment))


@given(st.text("ab0_.-@:[]%/ ~\n\té", max_size=12).map(str.encode))
@settings(max_examples=2000, deadline=None)
def test_host_prefix_matches_reference_expression(pure: ctypes.CDLL, text: bytes) -> None:
    found, host = HOST.match(text), ctypes.c_char_p()
    pure.segment_split.restype = ctypes.c_char_p
    rest = pure.segment_split(text, ctypes.byref(host))
    if found:
        assert host.value == found.group()[:-1].translate(None, b"[]")
        assert rest == text[found.end() :]
    else:
        assert host.value is None
        assert rest in (text.removeprefix(b":"), None)


@given(st.binary(max_size=30).map(lambda text: text.replace(b"\0", b"")))
@settings(max_examples=60, deadline=None)
def test_shell_reads_quoted_word_unchanged(pure: ctypes.CDLL, text: bytes) -> None:
    quoted = Bytes()
    pure.quote_word(ctypes.byref(quoted), text, False)
    line = b"printf %s " + quoted.text()
    pure.bytes_close(ctypes.byref(quoted))
    for shell in ("sh", "bash"):
        ended = subprocess.run([shell, "-c", line], capture_output=True, timeout=10)
        assert ended.stdout == text


def test_dropped_bytes_of_secret_buffer_are_wiped(pure: ctypes.CDLL) -> None:
    """Frames with keys pass such a buffer; only bytes that are still queued stay in memory."""
    held = Bytes(secret=True)
    pure.bytes_add(ctypes.byref(held), KEY + b"queued", ctypes.c_size_t(len(KEY) + 6))
    memory = (ctypes.c_char * held.room).from_address(held.data)
    assert KEY in memory.raw
    pure.bytes_drop(ctypes.byref(held), ctypes.c_size_t(len(KEY)))
    assert memory.raw.startswith(b"queued\0") and KEY[:4] not in memory.raw
    pure.bytes_close(ctypes.byref(held))


TO = (b"7", b"::1,1.2.3.4")


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        (work(SHELL, b"ls "), True),
        (work(RDCP, b"--serve-source", b"--", b"a", b"b"), True),
        (work(WRITE, b"a", key_in=KEY, options_in=[b"-v"]), True),
        (work(READ, b"a", key_out=KEY, to=TO), True),
        (work(PASS, key_out=KEY, to=TO, options_out=[b"-v"]), True),
        (work(SHELL, b"ls", key_in=KEY, key_out=KEY, to=TO), True),
        (work(SHELL, b"ls", key_out=KEY, to=TO, route=THROUGH_SSH), True),
        (work(SHELL), False),
        (work(SHELL, b"l", b"s"), False),
        (work(RDCP), False),
        (work(PASS), False),
        (work(PASS, b"a", key_in=KEY), False),
        (work(PASS, key_in=KEY, key_out=KEY, to=TO), False),
        (work(PASS + 1, b"a"), False),
        (work(SHELL, b"ls", route=THROUGH_SSH + 1), False),
        (work(SHELL, b"ls", key_in=b"abc"), False),
        (work(SHELL, b"ls", key_out=KEY[1:], to=TO), False),
        (work(SHELL, b"ls", to=TO), False),
        (work(SHELL, b"ls", key_out=KEY), False),
        (work(READ, b"a", key_in=KEY), False),
        (work(WRITE, b"a", key_out=KEY, to=TO), False),
        (texts(b"1 0 0 0 0"), False),
        (texts(b"1 0 0 1 0", *[b""] * 4, b"a"), False),
        (texts(b"1 0 0 2 0", *[b""] * 4, b"a"), False),
        (texts(b"1 0 0 1 18446744073709551615", *[b""] * 4, b"a", b"b"), False),
        (texts(b"", *[b""] * 5), False),
        (b"", False),
    ],
)
def test_agent_accepts_only_valid_work(pure: ctypes.CDLL, body: bytes, taken: bool) -> None:
    taker = ctypes.create_string_buffer(1024)  # more than struct agent_work has
    found, parsed = next_frame(pure, frame(b"R", body))
    assert found == 1
    assert (pure.agent_work_take(taker, ctypes.byref(parsed)) == 0) is taken
    pure.agent_work_close(taker)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (frame(b"B"), 1),
        (frame(b"F", b"x\0y", b"i"), 1),
        (frame(b"N", texts(b"two words", b"more")), 1),
        (frame(b"N", b"no end"), -1),
        (frame(b"F", b"x" * (32 << 10), b"o"), 1),
        (frame(b"F", b"x" * (32 << 10) + b"x", b"o"), -1),
        (b"Rb800001", -1),
        (b"Rb800000", 0),
        (b"Bx000000", -1),
        (b"B\x00" + b"000000", -1),
        (b"Bb-00001", -1),
        (b"Bb 00001", -1),
        (b"Bb0x0001", -1),
        (b"leash 4 - -\n", -1),  # an older rdpipe
    ],
)
def test_agent_frame_is_parsed_or_refused(pure: ctypes.CDLL, data: bytes, found: int) -> None:
    assert next_frame(pure, data)[0] == found
    if found == 1:
        assert {next_frame(pure, data[:cut])[0] for cut in range(len(data))} == {0}


def _command(own: int, tools: int, order: int = 0) -> End:
    return End(True, own, tools, order)


def _file(status: int, order: int = 0) -> End:
    return End(False, -1, status, order)


@pytest.mark.parametrize(
    ("ends", "status", "which"),
    [
        ([_command(0, 0), _command(0, 0)], 0, 0),
        ([_command(3, 1, 1), _command(-1, 1, 2)], 3, 0),
        ([_command(3, 1, 1), _command(4, 1, 2)], 4, 1),
        ([_file(1, 2), _command(0, 1, 1)], 0, 0),  # its reader had enough
        ([_command(-1, 1, 2), _command(0, 1, 1)], 141, 0),  # ended for it
        ([_file(1, 3), _command(-1, 1, 2), _command(0, 1, 1)], 141, 1),
        ([_command(141, 1, 2), _file(1, 1)], 1, 1),  # a full disk, for example
        ([_file(1, 1), _command(-1, 1, 2)], 1, 0),
        ([_file(75), _command(-1, 255, 1)], 255, 1),
        ([_command(-1, -1), _command(0, 0)], 0, 0),
        ([_command(0, 1, 1)], 0, 0),
        ([_command(-1, 127, 1)], 127, 0),
        ([_command(0, 0), _file(1, 1)], 1, 1),
    ],
)
def test_exit_status_picks_status_and_segment(
    pure: ctypes.CDLL, ends: list[End], status: int, which: int
) -> None:
    row = (End * len(ends))(*ends)
    found = ctypes.c_size_t(0)
    pure.exit_status_settle(row, ctypes.c_size_t(len(ends)))
    assert pure.exit_status(row, ctypes.c_size_t(len(ends)), ctypes.byref(found)) == status
    assert found.value == which


def test_signal_spares_process_with_reused_pid(pure: ctypes.CDLL) -> None:
    """The start time tells the process from a later one with its pid."""
    sleeper = subprocess.Popen(["sleep", "100"])
    fields = Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()
    started = int(fields[19])
    other, same = (Process(sleeper.pid, 0, value) for value in (started - 1, started))
    assert pure.process_signal(ctypes.byref(other), signal.SIGKILL) == -1
    assert sleeper.poll() is None
    assert pure.process_signal(ctypes.byref(same), signal.SIGKILL) == 0
    assert sleeper.wait(timeout=10) == -signal.SIGKILL


GOOD = [
    record(START, numbers(6), data=b"boot-id"),
    record(TARGET, numbers(1, 2)),
    record(ENTER, name=b"name"),
    record(ENTER),
    record(LEAVE),
    record(FILE, name=b"x" * 255),
    record(LINK, data=b"ab", name=b"name"),
    record(BODY, numbers(1, 2, 3)),
    record(DATA, data=b"data"),
    record(WHOLE, bytes(range(32))),
    record(BROKEN),
    record(END, numbers(1)),
    record(ANSWER, numbers(1, 2, 3, 4)),
    record(BYE),
]


def _get(pure: ctypes.CDLL, data: bytes) -> int:
    record = ctypes.create_string_buffer(8192)  # more than struct tree_record has
    why = ctypes.c_char_p()
    found: int = pure.tree_get(record, data, ctypes.c_size_t(len(data)), ctypes.byref(why))
    assert found >= 0 or why.value
    return found


@pytest.mark.parametrize("data", GOOD)
def test_tree_record_is_complete_or_awaited(pure: ctypes.CDLL, data: bytes) -> None:
    assert _get(pure, data + b"more") == len(data)
    assert [_get(pure, data[:cut]) for cut in range(len(data))] == [0] * len(data)


@pytest.mark.parametrize(
    "data",
    [
        record(0),
        record(14),
        record(LEAVE, data=b"x"),
        record(LEAVE, name=b"x"),
        *(record(FILE, name=name) for name in (b"", b".", b"..", b"a/b", b"a\0")),
        *(record(ENTER, name=name) for name in (b".", b"..", b"/", b"x" * 256)),
        record(FILE, data=b"x", name=b"name"),
        record(DATA),
        record(DATA, b"\xff" * 32, data=b"data"),
        record(DATA, data=b"x" * ((256 << 10) + 1)),
        record(DATA, name=b"name", data=b"data"),
        record(WHOLE, name=b"name"),
        record(LINK, name=b"name"),
        record(LINK, data=b"a\0", name=b"name"),
        record(LINK, data=b"a" * 4096, name=b"name"),
        GOOD[6][:-1] + b"y",  # wrong sum of the bytes after the head
        GOOD[6][:4] + b"\1" + GOOD[6][5:],  # wrong sum of the head
        START_OF_7,
    ],
)
def test_malformed_tree_record_is_refused(pure: ctypes.CDLL, data: bytes) -> None:
    assert _get(pure, data) == -1


@given(st.sampled_from(GOOD), st.integers(0, 300), st.binary(min_size=1, max_size=8))
@settings(max_examples=3000, deadline=None)
def test_changed_tree_record_is_parsed_within_bounds(
    pure: ctypes.CDLL, data: bytes, at: int, other: bytes
) -> None:
    changed = data[: at % len(data)] + other + data[at % len(data) + len(other) :]
    found = _get(pure, changed)
    assert found == -1 or 0 <= found <= len(changed)


@given(st.integers(0, 15), st.binary(max_size=120), st.binary(max_size=20))
@settings(max_examples=3000, deadline=None)
def test_tree_record_with_valid_sums_is_taken_or_refused(
    pure: ctypes.CDLL, kind: int, body: bytes, name: bytes
) -> None:
    sent = record(kind, numbers(), name, body)
    assert _get(pure, sent) in (-1, len(sent))

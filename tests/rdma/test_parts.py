"""The pure parts of rdpipe and rdcp: segments, quoting, the lines to a leash, the
verdict, the records of a tree."""

import ctypes
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rdma.tree import (
    ANSWER,
    BODY,
    BYE,
    DATA,
    END,
    ENTER,
    FILE,
    HARD,
    LEAVE,
    LINK,
    START,
    SUM,
    TARGET,
    WHOLE,
    XATTR,
    record,
)

SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"
PURE = ["base/bytes", "copy/tree"]
PURE += [f"chain/{name}" for name in ("quote", "segment", "leash_work", "verdict")]

# As the manual has it.
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
        ("shell", ctypes.c_bool),
        ("text", ctypes.POINTER(ctypes.c_char_p)),
        ("count", ctypes.c_size_t),
    ]


class Bytes(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
    ]


class End(ctypes.Structure):
    _fields_ = [
        ("command", ctypes.c_bool),
        ("command_status", ctypes.c_int),
        ("status", ctypes.c_int),
        ("order", ctypes.c_int),
    ]


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("pure") / "pure.so"
    words = ["cc", "-std=c11", "-D_GNU_SOURCE", "-g", "-shared", "-fPIC"]
    words += ["-Ibase", "-Ichain", "-Icopy", "-o"]
    subprocess.run(
        [*words, str(library), *(f"{name}.c" for name in PURE)],
        check=True,
        cwd=SOURCE,
        timeout=60,
    )
    loaded = ctypes.CDLL(str(library))
    loaded.tree_get.restype = ctypes.c_long
    return loaded


COMMAND, READ, WRITE, APPEND = range(1, 5)


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
        (b">>a", None, APPEND, b"a"),
        (b">>>a", None, APPEND, b">a"),
        (b":>a", None, WRITE, b"a"),
        (b"h: x", b"h", COMMAND, b" x"),
    ],
)
def test_segments(
    pure: ctypes.CDLL, text: bytes, host: bytes | None, kind: int, rest: bytes
) -> None:
    segment, why = Segment(), ctypes.c_char_p()
    assert pure.segment_open(ctypes.byref(segment), text, ctypes.byref(why)) == 0
    assert (segment.host, segment.kind, segment.text[0]) == (host, kind, rest)
    assert (segment.count, segment.shell) == (1, kind == COMMAND)
    pure.segment_close(ctypes.byref(segment))


@pytest.mark.parametrize(
    "text", [b"", b":", b"host:", b"<", b">", b">>", b"-x:y", b"me@-x:y", b"--a=b:c"]
)
def test_segments_refused(pure: ctypes.CDLL, text: bytes) -> None:
    segment, why = Segment(), ctypes.c_char_p()
    assert pure.segment_open(ctypes.byref(segment), text, ctypes.byref(why)) == -1
    assert why.value
    pure.segment_close(ctypes.byref(segment))


@given(st.text("ab0_.-@:[]%/ ~\n\té", max_size=12).map(str.encode))
@settings(max_examples=2000, deadline=None)
def test_hosts_follow_the_expression(pure: ctypes.CDLL, text: bytes) -> None:
    found = HOST.match(text)
    assert pure.segment_host_length(text) == (found.end() if found else 0)


@given(st.binary(max_size=30).map(lambda text: text.replace(b"\0", b"")))
@settings(max_examples=60, deadline=None)
def test_a_shell_takes_a_quoted_word_for_what_it_was(
    pure: ctypes.CDLL, text: bytes
) -> None:
    quoted = Bytes()
    pure.quote_word(ctypes.byref(quoted), text, False)
    line = b"printf %s " + (quoted.data or b"")
    pure.bytes_close(ctypes.byref(quoted))
    for shell in ("sh", "bash"):
        ended = subprocess.run([shell, "-c", line], capture_output=True, timeout=10)
        assert ended.stdout == text


KEY = b"ab" * 32


@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        ([b"leash 4 - -", b"exec 6c73", b"run"], True),
        ([b"leash 4 - -", b"shell 6c7320", b"run"], True),
        ([b"leash 4 %s -" % KEY, b"write 61", b"run", b"beat"], True),
        ([b"leash 4 - %s" % KEY, b"read 61", b"to 7 tcp ::1,1.2.3.4", b"run"], True),
        ([b"leash 4 - %s" % KEY, b"out 2d76", b"pass", b"to 7 tcp h", b"run"], True),
        ([b"leash 2 - -"], False),
        ([b"leash 4 - - -"], False),
        ([b"leash 1 - -"], False),
        ([b"leash 4 - -", b"shell 6c 73"], False),
        ([b"leash 4 - -", b"shell"], False),
        ([b"leash 4 - -", b"exec 6c", b"shell 6c"], False),
        ([b"leash 4 abc -"], False),
        ([b"leash 4 - -", b"leash 4 - -"], False),
        ([b"exec 6c73"], False),
        ([b"leash 4 - -", b"run"], False),
        ([b"leash 4 - -", b"pass", b"run"], False),
        ([b"leash 4 - -", b"exec 6c7"], False),
        ([b"leash 4 - -", b"exec 6c00"], False),
        ([b"leash 4 - -", b"exec 6c", b"exec 6c"], False),
        ([b"leash 4 - -", b"exec 6c", b"to 7 tcp h", b"run"], False),
        ([b"leash 4 - %s" % KEY, b"exec 6c", b"run"], False),
        ([b"leash 4 - %s" % KEY, b"exec 6c", b"to 7 tcp -h"], False),
        ([b"leash 4 - %s" % KEY, b"exec 6c", b"to 7 tcp a;b"], False),
        ([b"leash 4 %s -" % KEY, b"read 61", b"run"], False),
        ([b"leash 4 - -", b"exec 6c", b"run", b"exec 6c"], False),
        ([b"beat now"], False),
        ([b""], False),
    ],
)
def test_lines_to_a_leash(pure: ctypes.CDLL, lines: list[bytes], taken: bool) -> None:
    work = ctypes.create_string_buffer(1024)  # more than struct leash_work has
    why = ctypes.c_char_p()
    results = [
        pure.leash_take(work, ctypes.create_string_buffer(line), ctypes.byref(why))
        for line in lines
    ]
    pure.leash_work_close(work)
    assert set(results[:-1]) <= {0}
    assert (results[-1] == 0) is taken
    assert taken or why.value


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
        ([_command(141, 1, 2), _file(1, 1)], 1, 1),  # a full disk, say
        ([_file(1, 1), _command(-1, 1, 2)], 1, 0),
        ([_file(75), _command(-1, 255, 1)], 255, 1),
        ([_command(-1, -1), _command(0, 0)], 0, 0),
        ([_command(0, 1, 1)], 0, 0),
        ([_command(-1, 127, 1)], 127, 0),
        ([_command(0, 0), _file(1, 1)], 1, 1),
    ],
)
def test_verdicts(pure: ctypes.CDLL, ends: list[End], status: int, which: int) -> None:
    row = (End * len(ends))(*ends)
    found = ctypes.c_size_t(0)
    pure.verdict_settle(row, ctypes.c_size_t(len(ends)))
    assert pure.verdict(row, ctypes.c_size_t(len(ends)), ctypes.byref(found)) == status
    assert found.value == which


GOOD = [
    record(START, struct.pack("<Q", 4)),
    record(START, struct.pack("<Q", 4) + b"boot-id"),
    record(TARGET, bytes(16) + b"boot-id"),
    record(ENTER, bytes(40), b"name"),
    record(ENTER, bytes(40)),
    record(LEAVE),
    record(FILE, bytes(64), b"x" * 255),
    record(LINK, bytes(56) + b"ab", b"name"),
    record(HARD, bytes(8), b"name"),
    record(XATTR, b"value", b"user.name"),
    record(BODY, bytes(64)),
    record(DATA, bytes(8), data=b"data"),
    record(WHOLE, bytes(40)),
    record(SUM, bytes(40)),
    record(END, bytes(8)),
    record(ANSWER, bytes(32)),
    record(BYE, bytes(8)),
]


def _get(pure: ctypes.CDLL, data: bytes) -> int:
    record = ctypes.create_string_buffer(8192)  # more than struct tree_record has
    why = ctypes.c_char_p()
    found: int = pure.tree_get(
        record, data, ctypes.c_size_t(len(data)), ctypes.byref(why)
    )
    assert found >= 0 or why.value
    return found


@pytest.mark.parametrize("data", GOOD)
def test_records_of_a_tree(pure: ctypes.CDLL, data: bytes) -> None:
    assert _get(pure, data + b"more") == len(data)
    assert [_get(pure, data[:cut]) for cut in range(len(data))] == [0] * len(data)


@pytest.mark.parametrize(
    "data",
    [
        record(0),
        record(16),
        record(LEAVE, b"x"),
        b"\6\1" + GOOD[6][2:],
        *(record(FILE, bytes(64), name) for name in (b"", b".", b"..", b"a/b", b"a\0")),
        *(record(ENTER, bytes(40), name) for name in (b".", b"..", b"/", b"x" * 256)),
        record(FILE, bytes(65), b"name"),
        record(FILE, bytes(63)),
        record(DATA, bytes(8)),
        record(DATA, b"\xff" * 8, data=b"data"),
        record(DATA, bytes(8), b"name", b"data"),
        record(WHOLE, bytes(40), b"name"),
        record(LINK, bytes(56), b"name"),
        record(LINK, bytes(56) + b"a\0", b"name"),
        record(LINK, bytes(56) + b"a" * 4096, b"name"),
        GOOD[6][:-1] + b"y",  # the sum of the body is another
        GOOD[6][:4] + b"\1" + GOOD[6][5:],  # that of the header
        struct.pack("<BBHII", 1, 0, 0, 4, 3) + bytes(16),  # another release's
    ],
)
def test_what_is_no_record(pure: ctypes.CDLL, data: bytes) -> None:
    assert _get(pure, data) == -1


@given(st.sampled_from(GOOD), st.integers(0, 300), st.binary(min_size=1, max_size=8))
@settings(max_examples=3000, deadline=None)
def test_no_bytes_lead_astray(
    pure: ctypes.CDLL, data: bytes, at: int, other: bytes
) -> None:
    changed = data[: at % len(data)] + other + data[at % len(data) + len(other) :]
    found = _get(pure, changed)
    assert found == -1 or 0 <= found <= len(changed)


@given(st.integers(0, 17), st.binary(max_size=120), st.binary(max_size=20))
@settings(max_examples=3000, deadline=None)
def test_no_record_of_sound_sums_leads_astray(
    pure: ctypes.CDLL, kind: int, body: bytes, name: bytes
) -> None:
    sent = record(kind, body, name)
    assert _get(pure, sent) in (-1, len(sent))

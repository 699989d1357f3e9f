"""Texts for people: key, values and English; in JSON, on a line, and of a fault."""

import errno
import os
import sys

import msgspec
import pytest

from fpvcar.runtime import texts
from fpvcar.runtime.texts import (
    VERBATIM,
    Phrase,
    Text,
    fault_text,
    os_reason,
    stderr_line,
    text_of_line,
)

SHORT = Phrase("short", "{count} bytes, expected {expected}")


def test_text_is_english_where_it_is_printed() -> None:
    text = SHORT(count=1, expected=2)
    assert str(text) == "1 bytes, expected 2"
    assert text == Text("short", "{count} bytes, expected {expected}", count="1", expected="2")
    assert len({text, SHORT(count=1, expected=2), SHORT(count=2, expected=2)}) == 2


def test_text_crosses_a_socket_whole() -> None:
    text = Text("fault", "I2C bus {bus}: {reason}", bus=1, reason=SHORT(count=1, expected=2))
    sent = msgspec.json.encode(text)
    assert msgspec.json.decode(sent) == {
        "key": "fault",
        "english": "I2C bus {bus}: {reason}",
        "values": {
            "bus": "1",
            "reason": {
                "key": "short",
                "english": "{count} bytes, expected {expected}",
                "values": {"count": "1", "expected": "2"},
            },
        },
    }
    received = msgspec.json.decode(sent, type=Text)
    assert received == text and str(received) == "I2C bus 1: 1 bytes, expected 2"


def test_template_of_another_program_reads_no_attribute() -> None:
    sent = b'{"key":"x","english":"{a.__class__} {a} {b}","values":{"a":"1"}}'
    assert str(msgspec.json.decode(sent, type=Text)) == "{a.__class__} 1 {b}"


def test_line_of_a_child_process_is_a_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SHORT(count=1, expected=2)
    assert text_of_line(stderr_line(text)) == text
    for line in ("Cannot open camera", "{not JSON", '{"key":"x"}'):
        assert text_of_line(line) == VERBATIM(text=line) and str(text_of_line(line)) == line
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert stderr_line(text) == str(text)


def test_fault_has_its_own_text_or_that_of_the_system() -> None:
    text = SHORT(count=1, expected=2)
    assert fault_text(ValueError(text)) is text and str(ValueError(text)) == str(text)
    assert fault_text(ValueError("odd")) == VERBATIM(text="odd")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os_reason(full).key == "os_enospc" and str(fault_text(full)) == full.strerror
    named = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "card")
    assert str(fault_text(named)) == "card: No space left on device"
    crossing = OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    assert os_reason(crossing) == VERBATIM(text=os.strerror(errno.EXDEV))
    assert str(os_reason(OSError("odd"))) == "odd"


def test_errors_of_the_system_have_its_texts() -> None:
    known = {f"os_{name}".lower(): os.strerror(number) for number, name in errno.errorcode.items()}
    assert {text.key: text.english for text in texts.SYSTEM} == {
        text.key: known[text.key] for text in texts.SYSTEM
    }

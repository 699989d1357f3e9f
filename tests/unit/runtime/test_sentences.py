"""Sentences for people: English text, key and values, and those of a message."""

import errno
import os

import pytest

from fpvcar.runtime import sentences
from fpvcar.runtime.sentences import (
    os_reason,
    received,
    sent_as,
    sentence,
    sentences_in,
    stderr_line,
    text_of_line,
)


def test_sentence_is_english_text_with_its_key_and_values() -> None:
    text = sentence("i2c_short", count=1, expected=2)
    assert text == "1 bytes, expected 2" and type(text) is str
    assert sent_as(text) == "key=i2c_short&count=1&expected=2"
    assert sent_as("of another program") == ""


def test_value_that_is_a_sentence_is_sent_by_its_key() -> None:
    reason = sentence("i2c_short", count=1, expected=2)
    text = sentence("i2c_fault", bus=1, address="0x40", reason=reason)
    assert text == "I2C bus 1 address 0x40: 1 bytes, expected 2"
    assert "reason=key%3Di2c_short%26count%3D1%26expected%3D2" in sent_as(text)
    assert received(sent_as(text)) == text


def test_message_has_the_sentences_among_its_texts() -> None:
    assert sentences_in("ok", "", sentences.STARTING, "ok") == {"starting": "key=starting"}


def test_sentence_of_another_version_is_refused() -> None:
    for sent in ("key=newer", "key=i2c_short&count=1", "count=1"):
        with pytest.raises(KeyError):
            received(sent)


def test_line_of_a_child_process_has_key_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sentence("i2c_short", count=1, expected=2)
    line = stderr_line(text)
    assert line == f"{text}\tkey=i2c_short&count=1&expected=2"
    assert stderr_line("of another program") == "of another program"
    monkeypatch.setattr(sentences, "_known", {})
    assert text_of_line(line) == text and sent_as(text)
    assert text_of_line("too new\tkey=newer") == "too new"
    assert text_of_line("two\tcolumns") == "two\tcolumns"


def test_unused_sentences_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_known", {})
    monkeypatch.setattr(sentences, "KNOWN_MOST", 2)
    used, unused, third = (sentence("station_damaged", count=count) for count in range(3))
    assert not sent_as(used)
    assert sent_as(unused)
    sentence("station_damaged", count=3)
    assert sent_as(unused) and not sent_as(third)


def test_error_of_the_system_is_a_sentence_if_it_is_known() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os_reason(full) == "No space left on device"
    assert sent_as(os_reason(full)) == "key=os_enospc"
    assert os_reason(OSError(errno.EXDEV, os.strerror(errno.EXDEV))) == os.strerror(errno.EXDEV)
    assert os_reason(OSError("odd")) == "odd"


def test_errors_of_the_system_have_its_texts() -> None:
    known = {f"os_{name}".lower(): os.strerror(number) for number, name in errno.errorcode.items()}
    english = {key: text for key, text in sentences.ENGLISH.items() if key.startswith("os_")}
    assert english == {key: known[key] for key in english}

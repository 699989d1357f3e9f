"""Verbs that print or draw, and errors that end a verb: the message gives the next step."""

import errno
import os
import re
from pathlib import Path

import pytest
from testkit.command import Command

from fpvcar.runtime import paths


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "No space left on device; make room (sudo journalctl"),
        (errno.EDQUOT, "Disk quota exceeded; make room"),
        (errno.EROFS, "Read-only file system; no data can be saved: see dmesg"),
    ],
)
def test_unwritable_card_at_first_start_names_the_next_step(
    number: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / "codes.json"))

    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    monkeypatch.setattr("fpvcar.runtime.files.write_whole", full)
    none = ["--set=camera.source = 'none'", "--set=gate.blind = 'ignore'"]
    said = command("run", *none, status=1).err
    assert f"fpvcar: {tmp_path / 'codes.json'}: {words}" in said
    assert "sudo fpvcar doctor" in said


def test_other_fault_does_not_name_doctor(command: Command) -> None:
    assert "doctor" not in command("export", "--csv", "/tmp/nowhere", "/nope", status=1).err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("bench --port abc", "abc refused: expected 1 to 65534"),
        ("bench --seed -1", "-1 refused: expected 0 to 999999"),
        ("run --port 65535", "65535 refused: expected 1 to 65534"),
        ("hil --repeat 1.5", "1.5 refused: expected 1 to 1000"),
        ("profile", "are required: action\n"),
        ("wiring mx1508 --sheet servo", "no sheet 'servo': the sheets are overview, pi, supply"),
        ("wiring mx1509", "`fpvcar profile list` lists"),
    ],
)
def test_bad_argument_is_refused_with_its_bounds(words: str, says: str, command: Command) -> None:
    assert says in command(*words.split(), status=2).err


def test_missing_verb_prints_the_help(command: Command) -> None:
    assert "fpvcar bench --host 0.0.0.0" in command().out


def test_profile_name_and_its_file_are_drawn_alike(command: Command) -> None:
    drawn = command("wiring", "mx1508").out
    assert drawn.startswith("<svg ") and drawn.endswith("</svg>\n")
    assert command("wiring", paths.HARDWARE / "mx1508.toml").out == drawn


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--pins", r"green, MX1508 IN1 GPIO 17 \[11\]"),
        ("--table", r"pin 11 \(GPIO 17\) +MX1508 IN1"),
        ("--sheet=steering", "MOTOR-B 2"),
    ],
)
def test_wiring_prints_pins_table_or_sheet(option: str, line: str, command: Command) -> None:
    assert re.search(line, command("wiring", "mx1508", option).out)


def test_wiring_writes_a_file_or_all_drawings_into_a_folder(
    tmp_path: Path, command: Command
) -> None:
    command("wiring", "l298n", "--out", tmp_path / "car.svg")
    assert "L298N" in (tmp_path / "car.svg").read_text(encoding="utf-8")
    for _ in range(2):
        command("wiring", "l298n", "--out", tmp_path / "wires")
    names = {path.name for path in (tmp_path / "wires").iterdir()}
    assert {"overview.svg", "pi.svg", "l298n.svg", "steering.svg"} < names

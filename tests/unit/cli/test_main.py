"""Errors that end a verb: the message gives the next step."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar.__main__ import main


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Restore the umask, as `main` sets it for its process."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "No space left on device; make room (sudo journalctl"),
        (errno.EDQUOT, "Disk quota exceeded; make room"),
        (errno.EROFS, "Read-only file system; no data can be saved: see dmesg"),
    ],
)
def test_unwritable_card_at_first_start_names_the_next_step(
    number: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / "codes.json"))

    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    monkeypatch.setattr("fpvcar.runtime.files.write_whole", full)
    none = ["--set=camera.source = 'none'", "--set=gate.blind = 'ignore'"]
    assert main(["run", *none]) == 1
    said = capsys.readouterr().err
    assert f"fpvcar: {tmp_path / 'codes.json'}: {words}" in said
    assert "sudo fpvcar doctor" in said


def test_other_fault_does_not_name_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--csv", "/tmp/nowhere", "/nope"]) == 1
    assert "doctor" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bench", "--port", "abc"], "abc refused: expected 1 to 65534"),
        (["bench", "--seed", "-1"], "-1 refused: expected 0 to 999999"),
        (["run", "--port", "65535"], "65535 refused: expected 1 to 65534"),
        (["hil", "--repeat", "1.5"], "1.5 refused: expected 1 to 1000"),
    ],
)
def test_bad_number_is_refused_with_its_bounds(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2 and says in capsys.readouterr().err


def test_missing_verb_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "fpvcar bench --host 0.0.0.0" in capsys.readouterr().out


def test_missing_argument_alone_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["profile"])
    assert capsys.readouterr().err.endswith("are required: action\n")

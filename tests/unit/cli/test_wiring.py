"""`fpvcar wiring`: a shipped profile or a file, as drawing or text."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar.__main__ import main
from fpvcar.runtime import paths

MX1508 = str(paths.HARDWARE / "mx1508.toml")


@pytest.fixture(autouse=True)
def mask() -> Iterator[None]:
    """Restore the umask, as `main` sets that of its process."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_profile_name_and_its_file_are_drawn_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wiring", "mx1508"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("<svg ") and drawn.endswith("</svg>\n")
    assert main(["wiring", MX1508]) == 0
    assert capsys.readouterr().out == drawn


def test_wiring_prints_pins_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wiring", "mx1508", "--pins"]) == 0
    assert "green, MX1508 IN1 GPIO 17 [11]" in capsys.readouterr().out
    assert main(["wiring", "mx1508", "--table"]) == 0
    assert re.search(r"pin 11 \(GPIO 17\) +MX1508 IN1", capsys.readouterr().out)


def test_wiring_writes_a_file(tmp_path: Path) -> None:
    out = tmp_path / "car.svg"
    assert main(["wiring", "l298n", "--out", str(out)]) == 0
    assert "L298N" in out.read_text(encoding="utf-8")


def test_wiring_writes_all_drawings_into_a_folder(tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["wiring", "l298n", "--out", str(tmp_path / "wires")]) == 0
    names = {path.name for path in (tmp_path / "wires").iterdir()}
    assert {"overview.svg", "pi.svg", "l298n.svg", "steering.svg"} < names


def test_wiring_prints_the_sheet_of_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wiring", "mx1508", "--sheet", "steering"]) == 0
    assert "MOTOR-B 2" in capsys.readouterr().out
    assert main(["wiring", "mx1508", "--sheet", "servo"]) == 2
    assert "no sheet 'servo': the sheets are overview, pi, supply" in capsys.readouterr().err


def test_unknown_profile_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wiring", "mx1509"]) == 2
    assert "`fpvcar profile list` lists" in capsys.readouterr().err

"""Images and servers of the tests: made once, recognised when damaged, never made by a test."""

import os
import time
from pathlib import Path

import pytest
from testkit import prepared
from testkit.prepared import Prepared


class Cake(Prepared):
    """A folder with two files. `fault` is raised after the first one."""

    kind = "cakes"
    title = "cake"
    takes_s = 1.0

    def __init__(self, flavour: str = "lemon", fault: Exception | None = None) -> None:
        self.flavour, self.fault, self.baked = flavour, fault, 0

    def recipe(self) -> str:
        return self.flavour

    def fill(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "dough").write_text(self.flavour)
        if self.fault:
            raise self.fault
        (folder / "top").symlink_to("dough")
        self.baked += 1


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_second_make_finds_the_folder_intact() -> None:
    cake = Cake()
    cake.make()
    cake.make()
    assert cake.baked == 1 and (cake.folder / "top").read_text() == "lemon"


@pytest.mark.parametrize("damage", ["cut", "rewritten", "file gone", "seal gone", "file more"])
def test_damaged_folder_is_recognised_and_made_anew(damage: str) -> None:
    cake = Cake()
    cake.make()
    dough = cake.folder / "dough"
    if damage == "cut":
        dough.write_text("lem")
    elif damage == "rewritten":  # of the same size
        dough.write_text("lemOn")
        os.utime(dough, ns=(0, 0))
    elif damage == "file gone":
        (cake.folder / "top").unlink()
    elif damage == "seal gone":
        (cake.folder / prepared.SEAL).unlink()
    else:
        (cake.folder / "crumb").touch()
    assert not cake.intact()
    cake.make()
    assert cake.intact() and dough.read_text() == "lemon"


def test_half_made_folder_gets_no_name_and_the_next_try_makes_it() -> None:
    broken = Cake(fault=RuntimeError("oven: no power"))
    with pytest.raises(RuntimeError, match="oven: no power"):
        broken.make()
    assert not broken.place.exists()
    Cake().make()
    assert broken.intact()


def test_missing_folder_names_the_command_that_makes_it() -> None:
    with pytest.raises(FileNotFoundError, match="cake is not made: make test-all makes it"):
        _ = Cake().folder


def test_folder_of_an_older_recipe_is_deleted_once_it_is_unused() -> None:
    old, unused = Cake("plum"), Cake("rye")
    old.make()
    unused.make()
    long_ago_s = time.time() - prepared.KEPT_S - 60.0
    os.utime(unused.folder, (long_ago_s, long_ago_s))
    Cake().make()
    assert old.intact() and not unused.place.exists()


def test_long_work_prints_a_line_of_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "BEAT_S", 0.01)
    with prepared.progress("cake", 90.0):
        time.sleep(0.1)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "  prepare: cake: takes about 90 s"
    assert said[1] == "  prepare: cake: 0 s of about 90"
    assert said[-1] == "  prepare: cake: made in 0 s"


def test_builder_that_fails_or_hangs_is_named_with_its_last_words() -> None:
    with pytest.raises(RuntimeError, match="sh: no such oven"):
        prepared.build(["sh", "-c", "echo no such oven >&2; exit 3"], 60.0)
    with pytest.raises(RuntimeError, match="sleep did not end within 0 s"):
        prepared.build(["sleep", "60"], 0.1)

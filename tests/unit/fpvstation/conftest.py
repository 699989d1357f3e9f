"""Fixtures of a base station: one in a folder, and the answers of its verbs."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.stored import opened

from fpvstation.__main__ import main
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store


class Answer(NamedTuple):
    """Exit status and output of a verb."""

    status: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a verb in this process."""

    def run(*argv: str) -> Answer:
        capsys.readouterr()
        status = main(list(argv))
        return Answer(status, *capsys.readouterr())

    return run


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State directory of the verbs."""
    made = tmp_path / "state"
    monkeypatch.setenv("STATE_DIRECTORY", str(made))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return opened(Folder(tmp_path))


@pytest.fixture
def rig(tmp_path: Path) -> Station:
    return Station(tmp_path)


@pytest.fixture
def filled(rig: Station) -> None:
    """Store the session of FILES."""
    rig.fill()


@pytest.fixture
def archived(rig: Station, filled: None) -> None:
    """Store the session of FILES, and archive it."""
    rig.archive()

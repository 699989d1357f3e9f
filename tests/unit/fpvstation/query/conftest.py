"""A store with driven sessions, recorded once and copied for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.base_station.queries import QueryWorld

from fpvstation.query import keeper


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and its sidecars."""
    home = tmp_path_factory.mktemp("recorded")
    made = QueryWorld(home)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keeper, "SETTLED_S", 0.0)
        patched.setattr(keeper, "RUN_S", 600.0)
        assert list(made.keeper.run()) == []
    made.catalogue.close()
    return home


@pytest.fixture
def asked(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QueryWorld]:
    """A store with sidecars; no session has to settle, and a run does all work."""
    shutil.copytree(recorded, tmp_path / "home")
    made = QueryWorld(tmp_path / "home")
    monkeypatch.setenv("STATE_DIRECTORY", str(made.state))
    monkeypatch.setattr(keeper, "SETTLED_S", 0.0)
    monkeypatch.setattr(keeper, "RUN_S", 600.0)
    yield made
    made.catalogue.close()


@pytest.fixture
def world(asked: QueryWorld) -> QueryWorld:
    """The same store without sidecars."""
    shutil.rmtree(asked.keeper.folder)
    return asked

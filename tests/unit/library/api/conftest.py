"""Client of a car with one recording; a file with another folder overrides `folder`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from testkit.recordings import Client, ask, one_drive

from fpvcar.library import recording_index, summaries
from fpvcar.library.recording_index import RecordingIndex


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return one_drive(tmp_path)


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with ask(folder) as made:
        yield made


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read for a list."""
    names, real = list[str](), summaries.entry_of

    def counting(path: Path, rest: Callable[[], None]) -> summaries.Entry:
        names.append(path.name)
        return real(path, rest)

    monkeypatch.setattr(summaries, "entry_of", counting)
    return names


@pytest.fixture
def listed_anew(folder: Path, looked: list[str]) -> Callable[[], list[summaries.Entry]]:
    """Function that returns the list of another process."""

    def listed() -> list[summaries.Entry]:
        looked.clear()
        return RecordingIndex(lambda: recording_index.files_in(folder), folder=folder).entries()

    return listed

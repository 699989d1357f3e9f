"""Client of a car with one recording; a file with another folder overrides `folder`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from testkit.recordings import Client, ask, one_drive


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return one_drive(tmp_path)


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with ask(folder) as made:
        yield made

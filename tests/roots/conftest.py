"""Fixtures shared by the tests in roots."""

import shutil
import subprocess
from importlib.metadata import files
from pathlib import Path

import pytest

from tests.roots.root import TREE

REFEREES = (
    "colorzero",
    "gpiozero",
    "iniconfig",
    "mcap",
    "packaging",
    "picamera2",
    "pluggy",
    "pygments",
    "pytest",
    "pytest-asyncio",
    "videodev2",
)
"""Pure Python packages that the tests bring along: the test runner and its dependencies, and
packages that Debian does not have."""


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, including uncommitted files, that tests may write to."""
    copy = tmp_path_factory.mktemp("tree")
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TREE,
        check=True,
        capture_output=True,
    ).stdout
    packed = subprocess.run(
        ["tar", "-c", "--null", "-T", "-"],
        cwd=TREE,
        input=names,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    subprocess.run(["tar", "-x"], cwd=copy, input=packed, check=True)
    for name in REFEREES:
        for file in files(name) or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                to = copy / "referees" / file
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file.locate(), to)
    return copy

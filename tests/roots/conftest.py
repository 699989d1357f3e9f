"""What the tests in roots share."""

import subprocess
from pathlib import Path

import pytest

from tests.roots.root import TREE


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, with what is in no commit yet: tests may write there."""
    copy = tmp_path_factory.mktemp("tree")
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TREE, check=True, capture_output=True,
    ).stdout  # fmt: skip
    packed = subprocess.run(
        ["tar", "-c", "--null", "-T", "-"],
        cwd=TREE, input=files, check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    subprocess.run(["tar", "-x"], cwd=copy, input=packed, check=True)
    return copy

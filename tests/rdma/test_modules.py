"""What each C file needs of the others goes one way."""

import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"
UNDEFINED, DEFINED = "U", "TDBRC"
"""nm(1)'s letters for symbols that other object files see."""


def test_no_two_files_need_each_other(rdma_tools: Path) -> None:
    """The linker's own view: who uses a function that another one defines."""
    needed: dict[str, set[str]] = {}
    home: dict[str, str] = {}
    for path in SOURCE.glob("*.c"):
        built = SOURCE / "build" / f"{path.stem}.o"
        if not built.exists():  # without verbs.h, or their stand-in with it
            continue
        words = ["nm", "--format=posix", str(built)]
        rows = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        symbols = [row.split()[:2] for row in rows.splitlines()]
        needed[path.stem] = {name for name, kind in symbols if kind == UNDEFINED}
        home |= {name: path.stem for name, kind in symbols if kind in DEFINED}
    uses = {
        file: {home[name] for name in names & home.keys()}
        for file, names in needed.items()
    }
    assert uses["rdcp"] > {"pipe", "treesource"}
    TopologicalSorter(uses).prepare()  # CycleError names the circle

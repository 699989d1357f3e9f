"""Dependencies between the C files have no cycles."""

import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"
UNDEFINED, DEFINED = "U", "TDBRC"
"""Letters of nm(1) for symbols that other object files see."""


def test_c_files_have_no_cyclic_dependency(rdma_tools: Path) -> None:
    """The check uses the linker's own view: the files that use a function of another one."""
    built = [SOURCE / "build" / f"{path.stem}.o" for path in SOURCE.rglob("*.c")]
    objects = [path for path in built if path.exists()]  # with verbs, or without
    words = ["nm", "--format=posix", "--print-file-name", *map(str, objects)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    needed: dict[str, set[str]] = {path.stem: set() for path in objects}
    home: dict[str, str] = {}
    for row in said.splitlines():
        path, name, kind = row.split()[:3]
        file = Path(path.removesuffix(":")).stem
        if kind == UNDEFINED:
            needed[file].add(name)
        elif kind in DEFINED:
            home[name] = file
    uses = {file: {home[name] for name in names & home.keys()} for file, names in needed.items()}
    assert uses["rdcp"] > {"pipe", "tree_source"}
    TopologicalSorter(uses).prepare()  # CycleError names the cycle

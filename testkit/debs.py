"""Packages that `make deb` builds, and variants of them for tests of upgrades."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CAR = ("python3-fpvcar", "fpvcar")
"""The two packages of a car."""


def build(out: Path, tree: Path = ROOT) -> None:
    """Build the Python packages into a folder."""
    subprocess.run(
        [tree / "tools" / "deb.sh", out],
        check=True,
        capture_output=True,
        env={**os.environ, "BUILD": "all"},
    )


def unpack(deb: Path, tree: Path) -> None:
    tree.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)


def pack(tree: Path, deb: Path) -> None:
    words = ["dpkg-deb", "--root-owner-group", "-Znone", "-b", str(tree), str(deb)]
    subprocess.run(words, check=True, capture_output=True)


def changed(folder: Path, version: str, edit: Callable[[Path], None] = lambda tree: None) -> None:
    """Build a newer version of a car's packages, VERSION-PACKAGE.deb. `edit` may change each."""
    for package in CAR:
        (deb,) = folder.glob(f"{package}_*.deb")
        with tempfile.TemporaryDirectory() as made:
            tree = Path(made) / "tree"
            unpack(deb, tree)
            control = tree / "DEBIAN" / "control"
            text = re.sub("\nVersion: .*", f"\nVersion: {version}", control.read_text())
            text = re.sub(r"python3-fpvcar \(= .*?\)", f"python3-fpvcar (= {version})", text)
            control.write_text(text)
            program = tree / "usr/lib/python3/dist-packages/fpvcar/__init__.py"
            if program.exists():
                lines = re.sub(
                    "__version__ = .*", f'__version__ = "{version}"', program.read_text()
                )
                program.write_text(lines)
            edit(tree)
            pack(tree, folder / f"{version}-{package}.deb")

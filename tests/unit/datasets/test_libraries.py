"""Missing libraries: Debian's packages by apt, pyarrow in a virtual environment of its own."""

import os
import platform
import sys
from pathlib import Path

import pytest
from testkit.command import Command

from fpvcar.datasets import libraries

APT = "sudo apt install python3-av python3-numpy"


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand for the program of a Debian package, on a machine without libraries; return VENV."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(libraries, "VENV", tmp_path / "venv")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    for name in ("av", "numpy", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    return tmp_path / "venv"


def install(venv: Path, *names: str) -> str:
    """Make a virtual environment with these libraries; return its Python."""
    for name in ("bin", *(f"lib/python3.13/site-packages/{name}" for name in names)):
        (venv / name).mkdir(parents=True, exist_ok=True)
    (venv / "bin/python").touch()
    return str(venv / "bin/python")


def test_virtual_environment_gets_libraries_by_its_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries.to_install("lerobot") is None, "the tests have them"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    text = str(libraries.to_install("lerobot"))
    assert text == f"pyarrow missing. To install: {sys.prefix}/bin/pip install pyarrow"
    assert libraries.to_install("donkey") is None


def test_package_gets_debian_packages_and_pyarrow_apart(packaged: Path) -> None:
    assert str(libraries.to_install("donkey")) == f"av, numpy missing. To install: {APT}"
    text = str(libraries.to_install("lerobot"))
    assert f"{APT} python3-venv && sudo python3 -m venv --system-site-packages {packaged}" in text
    assert text.endswith(f"&& sudo {packaged}/bin/pip install pyarrow")


def test_32_bit_system_is_told_to_export_elsewhere(
    packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "armv7l")
    assert libraries.to_install("lerobot") == libraries.NO_PYARROW
    assert APT in str(libraries.to_install("donkey"))


def test_package_exports_by_the_python_with_pyarrow(
    packaged: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install(packaged, "av", "numpy", "pyarrow")
    assert libraries.interpreter() == python and libraries.to_install("lerobot") is None

    class Replaced(BaseException): ...

    def replace(path: str, argv: list[str]) -> None:
        assert (path, argv) == (python, [python, "-m", "fpvcar", *sys.argv[1:]])
        raise Replaced

    monkeypatch.setattr(os, "execv", replace)
    with pytest.raises(Replaced):
        command("log", "export", "--lerobot", tmp_path / "set", tmp_path)


def test_python_with_the_libraries_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(libraries, "VENV", tmp_path)
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("replaced"))
    install(tmp_path, "pyarrow")
    assert libraries.use("lerobot", "fpvcar") is None

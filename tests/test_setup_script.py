"""tools/setup.sh on a computer that lacks something: one sentence with the next step."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_docs import ROOT

OLD = 'case "$1" in --version) echo Python 3.9.2 ;; -c) exit 1 ;; esac'
OFFLINE = """[ "$2" = venv ] || exit 0
mkdir -p .venv/bin
printf '#!/bin/sh\nexit 1\n' >.venv/bin/python
chmod +x .venv/bin/python"""
"""Makes an environment whose pip fails."""
ALL_INSTALLED = 'shift 3; for one; do echo "$one install ok installed"; done'
NOTHING_INSTALLED = "exit 1"
USER = "echo 1000"


class Computer:
    """Folder of programs, the only ones that the script finds, and a copy of the script."""

    def __init__(self, folder: Path) -> None:
        self._tree, self._programs = folder / "tree", folder / "programs"
        self._programs.mkdir()
        (self._tree / "tools").mkdir(parents=True)
        for name in ("tools/setup.sh", "pyproject.toml", "requirements-bench.lock"):
            shutil.copy(ROOT / name, self._tree / name)
        for name in ("bash", "dirname", "grep", "cat", "sha256sum", "mkdir", "chmod", "true"):
            (self._programs / name).symlink_to(shutil.which(name) or name)
        self.calls = folder / "calls"
        self.has("id", USER)
        self.has("dpkg-query", ALL_INSTALLED)

    def has(self, name: str, script: str) -> None:
        """Add a program; its calls are recorded."""
        program = self._programs / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >>{self.calls}\n{script}\n')
        program.chmod(0o755)

    def run(self, **variables: str) -> tuple[int, list[str]]:
        """Return the exit status of `make run`'s set-up, and its lines."""
        done = subprocess.run(
            ["bash", "tools/setup.sh", "run"],
            cwd=self._tree,
            env={"PATH": str(self._programs), "HOME": str(self._tree), **variables},
            capture_output=True,
            text=True,
            timeout=30,
            start_new_session=True,
        )
        return done.returncode, done.stderr.splitlines()


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)


def test_old_python_is_refused_with_the_option_for_another(computer: Computer) -> None:
    computer.has("python3", OLD)
    needed = "Python 3.11 or newer is needed, as PYTHON=python3.12"
    assert computer.run() == (1, [f"  setup: Python 3.9.2 is too old: {needed}"])
    assert computer.run(PYTHON="python3.99") == (1, [f"  setup: python3.99 not found: {needed}"])


@pytest.mark.parametrize("sudo", ["", "exit 1"])
def test_user_without_root_gets_the_command_for_root(computer: Computer, sudo: str) -> None:
    computer.has("dpkg-query", NOTHING_INSTALLED)
    if sudo:
        computer.has("sudo", sudo)
    status, (_, last) = computer.run()
    assert status == 1
    refused = "  setup: this user may not install packages; as root: apt install libegl1 "
    assert last.startswith(refused)


def test_failed_apt_names_packages_and_network(computer: Computer) -> None:
    computer.has("dpkg-query", NOTHING_INSTALLED)
    computer.has("sudo", 'case "$*" in *install*) exit 100 ;; esac')  # runs nothing
    status, lines = computer.run()
    assert status == 1
    assert lines[-1].startswith("  setup: apt-get has not installed libegl1 ")
    assert lines[-1].endswith(": check the network, then run this again")


def test_failed_pip_names_the_network_and_is_run_again(computer: Computer) -> None:
    computer.has("python3", OFFLINE)
    for _ in range(2):
        status, lines = computer.run()
        assert (status, lines[-1]) == (
            1,
            "  setup: pip has not installed the packages: check the network, then run this again",
        )


def test_ctrl_c_installs_nothing(computer: Computer) -> None:
    """Ctrl-C ends the query of a package, which then looks like a missing one."""
    computer.has("dpkg-query", "kill -INT 0")
    computer.has("sudo", "exit 0")
    assert computer.run() == (130, [])
    assert "sudo" not in computer.calls.read_text()

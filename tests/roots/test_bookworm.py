"""tools/install.sh in a Debian Bookworm: install, install again, setup, remove."""

import os
from pathlib import Path

import pytest

from fpvcar.config.raspberry_pi_os import UNITS
from tests.roots.root import Root

BOOKWORM = Root(
    "amd64",
    "python3",
    ("ca-certificates", "python3-venv", "systemd", "udev"),
    "bookworm",
    variant="apt",
)
pytestmark = [
    pytest.mark.needs(BOOKWORM),
    pytest.mark.e2e,
    pytest.mark.soak,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root installs"),
]
INSTALL_S = 2400.0
LIST = "find /etc /opt /usr/local -newer /tmp/before | sort"
INSTALLED = f"""
touch /tmp/before
/mnt/tools/install.sh
fpvcar --version
/usr/bin/python3 -IS /opt/fpvcar/pins-off
fpvcar setup --board l298n --name Rusty
systemd-analyze verify /etc/systemd/system/fpvcar*.service
getent passwd fpvcar fpvcar-wheels fpvcar-pins-off
stat --format '%a %U %G' /run/fpvcar
{LIST}
"""
AGAIN = """
/mnt/tools/install.sh
first=$(readlink /opt/fpvcar)
/mnt/tools/install.sh
[ "$(readlink /opt/fpvcar)" != "$first" ]
[ ! -e "$first" ]
before=$(readlink /opt/fpvcar)
cp -R /mnt /tmp/other
sed -i 's/sha256:./sha256:0/' /tmp/other/requirements-car.lock
status=0
/tmp/other/tools/install.sh || status=$?
[ "$status" = 1 ]
[ "$(readlink /opt/fpvcar)" = "$before" ]
ls -d /opt/fpvcar*
fpvcar --version
"""
REMOVED = f"""
touch /tmp/before
/mnt/tools/install.sh
fpvcar setup --board l298n --name Rusty
/mnt/tools/install.sh --remove
{LIST}
"""


@pytest.fixture(scope="module")
def bookworm() -> Root:
    return BOOKWORM


def installed(bookworm: Root, tree: Path, script: str) -> list[str]:
    """Return the lines of the script's output, including those of find."""
    words = ("sh", "-euc", script)
    return bookworm.discard(tree, *words, timeout_s=INSTALL_S).splitlines()


def test_script_installs_files_of_the_package(bookworm: Root, tree: Path) -> None:
    lines = installed(bookworm, tree, INSTALLED)
    assert "  install: next, sudo fpvcar setup" in lines
    assert "2750 fpvcar-wheels fpvcar" in lines
    for unit in UNITS:
        assert f"/etc/systemd/system/{unit}" in lines
    assert "/usr/local/bin/fpvcar" in lines and "/etc/fpvcar/car.toml" in lines
    users = [line.split(":")[0] for line in lines if "nologin" in line]
    assert users == ["fpvcar", "fpvcar-wheels", "fpvcar-pins-off"]
    said = [line for line in lines if "/etc/systemd/system/" in line and ":" in line]
    assert all("Unknown key 'Restart" in line for line in said), said


def test_reinstall_replaces_and_wrong_hash_changes_nothing(bookworm: Root, tree: Path) -> None:
    lines = installed(bookworm, tree, AGAIN)
    version = lines[-1]
    assert lines.count(f"  install: {version} is installed") == 1
    again = f"  install: {version} is installed, in place of {version}"
    assert lines.count(again) == 1
    assert any("DO NOT MATCH THE HASHES" in line for line in lines), "pip says why"
    (refused,) = (line for line in lines if "pip refuses" in line)
    assert refused.startswith("  install: pip refuses requirements-car.lock")
    assert lines.index(refused) > lines.index(again)
    assert "nothing is changed" in refused and refused.endswith(
        "call /tmp/other/tools/install.sh again"
    )
    assert len([line for line in lines if line.startswith("/opt/fpvcar")]) == 2, lines


def test_remove_leaves_only_profile(bookworm: Root, tree: Path) -> None:
    lines = installed(bookworm, tree, REMOVED)
    left = [line for line in lines if line.startswith("/") and "fpvcar" in line]
    left = [path for path in left if ": " not in path]  # output of systemd-sysusers
    assert left == ["/etc/fpvcar", "/etc/fpvcar/car.toml"]

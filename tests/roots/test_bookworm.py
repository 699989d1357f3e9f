"""tools/install.sh in a Debian Bookworm: it installs, setup follows, it removes."""

import os
from pathlib import Path

import pytest

from fpvcar.system import UNITS
from tests.roots.root import Root, root

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.soak,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root installs"),
]
PACKAGES = ("ca-certificates", "python3-venv", "systemd", "udev")
INSTALL_S = 1200.0
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
REMOVED = f"""
touch /tmp/before
/mnt/tools/install.sh
fpvcar setup --board l298n --name Rusty
/mnt/tools/install.sh --remove
{LIST}
"""


@pytest.fixture(scope="module")
def bookworm() -> Root:
    return root("amd64", "python3", PACKAGES, "bookworm", variant="apt")


def installed(bookworm: Root, tree: Path, script: str) -> list[str]:
    """The lines that it says, with those of find."""
    words = ("sh", "-euc", script)
    return bookworm.discard(tree, *words, timeout_s=INSTALL_S).splitlines()


def test_it_installs_what_the_package_does(bookworm: Root, tree: Path) -> None:
    lines = installed(bookworm, tree, INSTALLED)
    assert "2750 fpvcar-wheels fpvcar" in lines
    for unit in UNITS:
        assert f"/etc/systemd/system/{unit}" in lines
    assert "/usr/local/bin/fpvcar" in lines and "/etc/fpvcar/car.toml" in lines
    users = [line.split(":")[0] for line in lines if "nologin" in line]
    assert users == ["fpvcar", "fpvcar-wheels", "fpvcar-pins-off"]
    said = [line for line in lines if "/etc/systemd/system/" in line and ":" in line]
    assert all("Unknown key 'Restart" in line for line in said), said


def test_removed_it_leaves_profile_and_users(bookworm: Root, tree: Path) -> None:
    lines = installed(bookworm, tree, REMOVED)
    left = [line for line in lines if "fpvcar" in line and line.startswith("/")]
    assert left == ["/etc/fpvcar", "/etc/fpvcar/car.toml"]

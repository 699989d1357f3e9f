"""The packages in a Debian Trixie: installed packages, an upgrade, and the way back."""

import os
import shutil
from pathlib import Path

import pytest
from testkit import debs

from tests.roots.root import Root, depends

TRIXIE = Root(
    "amd64", depends("python3-fpvcar", "fpvcar"), ("ca-certificates", "udev"), variant="apt"
)
BARE = Root("amd64", "systemd-sysv, python3", ("ca-certificates",), variant="apt")
pytestmark = [
    pytest.mark.needs(TRIXIE, BARE),
    pytest.mark.e2e,
    pytest.mark.soak,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root installs"),
]
INSTALL_S = 900.0
STATION_MOST = 25
"""Packages that a base station may install on a Debian with systemd and Python."""
OF_A_CAR = {"avahi-daemon", "fpvcar", "modemmanager", "network-manager", "ppp", "wpasupplicant"}
SIMULATED = """
sed -i '/copy:/d' /etc/apt/sources.list $(find /etc/apt/sources.list.d -name '*.list')
apt-get -qq update
apt-get --simulate -o APT::Install-Recommends=true install \
    /mnt/fpvstation_*.deb /mnt/python3-fpvcar_*.deb
"""
PREPARED = """
mkdir -p /etc/fpvcar
touch /etc/fpvcar/car.toml
version() {
    dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' "$@" 2>/dev/null || true
}
back() {
    version fpvcar python3-fpvcar
    echo fpvcar.service >/var/cache/fpvcar/was-well
    FPVCAR_HEALTHY_S=1 /usr/lib/fpvcar/upgrade watch
    dpkg --verify
    fpvcar --version
    version fpvcar python3-fpvcar
}
"""
INSTALL = "dpkg --auto-deconfigure -i"
"""The option that apt gives to dpkg."""
OLD_UPGRADE = """\
#!/bin/sh
[ "$1" = save ] || exit 2
mkdir -p /var/cache/fpvcar
cp /mnt/old.deb /var/cache/fpvcar/previous.deb
"""
"""The part of version 0.1's program that matters here: one package, under this name."""


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages, versions 9.1 and 9.2 of them, and one of before 0.2, with the library in it."""
    made = tmp_path_factory.mktemp("debs")
    debs.build(made)
    for version in ("9.1", "9.2"):
        debs.changed(made, version)
    old = made.parent / "old"
    for package in debs.CAR:  # the maintainer scripts are those of the last one
        (deb,) = made.glob(f"{package}_*.deb")
        debs.unpack(deb, old / package)
        shutil.copytree(old / package, old / "tree", dirs_exist_ok=True, symlinks=True)
    control = (old / "tree/DEBIAN/control").read_text()
    lines = [line for line in control.splitlines() if not line.startswith("Depends:")]
    lines = ["Version: 0.1.0" if line.startswith("Version:") else line for line in lines]
    (old / "tree/DEBIAN/control").write_text("\n".join(lines) + "\n")
    (old / "tree/usr/lib/fpvcar/upgrade").write_text(OLD_UPGRADE)
    init = old / "tree/usr/lib/python3/dist-packages/fpvcar/__init__.py"
    init.write_text('__version__ = "0.1.0"\n')
    debs.pack(old / "tree", made / "old.deb")
    return made


@pytest.fixture(scope="module")
def trixie() -> Root:
    return TRIXIE


def shell(trixie: Root, share: Path, script: str) -> list[str]:
    words = ("sh", "-euc", script)
    return trixie.discard(share, *words, timeout_s=INSTALL_S).splitlines()


def test_station_installs_few_packages_and_none_of_a_car(share: Path) -> None:
    lines = shell(BARE, share, SIMULATED)
    installed = {line.split()[1] for line in lines if line.startswith("Inst ")}
    assert {"fpvstation", "python3-fpvcar", "python3-aiohttp"} <= installed
    assert not installed & OF_A_CAR
    assert len(installed) <= STATION_MOST, sorted(installed)


ORDERS = ["/mnt/{}fpvcar{}.deb /mnt/{}python3-fpvcar{}.deb"]
ORDERS += [" ".join(reversed(ORDERS[0].split()))]


@pytest.mark.parametrize("order", ORDERS, ids=["car-first", "library-first"])
def test_upgrade_saves_both_packages_and_goes_back(order: str, share: Path, trixie: Root) -> None:
    first, second = (
        order.format(f"{version}-", "", f"{version}-", "") for version in ("9.1", "9.2")
    )
    script = f"dpkg -i {first}\n{PREPARED}\n{INSTALL} {second}\nback\n"
    lines = shell(trixie, share, script)
    installed = [line for line in lines if line.endswith(" installed")]
    assert installed == [
        f"{package} {version} installed"
        for version in ("9.2", "9.1")
        for package in ("fpvcar", "python3-fpvcar")
    ]
    assert "going back to what was installed before" in lines


@pytest.mark.parametrize("order", ORDERS, ids=["car-first", "library-first"])
def test_package_with_the_library_in_it_is_upgraded_and_comes_back(
    order: str, share: Path, trixie: Root
) -> None:
    new = order.format("", "_*", "", "_*")
    script = f"dpkg -i /mnt/old.deb\n{PREPARED}\n{INSTALL} {new}\nback\n"
    lines = shell(trixie, share, script)
    states = [line for line in lines if line.startswith(("fpvcar ", "python3-fpvcar "))]
    assert [line.split()[-1] for line in states[:2]] == ["installed", "installed"]
    assert states[2:4] == ["fpvcar 0.1.0", "fpvcar 0.1.0 installed"]
    assert not [line for line in states[4:] if line.endswith(" installed")]

"""The README's commands in a Debian Trixie with only git and make: setup.sh installs the rest."""

import os
from pathlib import Path

import pytest
from testkit.network.ports import free_port

from tests.roots.root import Root

STRANGER = Root("amd64", "git, make, ca-certificates", variant="apt")
pytestmark = [
    pytest.mark.needs(STRANGER),
    pytest.mark.e2e,
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root installs"),
]
RUN_S, TEST_S = 500.0, 2400.0
RUN = """
cp -R /mnt /root/fpvcar
cd /root/fpvcar
make run BROWSER=0 STATION=0 PORT={port} PIGPIO_PORT={pins} >/tmp/log 2>&1 &
for n in $(seq 450); do ! grep -q 'is ready' /tmp/log || break; sleep 1; done
kill -INT -$$ 2>/dev/null || kill $!
cat /tmp/log
"""
TARGETS = ("run", "test", "test-all", "benchmark", "check", "pipes", "deb", "image")
NAMES = """
cp -R /mnt /root/fpvcar
cd /root/fpvcar
sed -i '/copy:/d' /etc/apt/sources.list $(find /etc/apt/sources.list.d -name '*.list')
apt-get -qq update
mkdir /tmp/bin
cat >/tmp/bin/apt-get <<'END'
#!/bin/sh
case $* in *install*) exec /usr/bin/apt-get --simulate "$@" ;; esac
END
chmod +x /tmp/bin/apt-get
# Without Python, setup.sh ends behind the packages.
for target in {targets}; do PATH=/tmp/bin:$PATH PYTHON=true tools/setup.sh $target || true; done
"""
CLONE = (
    "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm 'tests: copy'"
)
TEST = f"""
cp -R /mnt /root/fpvcar
cd /root/fpvcar
{CLONE}
useradd --create-home driver
make test
make -s clean
chown -R driver: /root/fpvcar && mv /root/fpvcar /home/driver
runuser -u driver -- make -C /home/driver/fpvcar test
"""

DEB = f"""
cp -R /mnt /root/fpvcar
cd /root/fpvcar
{CLONE}
make deb
apt-get -qq install ./build/deb/fpvcar_*.deb ./build/deb/python3-fpvcar_*.deb >/dev/null
fpvcar setup --board mx1508-sensors --name Rusty --resistors --root /tmp/card || true
fpvcar profile check /tmp/card/etc/fpvcar/car.toml
"""
"""Commands of docs/build.md, 5, on the Pi; setup writes a card, as no Pi runs here."""


def test_make_run_opens_a_car_on_a_bare_debian(tree: Path) -> None:
    script = RUN.format(port=free_port(), pins=free_port())
    said = STRANGER.discard(tree, "bash", "-c", script, timeout_s=RUN_S)
    assert "is ready: http://localhost:" in said
    assert "not found" not in said and "Traceback" not in said


def test_each_package_that_setup_asks_for_is_in_debian(tree: Path) -> None:
    script = NAMES.format(targets=" ".join(TARGETS))
    said = STRANGER.discard(tree, "bash", "-c", script, timeout_s=RUN_S)
    assert "E: " not in said, said
    assert said.count("installing Debian packages: ") >= len(TARGETS)


@pytest.mark.long
def test_guide_builds_and_installs_the_packages_of_its_car(tree: Path) -> None:
    said = STRANGER.discard(tree, "bash", "-euc", DEB, timeout_s=TEST_S)
    print(said[-3000:])
    assert "/tmp/card/etc/fpvcar/car.toml: valid" in said


@pytest.mark.long
def test_quick_suite_passes_on_a_bare_debian_as_root_and_not(tree: Path) -> None:
    said = STRANGER.discard(tree, "bash", "-euc", TEST, timeout_s=TEST_S)
    print(said[-3000:])
    assert said.count("== quick suite") == 2 and "failed" not in said

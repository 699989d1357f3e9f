"""The packages of `rdpipe` for the Pi, with Trixie's libraries for it: under QEMU."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.roots.root import TREE, Root

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.long]
BUILD_S, RUN_S = 1800.0, 300.0
COPY = """
PATH=/mnt/usr/bin:$PATH
export RDPIPE_KEY=of-this-test-alone
for tool in rdsend rdrecv rdpipe rdcp; do $tool --version; done
head -c 9999999 /dev/urandom >/tmp/sent
rdrecv --encrypt 7000 /tmp/received &
receiver=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    ! rdsend --encrypt 127.0.0.1 7000 /tmp/sent || break
    sleep 1
done
wait $receiver
cmp /tmp/sent /tmp/received
echo the same
"""


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.geteuid() != 0:
        pytest.skip("a Debian of cross compilers is made by root")
    out = tmp_path_factory.mktemp("deb")
    done = subprocess.run(
        [TREE / "tools" / "deb.sh", out],
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        env={**os.environ, "BUILD": "any", "ARCHES": "arm64 armhf"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return out


@pytest.mark.parametrize("architecture", ["arm64", "armhf"])
def test_package_is_installable_and_copies(debs: Path, architecture: str, tmp_path: Path) -> None:
    (deb,) = debs.glob(f"rdpipe_*_{architecture}.deb")
    depends = subprocess.run(
        ["dpkg-deb", "--field", deb, "Depends"], check=True, capture_output=True, text=True
    ).stdout.strip()
    subprocess.run(["dpkg-deb", "--extract", deb, tmp_path], check=True)
    libraries = Root(architecture, depends, ("diffutils",))
    libraries.make()  # the package that was just built names them
    said = libraries.run(tmp_path, "sh", "-euc", COPY, timeout_s=RUN_S)
    assert said.stdout.splitlines()[-1] == "the same", said.stdout

"""The unit tests with Debian Trixie's libraries, on arm64 as on a Pi: under QEMU."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.roots import left_out
from tests.roots.root import TREE, Root, depends

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
LIBRARIES = (
    "av",
    "hypothesis",
    "lz4",
    "numpy",
    "pil",
    "prometheus-client",
    "websockets",
    "zstandard",
)
PROGRAMS = ("dnsmasq-base", "ffmpeg", "fio", "nftables", "util-linux")
TEST_PACKAGES = (*PROGRAMS, *(f"python3-{name}" for name in LIBRARIES))
"""Packages that some tests need beside the package's dependencies."""
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
ALTERNATIVES = ("blas", "lapack")
"""Alternatives of NumPy; configuring a package makes the links to them."""
UNIT = TREE / "tests" / "unit"
MOST = 8
"""Most files in one run: an emulated processor takes minutes for them."""
START_S, TEST_S, PART_S = 600.0, 600.0, 3600.0
CPU = "cortex-a53"
"""The processor of a Pi Zero 2. QEMU's default signs each return address, and is slow at it."""


def parts() -> Iterator[tuple[str, str, list[str]]]:
    """Yield an architecture, a name and a few test files of each folder at a time."""
    for architecture in TRIPLETS:
        for folder in (UNIT, *sorted(one for one in UNIT.rglob("*") if one.is_dir())):
            every = sorted(folder.glob("test_*.py"))
            files = [
                f"tests/unit/{name}"
                for name in (str(one.relative_to(UNIT)) for one in every)
                if not left_out.whole(name, architecture != "amd64")
            ]
            for first in range(0, len(files), MOST):
                name = f"{folder.name}-{first // MOST + 1}"
                yield architecture, name, files[first : first + MOST]


PARTS = list(parts())


CAR = depends("python3-fpvcar", "fpvcar")
ARM64 = Root("arm64", CAR)
ROOTS = {architecture: Root(architecture, CAR, TEST_PACKAGES) for architecture in TRIPLETS}


@pytest.mark.needs(ARM64)
def test_car_starts_on_arm64(soaking: bool) -> None:
    """The long form tests each import of run and wheels. The short form tests the driving
    modules only."""
    modules = "fpvcar.drive.gate, fpvcar.wheels.__main__"
    if soaking:
        modules += ", fpvcar.app"
    code = f"import platform, {modules}, fpvcar.__main__ as main\n"
    code += "print(platform.machine(), main.main(['profile', 'check', 'l298n']))"
    words = ("env", f"QEMU_CPU={CPU}", "PYTHONPATH=/mnt/pi", "python3", "-c", code)
    said = ARM64.run(TREE, *words, timeout_s=START_S).stdout
    assert said.splitlines()[-1] == "aarch64 0", said


@pytest.mark.long
@pytest.mark.parametrize(
    ("architecture", "files"),
    [
        pytest.param(
            architecture,
            files,
            id=f"{architecture}-{name}",
            marks=pytest.mark.needs(ROOTS[architecture]),
        )
        for architecture, name, files in PARTS
    ],
)
def test_unit_tests_pass_on_trixie(architecture: str, files: list[str], tree: Path) -> None:
    """On amd64 this takes minutes, and shows faults of Trixie that are not the processor's."""
    folder = f"/usr/lib/{TRIPLETS[architecture]}"
    said = (
        ROOTS[architecture]
        .run(
            tree,
            "env",
            f"QEMU_CPU={CPU}",
            "PYTHONPATH=/mnt/pi:/mnt/base-station:/mnt/referees",
            "LD_LIBRARY_PATH=" + ":".join(f"{folder}/{name}" for name in ALTERNATIVES),
            "python3",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not e2e",
            "--durations=5",
            "-o",
            f"faulthandler_timeout={TEST_S}",
            "-o",
            "faulthandler_exit_on_timeout=true",
            *left_out.options(architecture != "amd64"),
            *files,
            timeout_s=PART_S,
        )
        .stdout
    )
    print("\n".join(said.splitlines()[-8:]))

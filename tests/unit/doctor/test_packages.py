"""Doctor's reading of dpkg's status file, and its check for one version of all camera packages."""

import shutil
import subprocess
from pathlib import Path

import pytest
from testkit import doctor as rig
from testkit.doctor import PlayedMachine, examined, healthy, put

from fpvcar.doctor import collect


def camera_package(name: str, version: str) -> str:
    """Return a paragraph of a Pi's dpkg status: further fields are before the version."""
    return (
        f"Package: {name}\nEssential: yes\nStatus: install ok installed\nPriority: optional\n"
        f"Source: libcamera\nVersion: {version}\nDescription: x\n Version: 9 is no field here\n"
    )


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ({"libcamera0.5": "0.5.2-1", "libcamera-ipa": "0.5.2-1", "libcamera0.3": "0.3.2-1"}, ""),
        ({"libcamera0.5": "0.5.2-1", "libcamera-ipa": "0.5.0-1"}, "fit libcamera-ipa 0.5.0-1"),
        (
            {"libcamera0.6": "0.6.0-1"},
            "python3-libcamera 0.5.2-1 does not fit libcamera0.6 0.6.0-1",
        ),
        ({}, "does not fit libcamera is missing"),
    ],
)
def test_parts_of_libcamera_have_one_version(
    packages: dict[str, str], words: str, tmp_path: Path
) -> None:
    status = rig.FILES["var/lib/dpkg/status"]
    others = [part for part in status.split("\n\n") if "libcamera" not in part]
    packages = {"python3-libcamera": "0.5.2-1", **packages}
    parts = [part.rstrip("\n") for part in others]
    parts += [camera_package(*item).rstrip("\n") for item in packages.items()]
    put(healthy(tmp_path), "var/lib/dpkg/status", "\n\n".join(parts) + "\n")
    report = examined(tmp_path, PlayedMachine())
    assert [one.key for one in report.findings] == (["camera-pair"] if words else [])
    assert not words or words in report.findings[0].what


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no Debian")
def test_installed_packages_and_versions_are_those_of_dpkg() -> None:
    words = ["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package} ${Version}\n"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    installed = dict(line.split()[1:3] for line in lines if line[1] == "i")
    assert collect._packages(Path("/")) == installed and len(installed) > 50

"""Fixtures: a store on a btrfs, and another btrfs on a host that the sshd of the tests serves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.base_station.snapshots import Replica, Rig
from testkit.network.pipes import Tools
from testkit.recorder.card import image, mounted


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    file = image(tmp_path / "disk.img", 300, "mkfs.btrfs", "-q", "-f")
    with mounted(file, tmp_path / "disk", "loop,noatime") as disk:
        yield Rig(disk, tmp_path)


@pytest.fixture
def replica(
    rig: Rig, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Replica]:
    monkeypatch.setenv("PATH", f"{tools.folder}:{os.environ['PATH']}")
    rig.set_up()
    file = image(tmp_path / "replica.img", 300, "mkfs.btrfs", "-q", "-f")
    with mounted(file, tmp_path / "far") as disk:
        yield Replica(rig, tools, disk)

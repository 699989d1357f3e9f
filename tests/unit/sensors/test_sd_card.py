"""SD card: health from a made root, and the messages about it."""

from pathlib import Path

import pytest

from fpvcar.devices.computer import ComputerReadings
from fpvcar.devices.linux.computer import Machine
from fpvcar.sensors.computer import health_of
from fpvcar.sensors.sd_card import card_of, faults, read_only
from fpvcar.wire.telemetry import Card

MOUNTS = """\
/dev/mmcblk0p2 / ext4 rw,noatime 0 0
/dev/mmcblk0p3 /var/lib/fpvcar ext4 ro,noatime,errors=remount-ro 0 0
/dev/sda1 /media/a\\040stick vfat rw 0 0
short line
"""


def root(tmp_path: Path, **cards: str) -> Path:
    """Make a file system with cards; NAME = "LIFE TIMES; PRE EOL"."""
    for name, text in cards.items():
        device = tmp_path / "sys/block" / name / "device"
        device.mkdir(parents=True)
        life, _, end = text.partition(";")
        if life:
            (device / "life_time").write_text(f"{life}\n")
        if end:
            (device / "pre_eol_info").write_text(f"{end.strip()}\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(MOUNTS)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("0x01 0x01; 0x01", 0.1),
        ("0x02 0x05; 0x01", 0.5),
        ("0x09 0x01; 0x01", 0.9),
        ("0x0b 0x0b; 0x03", 1.1),
        ("0x00 0x00; 0x00", None),
        ("", None),
        ("rubbish", None),
        ("0x7f 0x01; 0x01", 0.1),
        ("0x01 0x01; 0x02", 0.9),
    ],
)
def test_used_life_is_read_from_the_card_registers(
    tmp_path: Path, text: str, used: float | None
) -> None:
    disk = tmp_path / "var/lib/fpvcar/recordings"
    found = Machine(root(tmp_path, mmcblk0=text), disk).read()
    assert card_of(found).used == used


def test_worse_of_two_cards_counts(tmp_path: Path) -> None:
    machine = Machine(root(tmp_path, mmcblk0="0x01 0x02; 0x01", mmcblk1="0x0a 0x01"))
    assert card_of(machine.read()).used == 1.0


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/home/pi", False),
        ("/var/lib/fpvcar/recordings", True),
        ("/var/lib/fpvcar", True),
        ("/var/lib/fpvcar2", False),
        ("/media/a stick/drives", False),
        ("relative", None),
    ],
)
def test_longest_matching_mount_decides_read_only(path: str, verdict: bool | None) -> None:
    assert read_only(MOUNTS, path) is verdict


def test_later_of_two_mounts_at_a_place_counts() -> None:
    assert read_only(MOUNTS + "/dev/sdb / ext4 ro 0 0\n", "/home") is True
    assert read_only(None, "/home") is None


@pytest.mark.parametrize(
    ("mount", "lost"),
    [
        ("/dev/mmcblk0p3 /var/lib/fpvcar ext4 rw 0 0", False),
        ("overlayroot / overlay rw 0 0", True),
        ("/media/root-rw/overlay/var /var/lib/fpvcar overlay rw 0 0", True),
        ("tmpfs /var/lib/fpvcar tmpfs rw 0 0", True),
    ],
)
@pytest.mark.parametrize("board", ["Raspberry Pi 4 Model B", None])
def test_recordings_in_memory_of_a_pi_are_a_fault(
    mount: str, lost: bool, board: str | None
) -> None:
    """A development machine may have all of its files in an overlay."""
    readings = ComputerReadings(
        mounts=f"/dev/mmcblk0p2 / ext4 rw 0 0\n{mount}\n",
        disk="/var/lib/fpvcar/recordings",
        board=board,
    )
    expected = ("card_volatile",) if lost and board else ()
    assert tuple(fault.key for fault in health_of(readings).faults) == expected


def test_card_faults_name_the_next_step() -> None:
    health = health_of(
        ComputerReadings(
            life_times=("0x0b 0x01",), mounts=MOUNTS, disk="/var/lib/fpvcar/recordings"
        )
    )
    said = [str(fault) for fault in health.faults]
    assert [fault.key for fault in health.faults] == ["card_read_only", "card_worn"]
    assert [one.partition(":")[0] for one in said] == [
        "the card is read-only, nothing is saved",
        "the card is worn, 100% of its life",
    ]
    assert "replace it" in said[0] and "replace it" in said[1]


def test_good_or_unknown_card_is_no_fault() -> None:
    assert [*faults(Card()), *faults(Card(0.8, False, False))] == []


@pytest.mark.parametrize(
    ("utc_s", "said"),
    [(0.0, "1970-01-01 00:00"), (-5.0, "1970"), (1_767_225_599.0, "2025-12-31 23:59")],
)
def test_clock_before_2026_is_reported_as_wrong(utc_s: float, said: str) -> None:
    (one,) = health_of(ComputerReadings(utc_s=utc_s)).faults
    assert one.key == "clock" and "sudo date -s" in str(one)
    assert str(one).startswith(f"the clock is wrong, {said}")
    assert health_of(ComputerReadings(utc_s=1_767_225_600.0)).faults == ()

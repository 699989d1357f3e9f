"""Runs in the VM: `fpvcar camera v4l2` on the kernel's vivid, as a process.

vivid gives YUYV in the sizes of a webcam and has its controls; it can be unplugged. Limits: USB,
MJPEG and H.264 of a webcam, and a sensor's light are not tested.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fpvcar.devices.capture import CaptureError, NoCamera
from fpvcar.devices.linux import v4l2, v4l2_controls
from fpvcar.devices.linux.webcam import Webcam
from fpvcar.video import h264, process
from fpvcar.wire.camera import Record, parse_record_header
from tests.vm_sensors import tell

DEVICE, SIZE, FPS = Path("/dev/video0"), (320, 180), 15.0
DRIVER = Path("/sys/bus/platform/drivers/vivid")
SOON_S = 60.0
"""Long, because the VM's processor is emulated."""


@contextlib.contextmanager
def webcam(wanted: str = "YUYV") -> Iterator[Webcam]:
    with contextlib.closing(Webcam(DEVICE, wanted, *SIZE, FPS)) as camera:
        yield camera


def camera_process(*options: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            sys.executable,
            "-B",
            "-m",
            "fpvcar.video.programs.webcam",
            f"--device={DEVICE}",
            f"--width={SIZE[0]}",
            f"--height={SIZE[1]}",
            f"--fps={FPS:g}",
            *options,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def record(camera: "subprocess.Popen[bytes]") -> Record:
    assert camera.stdout
    head = camera.stdout.read(16)
    if len(head) < 16:
        assert camera.stderr
        raise AssertionError(camera.stderr.read().decode())
    length, key, stamp = parse_record_header(head)
    return Record(key, stamp, camera.stdout.read(length))


def formats() -> None:
    """The camera's own format is chosen, and it is not found as a webcam on USB."""
    assert v4l2.choose(DEVICE, ("H264", "YUYV", "MJPG"), *SIZE, FPS) == "YUYV"
    try:
        v4l2.choose(DEVICE, ("H264", "MJPG"), *SIZE, FPS)
        raise AssertionError("chosen")
    except CaptureError as fault:
        assert str(fault).endswith("does not offer H264, MJPG"), fault
    try:
        raise AssertionError(v4l2.find_webcam(("YUYV",)))
    except NoCamera as fault:
        assert "no webcam on USB (looked at: video0" in str(fault), fault


def newest() -> None:
    """The last of the waiting frames is taken, and it is recent."""
    with webcam() as camera:
        first = camera.frame(SOON_S)
        assert first is not None
        sequence = first.sequence
        time.sleep(0.5)
        last = camera.newest()
        assert last is not None and last.sequence > sequence + 1, last
        assert last.time_us is not None


def controls() -> None:
    """Brightness and flips are the driver's; missing controls are reported."""
    with webcam() as camera:
        assert camera.set_flip("both") and camera.set_brightness(0.5)
        own = v4l2_controls.query(camera.fd, v4l2_controls.BRIGHTNESS)
        assert own is not None and own.least < own.usual < own.most
        assert camera.set_flip("none") and camera.set_brightness(0.0)
        assert not camera.request_key() and not camera.set_bitrate(1_000_000)


def encoded() -> None:
    """The process writes access units with stamps of the kernel, a key frame on request, and
    ends with stdin."""
    camera = camera_process()
    assert camera.stdin and camera.stderr
    records = [record(camera) for _ in range(4)]
    assert records[0].key and h264.is_key(records[0].unit)
    stamps = [one.capture_us for one in records]
    assert stamps == sorted(set(stamps)), stamps
    assert 0 <= time.monotonic_ns() // 1000 - stamps[-1] < SOON_S * 1e6
    os.write(camera.stdin.fileno(), b"key\n")
    assert any(record(camera).key for _ in range(5))
    camera.stdin.close()
    assert camera.wait(SOON_S) == 0
    assert b"YUYV 320x180" in camera.stderr.read()


def unplugged() -> None:
    """An unplugged camera is reported and ends the process; plugged in again, it works again."""
    camera = camera_process()
    record(camera)
    (DRIVER / "unbind").write_text("vivid.0")
    assert camera.stdout and camera.stderr
    camera.stdout.read()
    status, said = camera.wait(SOON_S), camera.stderr.read().decode()
    assert status == process.NO_CAMERA and "was unplugged" in said, (status, said)
    absent = camera_process()
    assert absent.wait(SOON_S) == process.NO_CAMERA
    (DRIVER / "bind").write_text("vivid.0")
    again = camera_process()
    assert record(again).key
    assert again.stdin
    again.stdin.close()
    assert again.wait(SOON_S) == 0


if __name__ == "__main__":
    checks = (formats, newest, controls, encoded, unplugged)
    tell({check.__name__: check for check in checks})

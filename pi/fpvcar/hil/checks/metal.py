"""Checks that only metal can confirm: statements that no emulator can prove.

The bench never runs them. Those without a program are done by hand, with instructions.
"""

import multiprocessing
import os
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

from fpvcar.devices import backends
from fpvcar.hil.checks.stops import stopped
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed, MissingPart
from fpvcar.hil.stop_causes import BY_NAME

NONE = Limit(0.0, "faults", "the data sheet, or the program's own documentation")
BUSY_S = 5.0
CAMERA_MB = 120.0


def _burn(until_s: float) -> None:
    while time.monotonic() < until_s:
        pass


def _loaded(rig: Rig) -> Measured:
    """Measure the dead man's reaction time while every core is busy."""
    until_s = time.monotonic() + BUSY_S
    workers = [
        multiprocessing.Process(target=_burn, args=(until_s,), daemon=True)
        for _ in range(os.cpu_count() or 1)
    ]
    for worker in workers:
        worker.start()
    try:
        return stopped(BY_NAME["wheels killed"], rig)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _throttled(rig: Rig) -> Measured:
    """Check that the firmware reports under-voltage, through either path."""
    if backends.open_computer(Path("/")).read().throttled is None:
        raise CheckFailed("no get_throttled below /sys/devices, and no answer from vcgencmd")
    return Measured(0.0)


def _pinctrl(rig: Rig) -> Measured:
    """Check that `pinctrl set N ip pd` works and that the pin reports it."""
    program, gpio = shutil.which("pinctrl"), rig.profile.rig.back
    if program is None:
        raise MissingPart("pinctrl is missing (Debian: raspi-utils)")
    if gpio is None:
        raise MissingPart("no pin rig.back")
    subprocess.run([program, "set", str(gpio), "ip", "pd"], check=True)
    output = subprocess.run(
        [program, "get", str(gpio)], check=True, capture_output=True, text=True
    ).stdout
    if not {"ip", "pd"} <= set(output.split()):
        raise CheckFailed(f"after pinctrl set {gpio} ip pd it reports: {output.strip()}")
    return Measured(0.0)


def _camera_memory(rig: Rig) -> Measured:
    """Measure the camera process's resident memory in MB."""
    if rig.profile.camera.source != "picamera2":
        raise MissingPart('no picamera2 camera (camera.source = "picamera2")')
    with rig.driver() as driver:
        driver.look()
        time.sleep(BUSY_S)
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                command = (status.parent / "cmdline").read_bytes()
                lines = status.read_text().splitlines()
            except OSError:
                continue
            if b"fpvcar\0camera" in command or b"fpvcar.video.programs.pi_camera" in command:
                memory = next(line for line in lines if line.startswith("VmRSS"))
                return Measured(int(memory.split()[1]) * 1024 / 1e6)
    raise CheckFailed("the camera process is not running")


def _by_hand(name: str, proves: str, steps: str) -> Check:
    return Check(name, "metal", proves, NONE, ("metal",), metal=True, by_hand=steps)


CHECKS = (
    Check(
        "metal-pigpiod-killed",
        "metal",
        "A PWM that a killed pigpiod leaves running is stopped by its unit's ExecStopPost.",
        Limit(0.50, "s", "docs/safety.md"),
        ("metal", "loops", "processes", "pin daemon"),
        partial(stopped, BY_NAME["pigpiod killed"]),
        metal=True,
    ),
    Check(
        "metal-dead-man-loaded",
        "metal",
        "The dead man's switch stops the car while every core of a Zero W is busy.",
        Limit(0.30, "s", "docs/safety.md"),
        ("metal", "loops", "processes"),
        _loaded,
        metal=True,
    ),
    _by_hand(
        "metal-brake",
        "An MX1508 with both inputs high brakes, and survives its motor's stall current.",
        "A motor on OUT1 and OUT2, an ammeter in its lead: stop from full speed "
        "with brake_s = 0.2 and with 0, and hold the shaft for a second.",
    ),
    _by_hand(
        "metal-oe",
        "OE of the HAT is wired to pca9685.oe.",
        "Pull the wire of OE from the Pi while a lifted wheel turns: the 1 kΩ to 3.3 V stops it.",
    ),
    _by_hand(
        "metal-save-pts",
        "rpicam-vid on a Pi 5 writes time stamps into a pipe.",
        "mkfifo pts; cat pts & rpicam-vid -t 2000 --codec libav "
        "--libav-format h264 --save-pts pts -o /dev/null",
    ),
    Check(
        "metal-throttled",
        "metal",
        "The firmware reports a weak supply.",
        NONE,
        ("metal",),
        _throttled,
        metal=True,
    ),
    _by_hand(
        "metal-depth",
        "A RealSense D4xx is detected by the kernel's pixel format Z16.",
        'A D415 or D435 on USB, depth.source = "v4l2": fpvcar doctor lists it.',
    ),
    Check(
        "metal-camera-memory",
        "metal",
        "picamera2 leaves room on a Zero 2 W.",
        Limit(CAMERA_MB, "MB", "of the 512 MB of a Zero 2 W"),
        ("metal", "camera"),
        _camera_memory,
        metal=True,
    ),
    Check(
        "metal-pinctrl",
        "metal",
        "pinctrl supports `set N ip pd`.",
        NONE,
        ("metal",),
        _pinctrl,
        metal=True,
    ),
    _by_hand(
        "metal-hat-hung",
        "The guardian switches a PCA9685 off when `wheels` hangs.",
        "A motor HAT, a lifted wheel: kill -STOP fpvcar-wheels, and check that the "
        "wheel stops within 0.3 s.",
    ),
    _by_hand(
        "metal-watchdog",
        "The SoC's watchdog resets a kernel that hangs.",
        "Wheels lifted: echo c | sudo tee /proc/sysrq-trigger; the wheels stop, and "
        "the car restarts in the stopped state.",
    ),
)

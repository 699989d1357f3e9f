"""Checks of the board, its system, the packages, the profile, the version."""

import re
import sys
from collections.abc import Mapping

from fpvcar.config import Profile, checks
from fpvcar.config.raspberry_pi_os import RP1_BOARD
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Findings, Kind, Severity, Unasked
from fpvcar.video.frame_rate import STEADY_FPS

NO_PI = "this is no Raspberry Pi"
BOARDS = (
    "Raspberry Pi Zero",
    "Raspberry Pi 3",
    "Raspberry Pi 4",
    "Raspberry Pi 5",
    "Raspberry Pi Compute Module",
)
SYSTEMS = ("bookworm", "trixie")
LEAST_PYTHON = (3, 11)
ONE_CORE = "Raspberry Pi Zero W"
ONE_CORE_FPS = 15.0
CAMERA_PACKAGES = {
    "picamera2": ("python3-picamera2", "the camera"),
    "rpicam": ("rpicam-apps-lite", "the camera"),
    "v4l2": ("python3-av", "the webcam"),
}
"""Value of camera.source -> the Debian package it needs, and its purpose."""
ALIKE = {"rpicam-apps-lite": "rpicam-apps"}
"""Equivalent packages: either of the two suffices."""
LIBCAMERA = re.compile(r"libcamera[0-9.]+")
"""Package of the library, named after its ABI: libcamera0.5."""
NETWORK_PACKAGES = {
    "avahi-daemon": "the car's address NAME.local",
    "network-manager": "the car's Wi-Fi",
    "dnsmasq-base": "the car's own network",
}
SPI_PINS, UART_PINS = (7, 8), (14, 15)

UNSUPPORTED_BOARD = Kind(
    "board",
    Severity.WARNING,
    "The car does not start",
    "unsupported board: {model}",
    "Supported are Zero W, Zero 2 W, 3, 4 and 5; pins and camera may differ on this one.",
    "use a supported board, or test this one with the wheels off the ground",
)
PIGPIO_UNSUPPORTED = Kind(
    "board-daemon",
    Severity.FAULT,
    "The car does not move",
    'pins.backend = "pigpio" on a {model}',
    "pigpiod does not support the chip of this board, so no pin can be switched.",
    'set pins.backend = "linux" in {path}, or remove the line',
)
SLOW_BOARD = Kind(
    "board-slow",
    Severity.WARNING,
    "No picture, or a late one",
    "camera.fps = {fps:g} on a {model}",
    "Its single core handles 15 frames per second; at higher rates all frames are late.",
    "set camera.fps = 15 in {path}, then sudo systemctl restart fpvcar",
)
BUSY_BOARD = Kind(
    "board-busy",
    Severity.NOTE,
    "No picture, or a late one",
    "camera.fps = {fps:g} on a {model}",
    "It has no H.264 encoder, so its processor encodes and gets hot; then the car falls to 30.",
    "fit a cooler, or set camera.fps = 30 in {path}, then sudo systemctl restart fpvcar",
)
UNSUPPORTED_SYSTEM = Kind(
    "system",
    Severity.WARNING,
    "The car does not start",
    "unsupported operating system: {name}",
    "Its packages and kernel may be too old or incompatible.",
    "install Raspberry Pi OS Trixie (docs/install.md)",
)
MISSING_PACKAGE = Kind(
    "package",
    Severity.WARNING,
    "The car does not start",
    "the package {package} is missing",
    "It is needed for {use}.",
    "sudo apt install {package}",
)
LIBCAMERA_PARTS = Kind(
    "camera-pair",
    Severity.FAULT,
    "No picture, or a late one",
    "python3-libcamera {version} does not fit {parts}",
    "picamera2 cannot load libcamera unless all of its packages have the same version.",
    "sudo apt update && sudo apt full-upgrade, then sudo reboot",
)
LOCAL_LIBCAMERA = Kind(
    "camera-local",
    Severity.WARNING,
    "No picture, or a late one",
    "a libcamera of your own is installed: {path}",
    "picamera2 loads it instead of the package's, and fails if their versions differ.",
    "sudo ninja -C build uninstall in its source folder, then sudo ldconfig",
)
MISSING_MODULE = Kind(
    "module",
    Severity.FAULT,
    "The car does not start",
    "Python cannot import {module}",
    "A process of the car needs this module and cannot start.",
    "sudo apt install --reinstall fpvcar (on Bookworm: sudo tools/install.sh)",
)
INVALID_PROFILE = Kind(
    "profile",
    Severity.FAULT,
    "The car does not start",
    "invalid profile: {fault}",
    "The car cannot start: the profile assigns its pins.",
    "correct the value, then: fpvcar profile check {path}",
)
RISKY_SETTING = Kind(
    "profile-care",
    Severity.WARNING,
    "The car does not move",
    "risky setting in the profile: {place}",
    "The setting is valid, but: {fault}.",
    "change the wiring or the setting, then: fpvcar profile check {path}",
)
SHARED_PIN = Kind(
    "pin-shared",
    Severity.WARNING,
    "The car does not move",
    "{place} = {gpio}: the operating system uses this pin for {user}",
    "Two programs that drive one pin overwrite each other's output.",
    "{mend}; or move the wire to another pin and change the profile",
)
STALE_VERSION = Kind(
    "version",
    Severity.WARNING,
    "It stops by itself",
    "version {installed} is installed, but version {running} is running",
    "The running version was not tested with the installed files.",
    "sudo systemctl restart fpvcar-wheels fpvcar",
)


def board(facts: Facts) -> Findings:
    """Check that the board is supported, and that the profile fits it."""
    model, profile = facts.model, facts.profile
    if model is None:
        yield Unasked(f"{NO_PI}; the bench does not need one")
        return
    if not model.startswith(BOARDS):
        yield UNSUPPORTED_BOARD.finding(model=model)
    if isinstance(profile, str):
        return
    if RP1_BOARD.match(model) and facts.backend == "pigpio":
        yield PIGPIO_UNSUPPORTED.finding(model=model, path=facts.profile_path)
    fps = profile.camera.fps if profile.camera.source != "none" else 0.0
    if model.startswith(ONE_CORE) and fps > ONE_CORE_FPS:
        yield SLOW_BOARD.finding(model=model, fps=fps, path=facts.profile_path)
    if RP1_BOARD.match(model) and fps > STEADY_FPS:
        yield BUSY_BOARD.finding(model=model, fps=fps, path=facts.profile_path)


def system(facts: Facts) -> Findings:
    """Check for a supported release of Raspberry Pi OS."""
    if facts.model is None:
        yield Unasked(NO_PI)
    elif facts.os.codename not in SYSTEMS or sys.version_info < LEAST_PYTHON:
        yield UNSUPPORTED_SYSTEM.finding(name=facts.os.name or "an unknown system")


def packages(facts: Facts) -> Findings:
    """Check the packages that the profile needs."""
    for module in facts.modules_missing:
        yield MISSING_MODULE.finding(module=module)
    profile, installed = facts.profile, facts.packages
    if isinstance(installed, Unasked):
        yield installed
        return
    needed = {"openssl": "HTTPS"}
    if not isinstance(profile, str):
        if profile.network.own:
            needed |= NETWORK_PACKAGES
        if not profile.camera.command and profile.camera.source in CAMERA_PACKAGES:
            package, use = CAMERA_PACKAGES[profile.camera.source]
            needed[package] = use
    for package, use in needed.items():
        if not {package, ALIKE.get(package, package)} & installed.keys():
            yield MISSING_PACKAGE.finding(package=package, use=use)
    if "python3-picamera2" in needed and "python3-picamera2" in installed:
        yield from _libcamera(facts, installed)


def _libcamera(facts: Facts, installed: Mapping[str, str]) -> Findings:
    """Check that picamera2 gets one libcamera, complete: apt can update its parts one by one."""
    if facts.local_libcamera:
        yield LOCAL_LIBCAMERA.finding(path=facts.local_libcamera)
    version = installed.get("python3-libcamera")
    if version is None:
        yield MISSING_PACKAGE.finding(package="python3-libcamera", use="picamera2")
        return
    libraries = [name for name in sorted(installed) if LIBCAMERA.fullmatch(name)]
    fits = any(installed[name] == version for name in libraries)
    others = [] if fits else libraries or ["libcamera"]
    if installed.get("libcamera-ipa", version) != version:
        others.append("libcamera-ipa")
    if others:
        parts = ", ".join(f"{name} {installed.get(name, 'is missing')}" for name in others)
        yield LIBCAMERA_PARTS.finding(version=version, parts=parts)


def profile(facts: Facts) -> Findings:
    """Check that the profile is valid, and report its warnings."""
    profile = facts.profile
    if isinstance(profile, str):
        yield INVALID_PROFILE.finding(fault=profile, path=facts.profile_path)
        return
    for warning in checks.warnings(profile):
        place, _, risk = warning.partition(": ")
        yield RISKY_SETTING.finding(place=place, fault=risk, path=facts.profile_path)
    lines = facts.config_lines
    if isinstance(lines, Unasked):
        if facts.model is not None:
            yield lines
        return
    yield from _shared(profile, lines)


def _shared(profile: Profile, lines: frozenset[str]) -> Findings:
    spi = "dtparam=spi=on" in lines
    uart = "enable_uart=1" in lines or any("console=serial0" in line for line in lines)
    for gpio, place in checks.used_pins(profile, ""):
        if spi and gpio in SPI_PINS:
            yield SHARED_PIN.finding(
                place=place,
                gpio=gpio,
                user="SPI",
                mend="sudo raspi-config nonint do_spi 1, then reboot",
            )
        if uart and gpio in UART_PINS:
            yield SHARED_PIN.finding(
                place=place,
                gpio=gpio,
                user="the serial console",
                mend="sudo raspi-config nonint do_serial_cons 1 and do_serial_hw 1, then reboot",
            )


def version(facts: Facts) -> Findings:
    """Check that the running version is the installed one."""
    running = facts.running
    if isinstance(running, Unasked):
        yield running
    elif running.version != facts.version:
        yield STALE_VERSION.finding(installed=facts.version, running=running.version)

"""Checks of the board, its system, the packages, the profile, the version."""

import sys

from fpvcar.config import Profile, checks
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Kind, Said, Severity, Unasked

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
NETWORK_PACKAGES = {
    "avahi-daemon": "the car's address NAME.local",
    "network-manager": "the car's Wi-Fi",
    "dnsmasq-base": "the car's own network",
}
SPI_PINS, UART_PINS = (7, 8), (14, 15)

STRANGE_BOARD = Kind(
    "board",
    Severity.WARNING,
    "The car does not start",
    "{model}: not a board that fpvcar was made for",
    "Known are Zero W, Zero 2 W, 3, 4 and 5: pins and camera may be others here.",
    "use one of these; or try it with the wheels in the air",
)
NO_DAEMON_FOR_IT = Kind(
    "board-daemon",
    Severity.FAULT,
    "The car does not move",
    'pins.backend = "pigpio" on a {model}',
    "pigpiod does not know the chip of this board: no pin can be switched.",
    'pins.backend = "linux" (or no such line) in {path}',
)
SLOW_BOARD = Kind(
    "board-slow",
    Severity.WARNING,
    "No picture, or a late one",
    "camera.fps = {fps:g} on a {model}",
    "Its one core carries 15 pictures a second; with more, all of them are late.",
    "camera.fps = 15 in {path}, then sudo systemctl restart fpvcar",
)
STRANGE_SYSTEM = Kind(
    "system",
    Severity.WARNING,
    "The car does not start",
    "{name}: not a Raspberry Pi OS that fpvcar was made for",
    "Its packages and its kernel may be too old, or others.",
    "install Raspberry Pi OS Trixie (docs/install.md)",
)
PACKAGE = Kind(
    "package",
    Severity.WARNING,
    "The car does not start",
    "the package {package} is missing",
    "It is needed for {use}.",
    "sudo apt install {package}",
)
MODULE = Kind(
    "module",
    Severity.FAULT,
    "The car does not start",
    "Python cannot import {module}",
    "A part of the car is written with it and cannot start.",
    "sudo apt install --reinstall fpvcar (on Bookworm: sudo tools/install.sh)",
)
REFUSED = Kind(
    "profile",
    Severity.FAULT,
    "The car does not start",
    "the profile is refused: {words}",
    "Without a profile nobody knows what is on which pin: the car does not start.",
    "correct it as it says, then: fpvcar profile check {path}",
)
CARE = Kind(
    "profile-care",
    Severity.WARNING,
    "The car does not move",
    "{place} in the profile asks for care",
    "It can be in a car, but: {words}.",
    "as it says; then: fpvcar profile check {path}",
)
SHARED_PIN = Kind(
    "pin-shared",
    Severity.WARNING,
    "The car does not move",
    "{place} = {gpio}: the system uses this pin, too, for {user}",
    "Two who drive one pin undo what the other does.",
    "{mend}; or wire and name another pin",
)
OTHER_VERSION = Kind(
    "version",
    Severity.WARNING,
    "It stops by itself",
    "version {installed} is installed, and {running} runs",
    "What runs is not what was tested with these files.",
    "sudo systemctl restart fpvcar-wheels fpvcar",
)


def board(facts: Facts) -> Said:
    """Check that the board is supported, and that the profile fits it."""
    model, profile = facts.model, facts.profile
    if model is None:
        yield Unasked(f"{NO_PI}; the bench needs none")
        return
    if not model.startswith(BOARDS):
        yield STRANGE_BOARD.found(model=model)
    if isinstance(profile, str):
        return
    if "Raspberry Pi 5" in model and facts.backend == "pigpio":
        yield NO_DAEMON_FOR_IT.found(model=model, path=facts.profile_path)
    slow = model.startswith(ONE_CORE) and profile.camera.fps > ONE_CORE_FPS
    if slow and profile.camera.source != "none":
        yield SLOW_BOARD.found(model=model, fps=profile.camera.fps, path=facts.profile_path)


def system(facts: Facts) -> Said:
    """Check for a supported release of Raspberry Pi OS."""
    if facts.model is None:
        yield Unasked(NO_PI)
    elif facts.os.codename not in SYSTEMS or sys.version_info < LEAST_PYTHON:
        yield STRANGE_SYSTEM.found(name=facts.os.name or "an unknown system")


def packages(facts: Facts) -> Said:
    """Check the packages that the profile needs."""
    for module in facts.modules_missing:
        yield MODULE.found(module=module)
    profile, installed = facts.profile, facts.packages
    if isinstance(installed, Unasked):
        yield installed
        return
    wanted = {"openssl": "https"}
    if not isinstance(profile, str):
        if profile.network.own:
            wanted |= NETWORK_PACKAGES
        if not profile.camera.command and profile.camera.source in CAMERA_PACKAGES:
            package, use = CAMERA_PACKAGES[profile.camera.source]
            wanted[package] = use
    for package, use in wanted.items():
        if not {package, ALIKE.get(package, package)} & installed:
            yield PACKAGE.found(package=package, use=use)


def profile(facts: Facts) -> Said:
    """Check that the profile is valid, and report its warnings."""
    found = facts.profile
    if isinstance(found, str):
        yield REFUSED.found(words=found, path=facts.profile_path)
        return
    for care in checks.warnings(found):
        place, _, words = care.partition(": ")
        yield CARE.found(place=place, words=words, path=facts.profile_path)
    lines = facts.config_lines
    if isinstance(lines, Unasked):
        if facts.model is not None:
            yield lines
        return
    yield from _shared(found, lines)


def _shared(profile: Profile, lines: frozenset[str]) -> Said:
    spi = "dtparam=spi=on" in lines
    uart = "enable_uart=1" in lines or any("console=serial0" in one for one in lines)
    for gpio, place in checks.used_pins(profile, ""):
        if spi and gpio in SPI_PINS:
            yield SHARED_PIN.found(
                place=place,
                gpio=gpio,
                user="SPI",
                mend="sudo raspi-config nonint do_spi 1, then reboot",
            )
        if uart and gpio in UART_PINS:
            yield SHARED_PIN.found(
                place=place,
                gpio=gpio,
                user="the serial console",
                mend="sudo raspi-config nonint do_serial_cons 1 and do_serial_hw 1, then reboot",
            )


def version(facts: Facts) -> Said:
    """Check that the running version is the installed one."""
    running = facts.running
    if isinstance(running, Unasked):
        yield running
    elif running.version != facts.version:
        yield OTHER_VERSION.found(installed=facts.version, running=running.version)

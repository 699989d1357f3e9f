"""Checks of the I2C buses, of faults reported by the running car, and of the camera."""

from collections.abc import Iterator

from fpvcar.config import Profile
from fpvcar.config.raspberry_pi_os import HATS, METERS
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Broken, Finding, Kind, Said, Severity, Unasked

WAKES_AT = 0x29
"""Address of a VL53L0X after power-on."""
KNOWN = {
    WAKES_AT: "a VL53L0X",
    **dict.fromkeys(METERS, "an INA219"),
    **dict.fromkeys(HATS, "a PCA9685"),
}
SLEEPS = "its XSHUT is held low while `fpvcar run` does not run"

NO_BUS = Kind(
    "i2c-bus",
    Severity.FAULT,
    "A sensor is silent",
    "I2C bus {bus}: {words}",
    "{users} cannot be reached.",
    "sudo fpvcar setup, then sudo reboot",
)
MISSING = Kind(
    "i2c-missing",
    Severity.FAULT,
    "A sensor is silent",
    "nothing answers at {address:#04x} of I2C bus {bus}, where {user} is to be",
    "It has no supply, a wire is loose, or it has another address.",
    "check its wires and its supply; i2cdetect -y {bus} shows who answers",
)
STRANGER = Kind(
    "i2c-stranger",
    Severity.NOTE,
    "A sensor is silent",
    "{chip} seems to be at {address:#04x} of I2C bus {bus}; the profile does not name it",
    "The car could use it.",
    "name it in {path}: docs/profile.md; or take no notice",
)
SENSOR = Kind(
    "sensor",
    Severity.FAULT,
    "A sensor is silent",
    "no range from the sensor {words}",
    "The guard and the page do without it: towards there the car drives slowly.",
    "wires and supply first; what the words mean: docs/troubleshooting.md",
)
BATTERY = Kind(
    "battery",
    Severity.WARNING,
    "A sensor is silent",
    "the battery is not measured: {words}",
    "The car reckons with battery.nominal_v, and nobody sees when the pack is empty.",
    "wires and supply of the INA219; what the words mean: docs/troubleshooting.md",
)
WHEELS = Kind(
    "wheels",
    Severity.FAULT,
    "The car does not move",
    "the part that turns the wheels does not answer: {words}",
    "`fpvcar wheels` switches the motors: without it nothing moves.",
    "as it says; else: systemctl status fpvcar-wheels",
)
RECORDER = Kind(
    "recorder",
    Severity.WARNING,
    "Nothing is recorded",
    "nothing is recorded: {words}",
    "Driving goes on, but nobody can see this drive again.",
    "make room, or check the card; docs/troubleshooting.md, Nothing is recorded",
)
OTHER = Kind(
    "running",
    Severity.WARNING,
    "It stops by itself",
    "the running car has a fault: {words}",
    "It says so of itself, at /healthz, too.",
    "what the words mean, and what to do: docs/troubleshooting.md",
)
DARK = Kind(
    "camera",
    Severity.FAULT,
    "No picture, or a late one",
    "no picture of the camera: {words}",
    "A car without a fresh picture does not drive, or slowly, as the profile says.",
    "as it says; else the camera's cable, both ends (contacts down), with power off",
)
SAID: tuple[tuple[str, Kind], ...] = (
    ("wheels: ", WHEELS),
    ("sensor ", SENSOR),
    ("battery: ", BATTERY),
    ("nothing is recorded: ", RECORDER),
)
ELSEWHERE = ("camera: ", "the card is ")
"""Faults of /healthz that other parts report in more detail."""


def devices(profile: Profile) -> Iterator[tuple[int, int, str, bool]]:
    """Yield bus, address, name in the profile, and whether the device may be held in reset."""
    if profile.motors.on_hat:
        yield profile.pca9685.bus, profile.pca9685.address, "pca9685", False
    if profile.battery.address is not None:
        yield profile.battery.bus, profile.battery.address, "battery", False
    for kind, name, sensor in profile.sensors.every():
        if sensor.i2c_place is not None:
            yield *sensor.i2c_place, f"sensors.{kind}.{name}", sensor.resettable


def to_ask(profile: Profile) -> set[tuple[int, int]]:
    """Return each (bus, address) to probe: those of the profile, and of chips that are common in
    cars."""
    used = {(bus, address) for bus, address, _, _ in devices(profile)}
    return used | {(bus, address) for bus, _ in used for address in KNOWN}


def i2c(facts: Facts) -> Said:
    """Check for missing and unexpected devices on the buses."""
    profile = facts.profile
    if isinstance(profile, str):
        yield Unasked("the profile is refused")
        return
    for bus, answer in facts.buses.items():
        if isinstance(answer, Broken):
            users = [place for on, _, place, _ in devices(profile) if on == bus]
            yield NO_BUS.found(bus=bus, words=answer.words, users=", ".join(users))
    if not facts.buses:
        yield Unasked("the profile names nothing on an I2C bus")
    elif isinstance(facts.answering, Unasked):
        yield facts.answering
    else:
        yield from _judged(facts, profile, facts.answering)


def _judged(facts: Facts, profile: Profile, answering: frozenset[tuple[int, int]]) -> Said:
    idle = isinstance(facts.running, Unasked)
    named = list(devices(profile))
    for bus, address, place, may_sleep in named:
        if (bus, address) in answering or isinstance(facts.buses.get(bus), Broken):
            continue
        if may_sleep and idle:
            yield Unasked(f"{place}: {SLEEPS}")
        else:
            yield MISSING.found(bus=bus, address=address, user=place)
    wakes = {(bus, WAKES_AT) for bus, _, _, may_sleep in named if may_sleep}
    known = wakes | {(bus, address) for bus, address, _, _ in named}
    for bus, address in sorted(answering - known):
        yield STRANGER.found(bus=bus, address=address, chip=KNOWN[address], path=facts.profile_path)


def said(facts: Facts) -> Said:
    """Report the faults of sensors and other parts from the running car."""
    if isinstance(facts.running, Unasked):
        yield facts.running
        return
    for words in facts.running.faults:
        if not words.startswith(ELSEWHERE):
            yield _told(words)


def _told(words: str) -> Finding:
    for start, kind in SAID:
        if words.startswith(start):
            return kind.found(words=words.removeprefix(start))
    return OTHER.found(words=words)


def camera(facts: Facts) -> Iterator[Finding | Unasked]:
    """Check that the camera makes a picture."""
    if isinstance(facts.camera, Unasked):
        yield facts.camera
    elif isinstance(facts.camera, Broken):
        yield DARK.found(words=facts.camera.words.removeprefix("lost: "))

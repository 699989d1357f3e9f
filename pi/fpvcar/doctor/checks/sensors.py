"""Checks of the I2C buses, of faults reported by the running car, and of the camera."""

from collections.abc import Iterator

from fpvcar.config import Profile
from fpvcar.config.raspberry_pi_os import HATS, METERS
from fpvcar.config.servos import channels
from fpvcar.doctor.facts import Facts, Running
from fpvcar.doctor.report import Broken, Finding, Findings, Kind, Severity, Unasked
from fpvcar.video.faults import SOFTWARE

WAKES_AT = 0x29
"""Address of a VL53L0X after power-on."""
COMMON_CHIPS = {
    WAKES_AT: "a VL53L0X",
    **dict.fromkeys(METERS, "an INA219 or a PCA9685"),
    **dict.fromkeys(HATS, "a PCA9685"),
}
IN_RESET = "its XSHUT is held low unless `fpvcar run` is running"

NO_BUS = Kind(
    "i2c-bus",
    Severity.FAULT,
    "A sensor is silent",
    "I2C bus {bus}: {fault}",
    "No connection to {users}.",
    "sudo fpvcar setup, then sudo reboot",
)
MISSING_DEVICE = Kind(
    "i2c-missing",
    Severity.FAULT,
    "A sensor is silent",
    "no device answers at address {address:#04x} of I2C bus {bus}, expected {user}",
    "Its supply or a wire is missing, or it has another address.",
    "check its wires and supply; i2cdetect -y {bus} lists the addresses that answer",
)
UNKNOWN_DEVICE = Kind(
    "i2c-stranger",
    Severity.NOTE,
    "A sensor is silent",
    "possibly {chip} at address {address:#04x} of I2C bus {bus}; it is not in the profile",
    "The car does not use this device.",
    "add it to {path} (docs/reference/profile.md), or ignore this note",
)
SENSOR = Kind(
    "sensor",
    Severity.FAULT,
    "A sensor is silent",
    "no range from sensor {fault}",
    "The guard has no range in this direction, so the car drives slowly towards it.",
    "check wires and supply; for the message see docs/troubleshooting.md",
)
BATTERY = Kind(
    "battery",
    Severity.WARNING,
    "A sensor is silent",
    "the battery is not measured: {fault}",
    "The car assumes battery.nominal_v, and cannot warn of an empty battery.",
    "check wires and supply of the INA219; for the message see docs/troubleshooting.md",
)
WHEELS = Kind(
    "wheels",
    Severity.FAULT,
    "The car does not move",
    "`fpvcar wheels` does not answer: {fault}",
    "It switches the motors; the car cannot move without it.",
    "follow the message; else: systemctl status fpvcar-wheels",
)
SERVOS = Kind(
    "servos",
    Severity.WARNING,
    "The camera does not turn",
    "a servo gets no pulses: {fault}",
    "The car still drives; a servo without pulses stays where it is, or gives way.",
    "check wires and supply; for the message see docs/troubleshooting.md",
)
RECORDER = Kind(
    "recorder",
    Severity.WARNING,
    "Nothing is recorded",
    "recording is not possible: {fault}",
    "The car still drives, but the drive is not recorded.",
    "free space or check the SD card; docs/troubleshooting.md, Nothing is recorded",
)
OTHER = Kind(
    "running",
    Severity.WARNING,
    "It stops by itself",
    "the running car reports a fault: {fault}",
    "The same message is in /healthz.",
    "for the message and its remedy see docs/troubleshooting.md",
)
NO_PICTURE = Kind(
    "camera",
    Severity.FAULT,
    "No picture, or a late one",
    "no picture from the camera: {fault}",
    "Without a fresh picture the car stops or slows down, depending on gate.blind.",
    "follow the message; else check both ends of the camera cable, with power off. At the Pi its "
    "contacts face the HDMI socket on a Pi 3 or 4, the Ethernet socket on a Pi 5, and the board on "
    "a Zero",
)
ENCODER_HANGS = Kind(
    "camera-encoder",
    Severity.FAULT,
    "No picture, or a late one",
    "the board's H.264 encoder hangs: {fault}",
    "Only a power cut ends that. The car encodes smaller pictures by its processor, if it can.",
    "switch the car off and on again; a restart of its services does not help",
)
CODING = Kind(
    "camera-coding",
    Severity.WARNING,
    "No picture, or a late one",
    "not every browser shows the camera: {fault}",
    "The camera works, but its H.264 does not suit every viewer.",
    "change the options of its program: camera.command of the profile, or its own settings",
)
CAMERA_RATE = Kind(
    "camera-rate",
    Severity.NOTE,
    "No picture, or a late one",
    "the camera is slower than its profile: {reason}",
    "A sensor reads its whole area at a lower rate than a part of it.",
    "choose view and rate in the picture settings, or camera.view and camera.fps of the profile",
)
CAMERA_LOWERED = Kind(
    "camera-lowered",
    Severity.NOTE,
    "No picture, or a late one",
    "the camera has a lower rate than its settings: {reason}",
    "Half the frames need half of the processor's time and of the Wi-Fi's.",
    "let it cool, or move closer; or set 30 in the picture settings",
)
CAMERA_SENSOR = Kind(
    "camera-sensor",
    Severity.NOTE,
    "No picture, or a late one",
    "the car has no modes for its camera: {reason}",
    "The camera works. The car has a table of the sensors in Raspberry Pi's own cameras.",
    "compare the picture with the view of `rpicam-still`; a camera.command can name a mode",
)
FAULT_KINDS: tuple[tuple[str, Kind], ...] = (
    ("wheels: ", WHEELS),
    ("sensor ", SENSOR),
    ("battery: ", BATTERY),
    ("servos: ", SERVOS),
    ("nothing is recorded: ", RECORDER),
)
ELSEWHERE = ("camera: ", "the card is ")
"""Faults of /healthz that other parts report in more detail."""


def devices(profile: Profile) -> Iterator[tuple[int, int, str, bool]]:
    """Yield bus, address, name in the profile, and whether the device may be held in reset."""
    if profile.motors.on_hat or any(channels(profile)):
        yield profile.pca9685.bus, profile.pca9685.address, "pca9685", False
    if profile.battery.address is not None:
        yield profile.battery.bus, profile.battery.address, "battery", False
    for kind, name, sensor in profile.sensors.every():
        if sensor.i2c_place is not None:
            yield *sensor.i2c_place, f"sensors.{kind}.{name}", sensor.resettable


def addresses_to_probe(profile: Profile) -> set[tuple[int, int]]:
    """Return each (bus, address) to probe: those of the profile, and of chips that are common in
    cars."""
    used = {(bus, address) for bus, address, _, _ in devices(profile)}
    return used | {(bus, address) for bus, _ in used for address in COMMON_CHIPS}


def i2c(facts: Facts) -> Findings:
    """Check for missing and unexpected devices on the buses."""
    profile = facts.profile
    if isinstance(profile, str):
        yield Unasked("the profile is invalid")
        return
    for bus, answer in facts.buses.items():
        if isinstance(answer, Broken):
            users = [place for used, _, place, _ in devices(profile) if used == bus]
            yield NO_BUS.finding(bus=bus, fault=answer.fault, users=", ".join(users))
    if not facts.buses:
        yield Unasked("the profile has no I2C device")
    elif isinstance(facts.answering, Unasked):
        yield facts.answering
    else:
        yield from _compared(facts, profile, facts.answering)


def _compared(facts: Facts, profile: Profile, answering: frozenset[tuple[int, int]]) -> Findings:
    idle = isinstance(facts.running, Unasked)
    named = list(devices(profile))
    for bus, address, place, resettable in named:
        if (bus, address) in answering or isinstance(facts.buses.get(bus), Broken):
            continue
        if resettable and idle:
            yield Unasked(f"{place}: {IN_RESET}")
        else:
            yield MISSING_DEVICE.finding(bus=bus, address=address, user=place)
    wakes = {(bus, WAKES_AT) for bus, _, _, resettable in named if resettable}
    known = wakes | {(bus, address) for bus, address, _, _ in named}
    for bus, address in sorted(answering - known):
        yield UNKNOWN_DEVICE.finding(
            bus=bus, address=address, chip=COMMON_CHIPS[address], path=facts.profile_path
        )


def reported(facts: Facts) -> Findings:
    """Report the faults of sensors and other parts from the running car."""
    if isinstance(facts.running, Unasked):
        yield facts.running
        return
    for fault in facts.running.faults:
        if not fault.startswith(ELSEWHERE):
            yield _finding(fault)


def _finding(fault: str) -> Finding:
    for start, kind in FAULT_KINDS:
        if fault.startswith(start):
            return kind.finding(fault=fault.removeprefix(start))
    return OTHER.finding(fault=fault)


def camera(facts: Facts) -> Findings:
    """Check that the camera makes a picture, of the whole view at the profile's rate."""
    if facts.mode is not None and not facts.mode.known:
        yield CAMERA_SENSOR.finding(reason=facts.mode.text)
    elif facts.mode is not None and facts.mode.rate:
        yield CAMERA_RATE.finding(reason=facts.mode.rate)
    if isinstance(facts.running, Running) and facts.running.lowered_rate:
        yield CAMERA_LOWERED.finding(reason=facts.running.lowered_rate)
    if isinstance(facts.camera, Unasked):
        yield facts.camera
    elif isinstance(facts.camera, Broken):
        fault = facts.camera.fault.removeprefix("lost: ")
        kind = ENCODER_HANGS if facts.encoder else NO_PICTURE
        yield kind.finding(fault=facts.encoder or fault)
    elif isinstance(facts.running, Running):
        for fault in facts.running.faults:
            if fault == f"camera: {SOFTWARE}":
                yield ENCODER_HANGS.finding(fault=facts.encoder or "it returns no picture")
            elif fault.startswith("camera: "):
                yield CODING.finding(fault=fault.removeprefix("camera: "))

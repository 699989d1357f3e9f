"""Collection of facts for the checks, from a root folder and the running machine.

/proc /sys /etc /boot /dev /var below a root ----+ systemctl, nmcli, pinctrl, busctl, openssl
------+--> Facts pins, I2C, dead man, camera, card, the car: live +
"""

import importlib.util
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from fpvcar import __version__
from fpvcar.config import ConfigError, Profile, profiles
from fpvcar.config import raspberry_pi_os as image
from fpvcar.config.checks import used_pins
from fpvcar.devices import backends, sensor_modes
from fpvcar.devices.i2c import ENABLE
from fpvcar.doctor import programs
from fpvcar.doctor.checks import sensors
from fpvcar.doctor.facts import DeadManTest, Facts, MotorTest, Os, Pin, Running
from fpvcar.doctor.programs import Machine
from fpvcar.doctor.report import Answer, Broken, Unasked, Works
from fpvcar.recordings import names
from fpvcar.runtime import clock

LEAST_TIMEOUT = "proc/sys/net/ipv4/tcp_rto_min_us"
CERTIFICATE = "https.crt"
PACKAGE_FIELD = re.compile(r"(?m)^(Package|Status|Version): (.+)$")
NO_PINS = Unasked("the pins or the PCA9685 cannot be driven")
INVALID_PROFILE = Unasked("the profile is invalid")
NO_PI = Unasked("this is no Raspberry Pi")
NO_MOVE = Unasked("nothing moves without --move")


@dataclass(frozen=True)
class Paths:
    """Location of a car's files: its root, its profile, its state folder."""

    root: Path
    profile: Path
    overrides: tuple[str, ...]
    state: Path
    move: bool = False


def facts(paths: Paths, machine: Machine) -> Facts:
    """Collect all facts; takes some seconds."""
    root = paths.root
    profile = _profile(paths)
    known = profile if isinstance(profile, Profile) else None
    model = _text(root / image.MODEL)
    pins = machine.pins(known) if known else INVALID_PROFILE
    computer = backends.open_computer(_nearest(paths.state), root).read()
    running = machine.running()
    release = _release(root) if model is not None else NO_PI
    pwm = _pwm(root, known, model is not None) if known else INVALID_PROFILE
    answering = _answering(machine, profile)
    gpios = sorted({gpio for gpio, _ in used_pins(profile, "")}) if known else []
    recordings = _recordings(paths, profile)
    camera = _camera(machine, profile, running)
    return Facts(
        version=__version__,
        model=model.rstrip("\0\n") if model is not None else None,
        os=_os(root),
        profile=profile,
        profile_path=str(paths.profile),
        packages=_packages(root) if model is not None else NO_PI,
        local_libcamera=_local_libcamera(root),
        modules_missing=_modules_missing(profile, machine),
        config_lines=_config_lines(root) if model is not None else NO_PI,
        backend=machine.backend(known) if known else "pigpio",
        pins=pins,
        release=release,
        pwm=pwm,
        holders=machine.holders(gpios) if known else INVALID_PROFILE,
        levels=_levels(machine, profile),
        trip=_trip(machine, profile, pins, pwm, release, answering),
        turned=_turned(paths, machine, profile),
        buses=_buses(root, profile, machine),
        answering=answering,
        camera=camera,
        mode=_mode(profile, running, camera),
        encoder=programs.encoder_line(machine),
        computer=computer._replace(utc_s=machine.utc_s()),
        state=str(paths.state),
        recordings=str(recordings),
        writable=machine.writable(paths.state),
        speed=machine.speed(_nearest(recordings)),
        old_recordings=_old_recordings(recordings),
        certificate_days=programs.certificate_days(machine, paths.state / CERTIFICATE, time.time()),
        wifi=computer.interface,
        power_save=_power_save(machine, computer.interface),
        air=programs.air(machine),
        name=programs.host_name(machine),
        least_timeout_us=_number(root / LEAST_TIMEOUT),
        units=programs.units(machine) if model is not None else NO_PI,
        watchdog=programs.watchdog(machine) if model is not None else NO_PI,
        running=running,
    )


def _power_save(machine: Machine, interface: str | None) -> bool | Unasked:
    return machine.power_save(interface) if interface else Unasked("this computer has no Wi-Fi")


def _profile(paths: Paths) -> Profile | str:
    try:
        return profiles.load(paths.profile, paths.overrides)
    except ConfigError as fault:
        return str(fault)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = (_text(path) or "").strip()
    return int(text) if text.isdecimal() else None


def _os(root: Path) -> Os:
    text = _text(root / "etc/os-release") or ""
    pairs = dict(re.findall(r'(?m)^(\w+)="?([^"\n]*)', text))
    kernel = (_text(root / "proc/sys/kernel/osrelease") or "").strip()
    return Os(pairs.get("PRETTY_NAME", ""), pairs.get("VERSION_CODENAME", ""), kernel)


def _packages(root: Path) -> dict[str, str] | Unasked:
    text = _text(root / "var/lib/dpkg/status")
    if text is None:
        return Unasked("dpkg is missing")
    paragraphs = (dict(PACKAGE_FIELD.findall(paragraph)) for paragraph in text.split("\n\n"))
    return {
        fields["Package"]: fields["Version"]
        for fields in paragraphs
        if fields.get("Status", "").endswith(" ok installed")
    }


def _local_libcamera(root: Path) -> str:
    """Return the first libcamera below /usr/local, as a build of its source installs it."""
    found = sorted((root / "usr/local/lib").glob("**/libcamera.so*"))
    return f"/{found[0].relative_to(root)}" if found else ""


def _modules_missing(profile: Profile | str, machine: Machine) -> tuple[str, ...]:
    modules = ["aiohttp", "segno"]
    if isinstance(profile, Profile):
        daemon = machine.backend(profile) == "pigpio"
        buses = any(True for _ in sensors.devices(profile))
        modules += ["pigpio"] if daemon else ["smbus2"] if buses else []
    return tuple(module for module in modules if importlib.util.find_spec(module) is None)


def _config_lines(root: Path) -> frozenset[str] | Unasked:
    for name in image.CONFIG_TXT:
        text = _text(root / name)
        if text is None:
            continue
        kernel = _text((root / name).with_name("cmdline.txt")) or ""
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        return frozenset({*lines, *kernel.split()} - {""})
    return Unasked("config.txt is missing or not readable")


def _levels(machine: Machine, profile: Profile | str) -> dict[int, Pin] | Unasked:
    if isinstance(profile, str):
        return INVALID_PROFILE
    return programs.levels(machine, profile.motor_pins())


def _trip(
    machine: Machine,
    profile: Profile | str,
    pins: Answer,
    pwm: Answer,
    release: Answer,
    answering: frozenset[tuple[int, int]] | Unasked,
) -> DeadManTest | Unasked:
    """Run the self-test of the dead man, unless a part it needs is faulty and reported
    elsewhere."""
    if isinstance(profile, str):
        return INVALID_PROFILE
    if profile.motors.on_hat:
        if not isinstance(answering, Unasked):
            if not {chip[:2] for chip in profile.stop_chips()} <= answering:
                return NO_PINS
        return machine.trip()
    if not isinstance(pins, Works) or isinstance(pwm, Broken):
        return NO_PINS
    strict = machine.backend(profile) == "linux" and not profile.pins.unsafe
    if strict and isinstance(release, Broken):
        return Unasked("the kernel does not release pins")
    return machine.trip()


def _turned(
    paths: Paths, machine: Machine, profile: Profile | str
) -> tuple[MotorTest, ...] | Unasked:
    if isinstance(profile, str):
        return INVALID_PROFILE
    return machine.turn(profile) if paths.move else NO_MOVE


def _release(root: Path) -> Works | Broken:
    """Return whether the kernel releases a pin whose owner dies."""
    reason = backends.loose_reason(root)
    return Broken(reason) if reason else Works()


def _pwm(root: Path, profile: Profile, on_a_pi: bool) -> Answer:
    if not profile.pins.pwm:
        return Works()
    reason = backends.pwm_reason(profile, root)
    return (Broken(reason) if reason else Works()) if on_a_pi else NO_PI


def _buses(root: Path, profile: Profile | str, machine: Machine) -> dict[int, Works | Broken]:
    if isinstance(profile, str):
        return {}
    used = sorted({bus for bus, _, _, _ in sensors.devices(profile)})
    if isinstance(machine.answering(profile, ()), Unasked):
        return dict.fromkeys(used, Works())
    if not (root / image.MODEL).exists():  # the bench's, behind its pin daemon
        return dict.fromkeys(used, Works())
    missing = Broken(f"no such bus: {ENABLE}")
    return {bus: Works() if (root / f"dev/i2c-{bus}").exists() else missing for bus in used}


def _answering(machine: Machine, profile: Profile | str) -> frozenset[tuple[int, int]] | Unasked:
    if isinstance(profile, str):
        return INVALID_PROFILE
    places = sensors.addresses_to_probe(profile)
    return machine.answering(profile, sorted(places)) if places else frozenset()


def _camera(machine: Machine, profile: Profile | str, running: Running | Unasked) -> Answer:
    """Return the state of the camera from the running car, or by a trial."""
    if isinstance(running, Running):
        if running.camera == "none":
            return Unasked("the profile has no camera")
        return Works() if running.camera == "ok" else Broken(running.camera)
    return INVALID_PROFILE if isinstance(profile, str) else machine.camera(profile)


def _mode(
    profile: Profile | str, running: Running | Unasked, camera: Answer
) -> sensor_modes.ModeReport | None:
    """Return the mode of the sensor from the running car, or by the sensor of a trial."""
    if isinstance(running, Running):
        return running.mode
    if isinstance(camera, Works) and camera.sensor and not isinstance(profile, str):
        return sensor_modes.report(camera.sensor, profile.camera)
    return None


def _recordings(paths: Paths, profile: Profile | str) -> Path:
    directory = "" if isinstance(profile, str) else profile.recording.directory
    return Path(directory).expanduser() if directory else paths.state / "recordings"


def _nearest(path: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def _old_recordings(directory: Path) -> int | Unasked:
    before = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.EARLIEST_S))
    try:
        sizes = [(name, 0) for name in os.listdir(directory)]
    except FileNotFoundError:
        return 0
    except OSError as fault:
        return Unasked(f"{directory}: {fault.strerror}: sudo fpvcar doctor")
    return len({file.name.recording for file in names.files_of(sizes) if file.name.began < before})

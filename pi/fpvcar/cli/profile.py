"""Verb `fpvcar profile`: lists the shipped profiles, shows pin assignments, validates a profile,
and proposes one for this board or from Donkeycar's values."""

import re
import sys
import tomllib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from fpvcar.calibration.export import with_key
from fpvcar.cli import donkey
from fpvcar.config import ConfigError, checks, profiles
from fpvcar.config.pwm import over_peak, slow_pulses
from fpvcar.config.raspberry_pi_os import HATS, METERS, MODEL
from fpvcar.devices import backends, sensor_modes
from fpvcar.devices.i2c import ENABLE
from fpvcar.runtime import paths
from fpvcar.wiring.header import USED_BY_THE_IMAGE

BUS = "dev/i2c-1"
Probe = Callable[[int, Sequence[int]], Collection[int]]
"""Type of a function that maps (bus, addresses) to the addresses that answer."""


class Proposal(NamedTuple):
    """Text of a proposed profile, and the reasons for it."""

    toml: str
    reasons: tuple[str, ...]


def run(
    action: str, names: Sequence[str], root: Path, probe: Probe, pca9685s: Probe = lambda *_: ()
) -> int:
    """Run one of the actions; return the exit status. `pca9685s` returns the addresses of those
    chips. Raises ConfigError, OSError."""
    if action == "list":
        for name, path in shipped().items():
            print(f"{name:16}{heading(path)}")
        return 0
    if action == "propose":
        model = model_of(root)
        if not (root / BUS).exists():
            print(f"no I2C bus to probe for a HAT: {ENABLE}; then repeat", file=sys.stderr)
        answering = probe(1, (*HATS, *METERS))
        shared = [address for address in METERS if address in answering]
        return _print(propose(model, answering, pca9685s(1, shared)))
    if action == "from-donkey":
        if len(names) != 1:
            raise ConfigError("from-donkey: expected one file, such as ~/mycar/myconfig.py")
        source = Path(names[0]).read_text(encoding="utf-8", errors="replace")
        texts = {name: path.read_text(encoding="utf-8") for name, path in shipped().items()}
        return _print(Proposal(*donkey.convert(source, texts)))
    if not names:
        raise ConfigError(f"{action}: expected {', '.join(shipped())}, or a file")
    bad = [name for name in names if not _show_or_check(action, name, root)]
    return 1 if bad else 0


def _print(proposal: Proposal) -> int:
    for reason in proposal.reasons:
        print(reason, file=sys.stderr)
    print(proposal.toml, end="")
    return 0


def _show_or_check(action: str, name: str, root: Path) -> bool:
    path = shipped().get(name, Path(name))
    if action == "check":
        return check(path, root)
    used = checks.used_pins(profiles.load(path), "")
    print(path.read_text(encoding="utf-8"), end="")
    for gpio, place in sorted(used):
        print(f"# GPIO {gpio:2}  {place}")
    return True


def shipped() -> dict[str, Path]:
    """Return the profiles that ship with the program, by name."""
    return {path.stem: path for path in sorted(paths.HARDWARE.glob("*.toml"))}


def heading(path: Path) -> str:
    """Return the first sentence of a profile's first comment."""
    words = path.read_text(encoding="utf-8").partition("\n\n")[0].replace("\n#", "")
    return words.lstrip("# ").partition(". ")[0].rstrip(".")


def check(path: Path, root: Path) -> bool:
    """Validate a profile for the board with this root; print its faults and warnings."""
    try:
        profile = profiles.load(path)
    except ConfigError as fault:
        print(fault, file=sys.stderr)
        return False
    if reason := backends.daemon_reason(profile, root):
        print(f"{path}: {reason}", file=sys.stderr)
        return False
    # "auto" is pigpiod on some boards: warnings for the other boards are printed, too.
    backend: backends.BackEnd = "pigpio" if profile.pins.backend == "pigpio" else "linux"
    hz = backends.most_hz(backend)
    overloads = over_peak(profile, hz)
    for warning in (*checks.warnings(profile), *slow_pulses(profile, hz), *overloads):
        print(f"{path}: warning: {warning}")
    for gpio, place in checks.used_pins(profile, ""):
        if gpio in USED_BY_THE_IMAGE:
            user = USED_BY_THE_IMAGE[gpio]
            print(f"{path}: warning: {place} = {gpio}: also used by {user}")
    print(f"{path}: valid")
    if profile.camera.source in ("picamera2", "rpicam") and not profile.camera.command:
        print("\n".join(sensor_modes.table(profile.camera)))
    return True


def model_of(root: Path) -> str:
    """Return the firmware's name of this board. Raises ConfigError on any other computer."""
    try:
        text = (root / MODEL).read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise ConfigError(
            f"{root / MODEL}: missing; this is no Raspberry Pi; without one: fpvcar bench"
        ) from None
    return text.rstrip("\0\n")


def propose(model: str, answering: Collection[int], boards: Collection[int] = ()) -> Proposal:
    """Return the profile for a board of this name with these addresses on its I2C bus 1. `boards`
    are addresses of an INA219 at which a PCA9685 answers: a servo board."""
    reasons = [f"this is a {model}"]
    hat = next((address for address in HATS if address in answering), None)
    name = "mx1508" if hat is None else "motor-hat"
    if hat is None and boards:
        hat, name = min(boards), "rc-esc-hat"
    toml = shipped()[name].read_text(encoding="utf-8")
    if hat is not None:
        reasons.append(f"a PCA9685 answers at {hat:#x}: {name}")
        toml = with_key(toml, "pca9685.address", f"{hat:#x}")
    else:
        others = ", ".join(other for other in shipped() if other not in (name, "bench", "rig"))
        reasons.append(f"no motor HAT answers: {name}; else one of {others}")
    for meter in (address for address in METERS if address in answering and address not in boards):
        reasons.append(f"an INA219 answers at {meter:#x}: it measures the battery")
        toml = with_key(toml, "battery.address", f"{meter:#x}")
        break
    if re.match(r"Raspberry Pi Zero( W|$)", model):
        reasons.append("its single core handles 15 frames per second")
        toml = with_key(toml, "camera.fps", "15")
    profiles.parse(tomllib.loads(toml))
    return Proposal(toml, tuple(reasons))

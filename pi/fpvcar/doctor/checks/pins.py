"""Checks of the pins: the back end, other owners, and the release of the motors."""

from fpvcar.config import Profile, checks
from fpvcar.config.checks import used_pins
from fpvcar.devices import backends
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Broken, Kind, Said, Severity, Unasked

OURS = "fpvcar"
"""Prefix of the consumer names that `wheels`, `run` and the guardian give to the kernel."""
TRIP_S = 0.4
"""Upper limit for the dead man, whose time-out is 0.2 s: the rest allows for a busy machine."""
BESIDE = (
    "the car's own, as `fpvcar wheels` has it; one beside it let go after "
    "{after_s:.2f} s. The whole proof: sudo systemctl stop fpvcar-wheels; sudo fpvcar "
    "doctor; sudo systemctl start fpvcar-wheels"
)
INPUT, UP, FLOATING = "ip", "pu", "pn"

SILENT = Kind(
    "pins",
    Severity.FAULT,
    "The car does not move",
    "nobody drives the pins: {words}",
    "Without them neither motors nor buttons nor lights work.",
    "as it says; else: systemctl status pigpiod fpvcar-wheels",
)
LOOSE = Kind(
    "strict",
    Severity.FAULT,
    "The car does not move",
    "the kernel would leave a motor on whose process has died",
    "Raspberry Pi's kernels keep an output as it was, until the power is cut.",
    "sudo fpvcar setup (it writes dtparam=strict_gpiod), then sudo reboot",
)
LOOSE_SOON = Kind(
    "strict-reboot",
    Severity.FAULT,
    "The car does not move",
    "dtparam=strict_gpiod is in config.txt, and is not in force yet",
    "Until then the kernel would leave a motor on whose process has died.",
    "sudo reboot; if it stays so: sudo apt full-upgrade, the kernel is too old",
)
UNSAFE = Kind(
    "unsafe",
    Severity.WARNING,
    "The car does not move",
    "pins.unsafe = true: the car drives although the kernel does not let go of pins",
    "When `wheels` and its guardian die, a motor runs on until the power is cut.",
    "sudo fpvcar setup, sudo reboot, and take that line out of {path}",
)
HELD = Kind(
    "pin-held",
    Severity.FAULT,
    "The car does not move",
    "GPIO {gpio} ({place}) is held by {holder!r}",
    "The car cannot switch a pin that another program or driver has.",
    "end that program, or take what claims the pin out of config.txt; or another pin",
)
PULLED_UP = Kind(
    "pull-up",
    Severity.FAULT,
    "The car does not move",
    "GPIO {gpio} ({place}) is an input that is pulled up",
    "To the motor driver that is an order: the motor may turn while nobody drives.",
    "10 kΩ from this pin to ground, or a pin from GPIO 9 on; gpio={gpio}=ip,pd in "
    "config.txt pulls it down from the next boot on",
)
FLOATS = Kind(
    "pull-none",
    Severity.WARNING,
    "The car does not move",
    "GPIO {gpio} ({place}) is an input without a pull",
    "It floats: the motor may twitch while nobody drives.",
    "gpio={gpio}=ip,pd in config.txt, then reboot; or 10 kΩ from this pin to ground",
)
OVER_PEAK = Kind(
    "pwm-peak",
    Severity.WARNING,
    "The car does not move",
    "{place}: PWM pulses at {hz} Hz draw {stall_a:.1f} A if the motor stalls, and its "
    "bridge bears {peak_a:g} A for a moment",
    "A bridge that draws more overheats; when it fails, its motor may stay on.",
    "{cure}, in {path}",
)
NO_DEAD_MAN = Kind(
    "dead-man",
    Severity.FAULT,
    "The car does not move",
    "the dead man could not be tried: {words}",
    "It stops the motors when the program that drives them hangs.",
    "as it says; then again: fpvcar doctor",
)
NO_TRIP = Kind(
    "dead-man-sleeps",
    Severity.FAULT,
    "The car does not move",
    "the dead man did not let go of the motors when nobody fed it",
    "A motor would run on when the program that drives it hangs: do not drive.",
    "sudo systemctl restart pigpiod fpvcar-wheels; on pigpiod older than 79: update it",
)
LATE_TRIP = Kind(
    "dead-man-late",
    Severity.WARNING,
    "The car does not move",
    "the dead man let go after {after_s:.2f} s",
    "More than {most_s} s is late: the computer is too busy, or too hot.",
    "close other programs, and try again: fpvcar doctor",
)
STILL = Kind(
    "motor",
    Severity.FAULT,
    "The car does not move",
    "the motor {motor} could not be turned: {words}",
    "Its driver was asked for it as for a drive.",
    "as it says; else supply and wires of the motor driver",
)


def back_end(facts: Facts) -> Said:
    """Check that the pin back end answers, and releases its pins."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is refused")
        return
    if isinstance(facts.pins, Unasked):
        yield facts.pins
    elif isinstance(facts.pins, Broken):
        yield SILENT.found(words=facts.pins.words)
    if facts.backend == "pigpio" or facts.profile.motors.on_hat:
        return
    if isinstance(facts.release, Unasked):
        yield facts.release
    elif isinstance(facts.release, Broken) and facts.profile.pins.unsafe:
        yield UNSAFE.found(path=facts.profile_path)
    elif isinstance(facts.release, Broken):
        lines = facts.config_lines
        if not isinstance(lines, Unasked) and "dtparam=strict_gpiod" in lines:
            yield LOOSE_SOON.found()
        else:
            yield LOOSE.found()


def holders(facts: Facts) -> Said:
    """Check that no other program owns a pin of the car."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is refused")
        return
    if isinstance(facts.holders, Unasked):
        yield facts.holders
        return
    for gpio, place in used_pins(facts.profile, ""):
        holder = facts.holders.get(gpio, "")
        if holder and not holder.startswith(OURS):
            yield HELD.found(gpio=gpio, place=place, holder=holder)


def pulls(facts: Facts) -> Said:
    """Check for motors that would turn while their pin is not driven."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is refused")
        return
    if isinstance(facts.levels, Unasked):
        yield facts.levels
        return
    for gpio, place in _motor_places(facts.profile):
        pin = facts.levels.get(gpio)
        if pin is None or pin.function != INPUT:
            continue
        if pin.pull == UP:
            yield PULLED_UP.found(gpio=gpio, place=place)
        elif pin.pull == FLOATING:
            yield FLOATS.found(gpio=gpio, place=place)


def pulses(facts: Facts) -> Said:
    """Check that each bridge bears the current of its PWM pulses."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is refused")
        return
    hz = backends.most_hz(facts.backend)
    for over in checks.over_peak(facts.profile, hz):
        yield OVER_PEAK.found(
            place=over.place,
            hz=over.hz,
            stall_a=over.stall_a,
            peak_a=over.peak_a,
            cure=over.cure,
            path=facts.profile_path,
        )


def _motor_places(profile: Profile) -> list[tuple[int, str]]:
    return list(used_pins(profile.motors, "motors"))


def dead_man(facts: Facts) -> Said:
    """Check for proof that the motors stop when the dead man is not fed."""
    trip = facts.trip
    if isinstance(trip, Unasked):
        yield trip
    elif trip.words:
        yield NO_DEAD_MAN.found(words=trip.words)
    elif trip.after_s is None:
        yield NO_TRIP.found()
    elif trip.after_s > TRIP_S:
        yield LATE_TRIP.found(after_s=trip.after_s, most_s=TRIP_S)
    elif not trip.whole:
        yield Unasked(BESIDE.format(after_s=trip.after_s))


def motors(facts: Facts) -> Said:
    """Check that the tested motors were driven. Only a person sees whether a wheel turned."""
    if isinstance(facts.turned, Unasked):
        yield facts.turned
        return
    for turned in facts.turned:
        if isinstance(turned.result, Broken):
            yield STILL.found(motor=turned.motor, words=turned.result.words)

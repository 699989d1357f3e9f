"""Checks of the pins: the back end, other owners, and the release of the motors."""

from fpvcar.config import Profile
from fpvcar.config import raspberry_pi_os as image
from fpvcar.config.checks import used_pins
from fpvcar.config.pwm import over_peak
from fpvcar.devices import backends
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Broken, Findings, Kind, Severity, Unasked

OWN_PREFIX = "fpvcar"
"""Prefix of the consumer names that `wheels`, `run` and the guardian give to the kernel."""
TRIP_S = 0.4
"""Upper limit for the dead man, whose time-out is 0.2 s: the rest allows for a busy machine."""
PARTIAL_TEST = (
    "not tested with the pins of the car, which `fpvcar wheels` uses; a second one "
    "released after {after_s:.2f} s. Full test: sudo systemctl stop fpvcar-wheels; sudo "
    "fpvcar doctor; sudo systemctl start fpvcar-wheels"
)
INPUT, UP, FLOATING = "ip", "pu", "pn"

NO_BACK_END = Kind(
    "pins",
    Severity.FAULT,
    "The car does not move",
    "the pins cannot be driven: {fault}",
    "Motors, buttons and lights do not work.",
    "follow the message; else: systemctl status pigpiod fpvcar-wheels",
)
PINS_NOT_RELEASED = Kind(
    "strict",
    Severity.FAULT,
    "The car does not move",
    "the kernel leaves a motor on after its process dies",
    "Kernels of Raspberry Pi OS keep the state of an output until the power is cut.",
    "sudo fpvcar setup (writes dtparam=strict_gpiod), then sudo reboot",
)
REBOOT_NEEDED = Kind(
    "strict-reboot",
    Severity.FAULT,
    "The car does not move",
    "dtparam=strict_gpiod is in config.txt, but not in effect yet",
    "Until a reboot the kernel leaves a motor on after its process dies.",
    "sudo reboot; if this remains, the kernel is too old: sudo apt full-upgrade",
)
UNSAFE_PINS = Kind(
    "unsafe",
    Severity.WARNING,
    "The car does not move",
    "pins.unsafe = true: the car drives although the kernel does not release pins",
    "If `wheels` and its guardian die, a motor stays on until the power is cut.",
    "sudo fpvcar setup, sudo reboot, and remove that line from {path}",
)
PIN_TAKEN = Kind(
    "pin-held",
    Severity.FAULT,
    "The car does not move",
    "GPIO {gpio} ({place}) is used by '{holder}'",
    "The car cannot switch a pin that another program or driver uses.",
    "end that program, remove the driver from config.txt, or use another pin",
)
PULLED_UP = Kind(
    "pull-up",
    Severity.FAULT,
    "The car does not move",
    "GPIO {gpio} ({place}) is an input with a pull-up",
    "The motor driver reads it as high: the motor may turn without a command.",
    "wire 10 kΩ from this pin to ground, or use GPIO 9 to 27; or gpio={gpio}=ip,pd in "
    "config.txt, then reboot",
)
NO_PULL = Kind(
    "pull-none",
    Severity.WARNING,
    "The car does not move",
    "GPIO {gpio} ({place}) is an input without a pull",
    "The pin floats: the motor may twitch without a command.",
    "gpio={gpio}=ip,pd in config.txt, then reboot; or wire 10 kΩ from this pin to ground",
)
NO_PWM = Kind(
    "pwm-absent",
    Severity.FAULT,
    "The car does not move",
    "a motor pin has no PWM of the kernel: {fault}",
    "The kernel's PWM makes the pulses of the pins in pins.pwm; without it the car waits.",
    "sudo fpvcar setup (writes {lines} to config.txt), then sudo reboot",
)
PWM_REBOOT_NEEDED = Kind(
    "pwm-reboot",
    Severity.FAULT,
    "The car does not move",
    "{lines} is in config.txt, but there is no such PWM yet",
    "The kernel's PWM makes the pulses of the pins in pins.pwm; without it the car waits.",
    "sudo reboot; if this remains, look for its reason: sudo vclog --msg",
)
OVER_PEAK = Kind(
    "pwm-peak-refused",
    Severity.FAULT,
    "The car does not move",
    "{place}: PWM pulses at {hz} Hz draw {stall_a} A if the motor stalls; the "
    "peak current of its bridge is {peak_a} A",
    "The car refuses to drive it: an overloaded bridge overheats, and if it fails, its motor "
    "may stay on.",
    "solder a resistor of {ohm} Ω for {watts} W into the motor's lead, then confirm it: sudo "
    "fpvcar setup. Or use a battery of at most {most_v} V when full; or PWM of 4000 Hz: pigpiod "
    "(not on a Pi 5), or for one motor the kernel's (pins.pwm); or a motor HAT",
)
DEAD_MAN_UNTESTED = Kind(
    "dead-man",
    Severity.FAULT,
    "The car does not move",
    "the dead man's switch could not be tested: {fault}",
    "It stops the motors if the program that drives them hangs.",
    "follow the message, then test again: fpvcar doctor",
)
DEAD_MAN_FAILED = Kind(
    "dead-man-sleeps",
    Severity.FAULT,
    "The car does not move",
    "the dead man's switch did not stop the motors when it was no longer refreshed",
    "If the program that drives a motor hangs, the motor stays on: do not drive.",
    "sudo systemctl restart pigpiod fpvcar-wheels; update pigpiod if older than 79",
)
DEAD_MAN_LATE = Kind(
    "dead-man-late",
    Severity.WARNING,
    "The car does not move",
    "the dead man's switch stopped the motors only after {after_s:.2f} s",
    "The limit is {most_s} s; the computer is too busy or too hot.",
    "close other programs, then test again: fpvcar doctor",
)
MOTOR_FAILED = Kind(
    "motor",
    Severity.FAULT,
    "The car does not move",
    "motor {motor} could not be turned: {fault}",
    "The test switches the motor in the same way as driving does.",
    "follow the message; else check supply and wires of the motor driver",
)


def back_end(facts: Facts) -> Findings:
    """Check that the pin back end answers, and releases its pins."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is invalid")
        return
    if isinstance(facts.pins, Unasked):
        yield facts.pins
    elif isinstance(facts.pins, Broken):
        yield NO_BACK_END.finding(fault=facts.pins.fault)
    if facts.backend == "pigpio" or facts.profile.motors.on_hat:
        return
    if isinstance(facts.release, Unasked):
        yield facts.release
    elif isinstance(facts.release, Broken) and facts.profile.pins.unsafe:
        yield UNSAFE_PINS.finding(path=facts.profile_path)
    elif isinstance(facts.release, Broken):
        lines = facts.config_lines
        if not isinstance(lines, Unasked) and "dtparam=strict_gpiod" in lines:
            yield REBOOT_NEEDED.finding()
        else:
            yield PINS_NOT_RELEASED.finding()


def holders(facts: Facts) -> Findings:
    """Check that no other program owns a pin of the car."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is invalid")
        return
    if isinstance(facts.holders, Unasked):
        yield facts.holders
        return
    for gpio, place in used_pins(facts.profile, ""):
        holder = facts.holders.get(gpio, "")
        if holder and not holder.startswith(OWN_PREFIX):
            yield PIN_TAKEN.finding(gpio=gpio, place=place, holder=holder)


def pulls(facts: Facts) -> Findings:
    """Check for motors that would turn while their pin is not driven."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is invalid")
        return
    if isinstance(facts.levels, Unasked):
        yield facts.levels
        return
    for gpio, place in _motor_places(facts.profile):
        pin = facts.levels.get(gpio)
        if pin is None or pin.function != INPUT:
            continue
        if pin.pull == UP:
            yield PULLED_UP.finding(gpio=gpio, place=place)
        elif pin.pull == FLOATING:
            yield NO_PULL.finding(gpio=gpio, place=place)


def pulses(facts: Facts) -> Findings:
    """Check that the kernel's PWM is there, and that each bridge bears the current of its
    pulses."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is invalid")
        return
    if isinstance(facts.pwm, Unasked):
        yield facts.pwm
    elif isinstance(facts.pwm, Broken):
        lines = image.pwm_lines(facts.profile.pins.pwm)
        written = facts.config_lines
        if not isinstance(written, Unasked) and written.issuperset(lines):
            yield PWM_REBOOT_NEEDED.finding(lines=", ".join(lines))
        else:
            yield NO_PWM.finding(fault=facts.pwm.fault, lines=", ".join(lines))
    hz = backends.most_hz(facts.backend)
    for over in over_peak(facts.profile, hz):
        yield OVER_PEAK.finding(**over.values(), most_v=f"{over.most_v:g}")


def _motor_places(profile: Profile) -> list[tuple[int, str]]:
    return list(used_pins(profile.motors, "motors"))


def dead_man(facts: Facts) -> Findings:
    """Check for proof that the motors stop when the dead man is not refreshed."""
    trip = facts.trip
    if isinstance(trip, Unasked):
        yield trip
    elif trip.fault:
        yield DEAD_MAN_UNTESTED.finding(fault=trip.fault)
    elif trip.after_s is None:
        yield DEAD_MAN_FAILED.finding()
    elif trip.after_s > TRIP_S:
        yield DEAD_MAN_LATE.finding(after_s=trip.after_s, most_s=TRIP_S)
    elif not trip.whole:
        yield Unasked(PARTIAL_TEST.format(after_s=trip.after_s))


def motors(facts: Facts) -> Findings:
    """Check that the tested motors were driven. Only a person sees whether a wheel turned."""
    if isinstance(facts.turned, Unasked):
        yield facts.turned
        return
    for turned in facts.turned:
        if isinstance(turned.result, Broken):
            yield MOTOR_FAILED.finding(motor=turned.motor, fault=turned.result.fault)

"""Pins, edges and motors through the kernel's gpiochip, without a daemon.

Not lgpio: its thread may end a pulse train after our own write has set the pin, it
cannot switch two lines at once, and its module leaves a pipe in the folder of the
import. Not libgpiod: it has no pulses, and few calls are needed here.
"""

import fcntl
import os
import select
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from fpvcar.config import Profile, raspberry_pi_os
from fpvcar.config.motors import PwmStop
from fpvcar.config.pwm import MOST_HZ
from fpvcar.devices.guardian import Guardian, take_turn
from fpvcar.devices.linux import gpiochip, pins_off, strict
from fpvcar.devices.linux.kernel_pwm import KernelPwm
from fpvcar.devices.linux.pulses import Pulses
from fpvcar.devices.motors.bridge import motor_drivers
from fpvcar.devices.pins import Edge, PinsFault, PinsLost
from fpvcar.runtime.texts import SAYS, Text, os_reason

SERVO_S = 0.02
DRIVEN = gpiochip.OUTPUT | gpiochip.PULL_DOWN
"""An output, and an input with pull-down once its owner is gone."""
TICK_MASK = (1 << 32) - 1
DAEMONS = tuple(f"/usr/{place}/pigpiod" for place in ("bin", "sbin", "local/bin"))
ROOT = Path("/")
MODEL = ROOT / "proc/device-tree/model"


def suits(daemons: Sequence[str] = DAEMONS, model: Path = MODEL) -> bool:
    """Return True if this back end suits the machine: a Pi without pigpiod, or a Pi
    5, which pigpiod does not support."""
    installed = any(map(os.path.exists, daemons))
    try:
        chip = gpiochip.find()
    except PinsLost:  # not permitted, for example; opening it later reports that
        return not installed and model.exists()
    chip.close()
    return chip.label == "pinctrl-rp1" or not installed


def daemon_below(root: Path) -> bool:
    """Return True if pigpiod is installed on a card, even of an unknown board."""
    return any((root / path.lstrip("/")).exists() for path in DAEMONS)


def rp1_board(root: Path) -> str:
    """Return the model of a board without support by pigpiod, "" for any other computer."""
    try:
        model = (root / raspberry_pi_os.MODEL).read_text(errors="replace").rstrip("\0\n")
    except OSError:
        return ""
    return model if raspberry_pi_os.RP1_BOARD.match(model) else ""


class LinuxEdges:
    """Edges of some inputs, with the kernel's time stamps."""

    def __init__(self, lines: Sequence[gpiochip.Lines]) -> None:
        self._lines = tuple(lines)
        self._poll = select.epoll()
        for request in self._lines:
            self._poll.register(request.fileno(), select.EPOLLIN)
        self._levels: dict[int, int] = {}
        for request in self._lines:
            self._levels |= request.get()

    def read(self, timeout_s: float, changes: int = 1) -> list[Edge]:
        """Return edges; wait up to `timeout_s` for the first one. [] means no edge."""
        ready = {fd for fd, _ in self._poll.poll(max(0.0, timeout_s))}
        events = []
        try:
            for request in self._lines:
                if request.fileno() in ready:
                    events += request.edges()
        except OSError as fault:
            raise PinsLost(f"edges: {fault.strerror}") from None
        events.sort()
        self._levels |= {gpio: level for _, gpio, level in events}
        return [Edge(ns // 1000 & TICK_MASK, gpio, level) for ns, gpio, level in events]

    def fileno(self) -> int:
        """Return a descriptor for select, readable when `read` has data."""
        return self._poll.fileno()

    def level(self, gpio: int) -> int:
        """Return the pin's level after the last edge."""
        return self._levels[gpio]

    def close(self) -> None:
        """Release all lines and the poll object."""
        self._poll.close()
        for request in self._lines:
            request.close()


class LinuxPins:
    """Pins of a Pi's header; each is requested at its first use."""

    def __init__(self, consumer: str, pwm: KernelPwm | None = None) -> None:
        """`consumer`: name of the pins' holder, as the kernel reports it to others. `pwm`: the
        kernel's PWM of some pins; a thread makes the pulses of all others. Raises PinsLost."""
        self._consumer, self._chip = consumer, gpiochip.find()
        self._pwm = pwm or KernelPwm((), pins_off.AUTO)
        self.label = self._chip.label
        self._outputs: dict[int, gpiochip.Lines] = {}
        self._inputs: dict[int, tuple[int, int]] = {}
        """Flags and debounce time of pins whose edges will be read."""
        self._hz: dict[int, int] = {}
        self._pulses = Pulses(self._put)

    def claim(self, gpios: Sequence[int]) -> None:
        """Request pins that switch together; they are low afterwards."""
        lines = self._chip.request(gpios, DRIVEN, self._consumer)
        self._outputs |= dict.fromkeys(gpios, lines)

    def write(self, gpio: int, level: int) -> None:
        """Make the pin a steady output and stop its PWM."""
        self.write_together((gpio,), level)

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switch outputs that were claimed together, with one call. The kernel's PWM switches
        one pin after the other, each at its next period."""
        for gpio in gpios:
            if gpio in self._pwm:
                self._pwm.duty(gpio, level)
        lines = [gpio for gpio in gpios if gpio not in self._pwm]
        for gpio in lines:
            if gpio not in self._outputs:
                self.claim((gpio,))
            self._pulses.stop(gpio)
        try:
            self._put(dict.fromkeys(lines, level))
        except OSError as fault:
            names = ", ".join(map(str, lines))
            action = Text("gpio_write", "write GPIO {gpio}", gpio=names)
            raise PinsLost(SAYS(place=action, reason=os_reason(fault))) from None

    def _put(self, levels: dict[int, int]) -> None:
        pending = dict(levels)
        while pending:
            lines = self._outputs[next(iter(pending))]
            lines.set({gpio: pending.pop(gpio) for gpio in lines.gpios if gpio in pending})

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Set the frequency; without the kernel's PWM it is limited to MOST_HZ."""
        if gpio in self._pwm:
            self._pwm.set_frequency(gpio, hz)
        else:
            self._hz[gpio] = min(hz, MOST_HZ)

    def pwm(self, gpio: int, duty: float) -> None:
        """Drive the pin high for `duty` of the time."""
        if gpio in self._pwm:
            self._pwm.duty(gpio, duty)
        elif duty in (0.0, 1.0):
            self.write(gpio, int(duty))
        else:
            period_s = 1.0 / self._hz.get(gpio, MOST_HZ)
            self._pulse(gpio, period_s, duty * period_s)

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Send 50 pulses per second; 0 ends them with a whole one. Without the kernel's PWM the
        thread's delays change their length."""
        if gpio in self._pwm:
            self._pwm.servo(gpio, pulse_us)
        elif pulse_us:
            self._pulse(gpio, SERVO_S, pulse_us / 1e6)
        else:
            self._pulses.finish(gpio)
            self.write(gpio, 0)

    def _pulse(self, gpio: int, period_s: float, on_s: float) -> None:
        if gpio not in self._outputs:
            self.claim((gpio,))
        self._pulses.run(gpio, period_s, on_s)

    def input_pull_up(self, gpio: int, steady_us: int) -> None:
        """Make the pin an input with pull-up, debounced by the kernel."""
        self._inputs[gpio] = gpiochip.PULL_UP, steady_us

    def input_pull_down(self, gpio: int) -> None:
        """Make the pin an input with pull-down: it is low while unplugged."""
        self._inputs[gpio] = gpiochip.PULL_DOWN, 0

    def edges(self, gpios: Sequence[int]) -> LinuxEdges:
        """Request the inputs set by `listen` and `hear`, and read their edges."""
        lines: list[gpiochip.Lines] = []
        try:
            for gpio in gpios:
                pull, steady_us = self._inputs[gpio]
                flags = gpiochip.INPUT | gpiochip.BOTH_EDGES | pull
                lines.append(self._chip.request((gpio,), flags, self._consumer, steady_us))
            return LinuxEdges(lines)
        except PinsFault:
            for request in lines:
                request.close()
            raise

    def trigger(self, gpio: int, length_us: int, after_s: float = 0.0) -> None:
        """Wait, then pull the pin high for `length_us` or slightly longer."""
        time.sleep(after_s)
        self.write(gpio, 1)
        end_s = time.perf_counter() + length_us / 1e6
        while time.perf_counter() < end_s:
            pass
        self.write(gpio, 0)

    def check(self) -> None:
        """Query the chip's name, to detect a lost chip."""
        self._chip.check()

    def close(self) -> None:
        """Release all pins and stop their pulses."""
        self._pulses.close()
        for lines in set(self._outputs.values()):
            lines.close()
        self._outputs.clear()
        self._pwm.close()
        self._chip.close()


class MotorPinHold:
    """Emergency owner of the motor pins: holds them low after `wheels` has died.
    Raises PinsFault, OSError."""

    def __init__(self, gpios: Sequence[int], pwm: Sequence[PwmStop] = ()) -> None:
        """`pwm`: further pins, with the kernel's PWM."""
        self._gpios, self._chip = tuple(gpios), gpiochip.find()
        self._pwm = tuple(pwm)
        self._lines: gpiochip.Lines | None = None

    def __call__(self) -> None:
        """Switch the PWM off, which is possible while `wheels` still hangs; then request the
        other pins, which makes them low. A fault of one pin does not spare the next."""
        with ExitStack() as steps:
            steps.callback(self._request)
            for pin in reversed(self._pwm):  # called in the order of the profile
                steps.callback(pins_off.pwm_off, *pin)

    def _request(self) -> None:
        if self._lines is None and self._gpios:
            try:
                self._lines = self._chip.request(self._gpios, DRIVEN, "fpvcar guardian")
            except PinsFault:
                self._chip.close()
                raise


def take_hold(path: Path) -> ExitStack:
    """Show a late helper by a record lock that this process holds the pins, until closed. Without
    the lock the helper switches them off."""
    hold = ExitStack()
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        hold.callback(os.close, file)
        os.fchmod(file, 0o640)  # despite the umask: the helper is in this group
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return hold


class LinuxBoard:
    """Motors of one car on the kernel's pins, with their guardian."""

    def __init__(self, profile: Profile, lock: Path) -> None:
        """Request the pins, low, and arm the guardian. Raises PinsFault. `lock` is held by the
        guardian of a PWM, which has no owner in the kernel."""
        gpios, pwm = profile.line_pins(), profile.stop_pwm()
        own_pwm = tuple(gpio for gpio, *_ in pwm), profile.pins.pwm_device
        neutral_us = {gpio: pulse_us[0] for gpio, _, *pulse_us in pwm if pulse_us}
        self._servos = tuple(gpio for gpio in gpios if gpio in profile.motors.servo_pins())
        self._gpios = tuple(gpio for gpio in gpios if gpio not in self._servos)
        with ExitStack() as opened:
            turn = None
            if pwm:
                turn = take_turn(lock)
                opened.callback(os.close, turn)
            with ExitStack() as failed:
                self._hold = failed.enter_context(take_hold(lock.with_name(pins_off.HOLD)))
                self._pwm = KernelPwm(*own_pwm, neutral_us)
                failed.callback(self._pwm.close)
                self._pins = LinuxPins("fpvcar wheels", self._pwm)
                failed.callback(self._pins.close)
                if not profile.pins.unsafe:
                    strict.require_strict(self._pins.label, ROOT)
                if gpios:
                    self._pins.claim(gpios)
                self.drivers = motor_drivers(profile, self._pins)
                self.dead_man = Guardian(lambda: MotorPinHold(gpios, pwm), turn=turn)
                failed.pop_all()

    def close(self) -> None:
        """Switch everything off and release the pins; if that fails, leave it to the guardian."""
        try:
            with ExitStack() as rest:
                for gpio in self._servos:
                    rest.callback(self._pins.servo, gpio, 0.0)
                rest.callback(self._pwm.off)
                self._pins.write_together(self._gpios, 0)
        except PinsFault:
            self.dead_man.leave()
        else:
            self.dead_man.kill()
        self._pins.close()
        self._hold.close()

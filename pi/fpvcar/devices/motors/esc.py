"""Driver of an electronic speed control (ESC): throttle -> servo pulse. Pure; time is an argument.

    ARMING -> (arm_s) -> NEUTRAL <-> FORWARD
                         NEUTRAL <-> REVERSE                              "direct"
                         NEUTRAL -> BRAKE -> (0.15 s) -> PAUSE -> (0.15 s) -> REVERSE  "brake-first"

An ESC of an RC car takes the first pull back for its brake, and reverses at the second one. It may
have gone forward before this process started, so each change to backward has the whole sequence.

Zero is neutral at once, in each state: a reverse pulse would brake or drive backward, and silence
leaves the motor on until the ESC notices. Setpoints that pause for GAP_S mean that the dead man may
have cut the pulses; the ESC is then armed anew.
"""

import enum
import math
from collections.abc import Sequence

from msgspec.structs import replace

from fpvcar.config import EscMotor
from fpvcar.devices.pins import Pins

GAP_S = 0.15
"""Pause of the setpoints after which the dead man may have acted (wheels/controller.py)."""
AWAKE_S = 0.25
"""Time after the first setpoint in which the dead man may still cut the pulses: a tick and a hold
of its script, then a setpoint without a driver. It comes on top of `arm_s`."""
TAP_S, PAUSE_S = 0.15, 0.15
"""Brake pulse, and neutral after it, before the reverse pulse of "brake-first"."""
BRAKE_LEAST = 0.1
"""Smallest throttle that an ESC takes for a pull back."""
STEP_MOST_S = 0.1
"""Limit of the elapsed time that counts for the slew."""


class Throttle(enum.Enum):
    """State of the pulses."""

    ARMING = enum.auto()
    NEUTRAL = enum.auto()
    FORWARD = enum.auto()
    BRAKE = enum.auto()
    PAUSE = enum.auto()
    REVERSE = enum.auto()


def pulse_of(esc: EscMotor, share: float) -> float:
    """Return the pulse in us of a throttle of -1 to 1."""
    if share == 0.0:
        return esc.neutral_us
    end_us = esc.forward_us if share > 0.0 else esc.reverse_us
    span_us = abs(end_us - esc.neutral_us)
    size_us = esc.dead_band_us + (span_us - esc.dead_band_us) * abs(share)
    return esc.neutral_us + math.copysign(size_us, end_us - esc.neutral_us)


class PulseLaw:
    """Pulse for a duty of -1 to 1 over time; neutral until armed."""

    def __init__(self, esc: EscMotor) -> None:
        self.state = Throttle.ARMING
        self.esc = esc
        """ESC with its pulses, which may be replaced while the wish is zero."""
        self._wish, self._share = 0.0, 0.0
        self._since_s = self._stepped_s = self._driven_s = -math.inf

    def drive(self, duty: float, now_s: float) -> None:
        """Set the target duty; 0 is neutral at once. To be repeated within GAP_S."""
        if now_s - self._driven_s > GAP_S:
            self.state, self._since_s, self._share = Throttle.ARMING, now_s, 0.0
        self._driven_s = now_s
        least = 0.0 if self.esc.reverse == "forward-only" else -self.esc.top
        self._wish = min(max(duty, least), self.esc.top)
        self.step(now_s)

    def step(self, now_s: float) -> None:
        """Move towards the target, as far as time allows."""
        elapsed_s = min(max(now_s - self._stepped_s, 0.0), STEP_MOST_S)
        self._stepped_s = now_s
        state = self._next(now_s)
        if state is not self.state:
            self.state, self._since_s, self._share = state, now_s, 0.0
        if state in (Throttle.FORWARD, Throttle.REVERSE):
            most = abs(self._share) + self.esc.slew_per_s * elapsed_s
            self._share = math.copysign(min(abs(self._wish), most), self._wish)
        elif state is Throttle.BRAKE:
            self._share = -min(max(-self._wish, BRAKE_LEAST), self.esc.top)

    def _next(self, now_s: float) -> Throttle:
        past_s = now_s - self._since_s
        if self.state is Throttle.ARMING and past_s < self.esc.arm_s + AWAKE_S:
            return Throttle.ARMING
        if self._wish == 0.0:
            return Throttle.NEUTRAL
        if self._wish > 0.0:
            return Throttle.FORWARD
        if self.esc.reverse == "direct" or self.state is Throttle.REVERSE:
            return Throttle.REVERSE
        if self.state is Throttle.BRAKE:
            return Throttle.PAUSE if past_s >= TAP_S else Throttle.BRAKE
        if self.state is Throttle.PAUSE:
            return Throttle.REVERSE if past_s >= PAUSE_S else Throttle.PAUSE
        return Throttle.BRAKE

    @property
    def pulse_us(self) -> float:
        """Pulse to send now."""
        return pulse_of(self.esc, self._share)

    @property
    def due_s(self) -> float | None:
        """Time at which the state changes by itself; None for never."""
        waits = {Throttle.ARMING: self.esc.arm_s, Throttle.BRAKE: TAP_S, Throttle.PAUSE: PAUSE_S}
        return self._since_s + waits[self.state] if self._wish and self.state in waits else None


class EscDriver:
    """ESC on pins. It gets no pulse before the first zero, with which every drive begins, and
    never one beyond the ends of its profile."""

    def __init__(self, motor: EscMotor, pins: Pins) -> None:
        """Create the driver; it raises the exceptions of its pins."""
        self._motor = self._tuned = motor
        self._output, self._pins = motor.output, pins
        self._law, self._sent_us = PulseLaw(motor), 0.0

    @property
    def tuned(self) -> bool:
        """Whether the pulses are not those of the profile."""
        return self._law.esc is not self._motor

    def tune(self, pulses: Sequence[float] | None) -> None:
        """Take calibrated pulses, neutral and dead band in us, from the next zero on; None: those
        of the profile."""
        if pulses is None:
            self._tuned = self._motor
        elif (self._tuned.neutral_us, self._tuned.dead_band_us) != tuple(pulses):
            neutral_us, dead_band_us = pulses
            self._tuned = replace(self._motor, neutral_us=neutral_us, dead_band_us=dead_band_us)

    def drive(self, duty: float, now_s: float) -> None:
        """Set the throttle, -1 to 1. Sends also an unchanged pulse: the dead man may have cut."""
        if duty == 0.0:
            self._law.esc = self._tuned
        self._law.drive(duty, now_s)
        self._send()

    def tick(self, now_s: float) -> None:
        """Do the work due by now: end the arming, the brake pulse or the pause after it."""
        if self._sent_us:
            self._law.step(now_s)
            if self._law.pulse_us != self._sent_us:
                self._send()

    @property
    def due_s(self) -> float | None:
        """Time of the next `tick` with work to do, None for never."""
        return self._law.due_s

    def _send(self) -> None:
        ends_us = self._motor.reverse_us, self._motor.forward_us
        self._sent_us = min(max(self._law.pulse_us, min(ends_us)), max(ends_us))
        self._pins.servo(self._output, self._sent_us)

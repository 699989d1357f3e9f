"""Behaviour of an RC car's ESC for the pulses that it gets. Pure; time is an argument.

    no signal -> (neutral for ARMS_S) -> armed -> forward, brake, reverse, neutral
              <- (no pulses for `esc_loss_s`): until then the last throttle lasts

It judges the pulses, and logs each fault once: a stub, throttle before arming, silence in place of
neutral.
"""

import logging

from fpvbench.world.bridge import Bridge
from fpvcar.config import EscMotor

ARMS_S = 0.9
"""Neutral after which it is armed: a little less than the shortest `arm_s` of a profile."""
STANDS_US, EARLY_US = 15.0, 10.0
"""Least distance from neutral within which the motor stands. It turns EARLY_US before the end of
its dead band."""
SHORT_US, LONG_US = 900.0, 2100.0
"""Widths beyond which a pulse is a stub, or no pulse of a servo."""
log = logging.getLogger("world")


class EscModel:
    """ESC and its memory. `armed`: it has been armed before the first step."""

    def __init__(self, motor: EscMotor, armed: bool = False) -> None:
        self._motor, self._armed = motor, armed
        self._seen_s: float | None = None
        self._neutral_since_s: float | None = None
        self._bridge = Bridge()
        self._reverses = motor.reverse == "direct"
        """Whether the next pull back drives backward; of "brake-first" the second one."""
        self._braked = False
        self.faults: set[str] = set()

    def step(self, pulse_us: float, now_s: float) -> Bridge:
        """Return the state for the present pulses; 0 is none."""
        if not pulse_us:
            return self._silent(now_s)
        if not SHORT_US <= pulse_us <= LONG_US:
            self._blame(f"a pulse of {pulse_us:.0f} us")
            return self._bridge
        self._seen_s = now_s
        share = self._share(pulse_us)
        if share == 0.0:
            self._neutral_since_s = (
                now_s if self._neutral_since_s is None else self._neutral_since_s
            )
            self._armed = self._armed or now_s - self._neutral_since_s >= ARMS_S
        else:
            self._neutral_since_s = None
        if not self._armed:
            if share:
                self._blame("throttle before it was armed")
            return Bridge()
        self._bridge = self._driven(share)
        return self._bridge

    def _silent(self, now_s: float) -> Bridge:
        self._neutral_since_s = None
        if self._seen_s is None or now_s - self._seen_s >= self._motor.esc_loss_s:
            self._bridge, self._armed = Bridge(), self._armed and self._seen_s is None
        elif self._bridge.drive:
            self._blame("silence while it drove")
        return self._bridge

    def _driven(self, share: float) -> Bridge:
        kind = self._motor.reverse
        if share == 0.0:
            self._reverses = kind == "direct" or self._reverses or self._braked
            return Bridge()
        if share > 0.0:
            self._reverses, self._braked = kind == "direct", False
            return Bridge(drive=share, coast=1.0 - share)
        if kind == "forward-only" or not self._reverses:
            self._braked = kind == "brake-first"
            return Bridge(brake=-share, coast=1.0 + share)
        return Bridge(drive=share, coast=1.0 + share)

    def _share(self, pulse_us: float) -> float:
        """Return the throttle of a pulse, -1 to 1."""
        motor = self._motor
        off_us = pulse_us - motor.neutral_us
        if abs(off_us) <= max(STANDS_US, motor.dead_band_us - EARLY_US):
            return 0.0
        ahead_us = motor.forward_us - motor.neutral_us
        ahead = off_us * ahead_us > 0.0
        span_us = ahead_us if ahead else motor.reverse_us - motor.neutral_us
        share = min(abs(off_us / span_us), 1.0)
        return share if ahead else -share

    def _blame(self, fault: str) -> None:
        if fault not in self.faults:
            self.faults.add(fault)
            log.warning("ESC: %s", fault)

"""Car of the bench's physics that a step of calibration drives, by a played clock."""

import random
from collections.abc import Callable, Sequence

import msgspec

from fpvbench.soc import RANGE_SENSORS
from fpvbench.world import scene
from fpvbench.world.bridge import Bridge, Bridges, ServoState, Wiring, mx1508
from fpvbench.world.process import TICK_S, World
from fpvcar import config
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.calibration.steps import CarState
from fpvcar.calibration.store import History
from fpvcar.drive import mixing
from fpvcar.wire.telemetry import Range

STEER_RAD_PER_US = 0.0017
BENT_US = 40.0
"""Length by which the pulse for straight on is longer, due to the mounting of the servo's horn."""
NOISE_M = 0.004
EVERY = 6
"""Ticks between two readings of a sensor: 0.06 s."""


class PlayedCar:
    """World behind mixing; `weaker` sides, a turned motor, a bent servo horn."""

    def __init__(
        self,
        profile: config.Profile,
        *,
        inverted: bool = False,
        weaker: tuple[float, float] = (0.0, 0.0),
        limit: float = 1.0,
    ) -> None:
        self.tuner = Calibrator(profile, History())
        self.tuner.tuned.subscribe(self._tune)
        self.profile = profile
        wiring = Wiring(profile.motors, None, profile.hat_hz())
        place = scene.Layout((), scene.Ramp(0.5, 1.4))
        self.world = World(1, profile.battery, place, wiring.losses)
        self.now_s, self._limit, self._weaker = 10.0, limit, weaker
        self._inverted = inverted
        self._slew = mixing.Slew()
        self._dice = random.Random(1)
        self._ranges: tuple[Range, ...] = ()
        self.finger = False
        self.seen_m = 3.9
        """Reach of its range sensors."""

    def _tune(self, profile: config.Profile) -> None:
        self.profile = profile

    def go(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Advance the time; return True if `until` came true."""
        for _ in range(round(seconds / TICK_S)):
            self._tick()
            if until():
                return True
        return False

    def hold(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Keep the finger down for so long, then up until the car stands."""
        self.finger = True
        came = self.go(seconds, until)
        self.finger = False
        self.go(1.5)
        return came

    def put(self, x_m: float = scene.START_X_M) -> None:
        """Carry the car to its start."""
        self.world.put(x_m, 0.0, 0.0)
        self.go(0.3)

    def _tick(self) -> None:
        self.now_s += TICK_S
        volts, throttle, steer = self.world.battery.volts, 0.0, 0.0
        if self.finger and self.tuner.step is not None:
            asked = self.tuner.status(self._limit, volts, self.now_s)
            assert asked is not None
            wish = asked["wish"]
            throttle, steer = wish["throttle"] * self._limit, wish["steer"]
        else:
            self.tuner.status(self._limit, volts, self.now_s)
        motors = self.profile.motors
        duties, self._slew = mixing.mix(throttle, steer, motors, volts, self._slew, self.now_s)
        self.world.step(self._bridges(duties))
        if self.world.tick % EVERY == 0:
            self._ranges = tuple(self._measured())
        seen = CarState(self.now_s, throttle, steer, duties, self._aged(), volts)
        if self.world.tick % 2 == 0:
            self.tuner.update(seen)

    def _bridges(self, duties: Sequence[float]) -> Bridges:
        turned = -1.0 if self._inverted else 1.0
        one, other = (
            mx1508(max(duty, 0.0), max(-duty, 0.0))._replace(drive=duty * turned * (1.0 - weaker))
            if duty
            else Bridge()
            for duty, weaker in zip(duties, self._weaker, strict=True)
        )
        servo = self.profile.motors.pair[1]
        if isinstance(servo, config.ServoMotor):
            bent_us = servo.pulse_us(duties[1]) - 1500.0 - BENT_US
            return Bridges(one, servo=ServoState(bent_us * STEER_RAD_PER_US))
        return Bridges(one, other, differential=self.profile.motors.differential)

    def _measured(self) -> list[Range]:
        return [
            Range(name, deg, max(0.0, range_m + self._dice.gauss(0.0, NOISE_M)), self.now_s)
            for (name, deg), range_m in zip(RANGE_SENSORS, self.world.ranges_m, strict=True)
            if range_m < self.seen_m
        ]

    def _aged(self) -> tuple[Range, ...]:
        """Return the ranges with their age in place of their time."""
        return tuple(
            msgspec.structs.replace(one, age_s=self.now_s - (one.age_s or 0.0))
            for one in self._ranges
        )

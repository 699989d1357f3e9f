"""Thread for the servos that do not steer, with pins or a bus of its own: no stop waits for them.

    run --- angles ---> Service ---> ServoThread.aim ---> Aim: limits, speed ---> pins

A stop of the car leaves them where they are: `run` decides whether one turns to its rest. So do the
ends of `run` and, on pigpiod, of `wheels`. A fault here is logged, and the car drives on.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from fpvcar.config import AimServo, Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import Pins, PinsFault
from fpvcar.drive.aiming import STEP_S, Aim

AGAIN_S = 0.5
"""Interval of repeated pulses: a board that starts again has switched all outputs of its PCA9685
off."""
RETRY_S = 1.0
CLOSE_S = 0.5
Outputs = tuple[Pins | None, Pins | None]
"""GPIO and PCA9685."""
log = logging.getLogger("fpvcar.wheels")


class ServoThread:
    """Servos of one car, in the profile's order. They get no pulses before the first angles."""

    def __init__(
        self,
        profile: Profile,
        opens: Callable[[Profile], AbstractContextManager[Outputs]] = backends.open_servos,
    ) -> None:
        """Start the thread. `opens` opens the outputs."""
        backends.load_servos(profile)
        self._profile, self._opens = profile, opens
        self._aims = [Aim(servo) for servo in profile.servos.values()]
        self._angles: tuple[float, ...] | None = None
        self._news = threading.Event()
        self._ending = False
        self._fault = ""
        self._thread = threading.Thread(target=self._run, name="servos", daemon=True)
        self._thread.start()

    def aim(self, angles: tuple[float, ...]) -> None:
        """Take the newest angles in degrees; return at once. A wrong number of them is ignored."""
        if len(angles) == len(self._aims):
            self._angles = angles
            self._news.set()

    def close(self) -> None:
        """End pulses and thread, unless the outputs hang."""
        self._ending = True
        self._news.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        self._news.wait()
        for aim, deg in zip(self._aims, self._angles or (), strict=False):
            aim.jump(deg)  # the servo's own angle is unknown
        while not self._ending:
            try:
                with self._opens(self._profile) as outputs:
                    self._serve(outputs)
            except (PinsFault, OSError) as fault:
                if str(fault) != self._fault:
                    log.error("servos: %s; trying again", fault)
                self._fault = str(fault)
                time.sleep(RETRY_S)

    def _serve(self, outputs: Outputs) -> None:
        """Move the servos until the end. Raises PinsFault."""
        sent_s = 0.0
        while not self._ending:
            self._news.clear()
            now_s, angles = time.monotonic(), self._angles or ()
            for aim, deg in zip(self._aims, angles, strict=False):
                aim.go(deg)
            again = now_s - sent_s >= AGAIN_S
            for aim in self._aims:
                if aim.step(now_s) or again:
                    _pulse(outputs, aim.servo, aim.servo.pulse_us(aim.deg))
            if again:
                sent_s, self._fault = now_s, ""
            if any(aim.moving for aim in self._aims):
                time.sleep(STEP_S)
            else:
                self._news.wait(AGAIN_S)
        for aim in self._aims:
            _pulse(outputs, aim.servo, 0.0)


def _pulse(outputs: Outputs, servo: AimServo, pulse_us: float) -> None:
    """Send pulses of this length to a servo, or none for 0. Raises PinsFault."""
    output, pins = servo.signal, outputs[0]
    if servo.channel is not None:
        output, pins = servo.channel, outputs[1]
    assert output is not None and pins is not None
    if pulse_us:
        pins.servo(output, pulse_us)
    else:
        pins.write(output, 0)

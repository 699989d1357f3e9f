"""Thread for the servos that do not steer, with pins or a bus of its own: no stop waits for them.

    run --- angles ---> Service ---> ServoThread.aim ---> Aim: limits, speed ---> pins

A stop of the car turns those with `center_on_stop` to their rest, also if `run` hangs or has ended,
and leaves the others where they are. No pulse is cut short. A fault here is logged and reported to
`run`, and the car drives on.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from fpvcar.config import AimServo, Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import Pins, PinsFault, PinsRefused
from fpvcar.drive.aiming import STEP_S, Aim
from fpvcar.runtime.texts import Phrase, Text, fault_text

AGAIN_S = 0.5
"""Interval of repeated pulses: a board that starts again has switched all outputs of its PCA9685
off."""
RETRY_S = 1.0
CLOSE_S = 0.5
Outputs = tuple[Pins | None, Pins | None]
"""GPIO and PCA9685."""
SERVO_FAULT = Phrase("servo_fault", "servo {name}: {reason}")
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
        self._stale: tuple[float, ...] = ()
        """Angles from before the newest stop."""
        self._news = threading.Event()
        self._ending = False
        self.fault: Text | None = None
        """Error text of the outputs; None while all servos get their pulses."""
        self._thread = threading.Thread(target=self._run, name="servos", daemon=True)
        self._thread.start()

    def aim(self, angles: tuple[float, ...]) -> None:
        """Take the newest angles in degrees; return at once. A wrong number of them is ignored,
        and repeats of those from before a stop: their sender does not know of it yet."""
        if len(angles) == len(self._aims) and angles != self._stale:
            self._use(angles, ())

    def _use(self, angles: tuple[float, ...], stale: tuple[float, ...]) -> None:
        self._angles, self._stale = angles, stale
        self._news.set()

    def stop(self) -> None:
        """Turn servos to their rest whose profile says so, because the car has stopped."""
        if (angles := self._angles) is None:
            return
        servos = self._profile.servos.values()
        rests = (
            servo.rest_deg if servo.center_on_stop else deg
            for servo, deg in zip(servos, angles, strict=True)
        )
        self._use(tuple(rests), self._stale or angles)

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
                self._report(fault_text(fault))
                time.sleep(RETRY_S)

    def _report(self, fault: Text) -> None:
        if fault != self.fault:
            log.error("servos: %s; trying again", fault)
        self.fault = fault

    def _serve(self, outputs: Outputs) -> None:
        """Move the servos until the end. A refused pulse of one does not hold up the others.
        Raises PinsFault."""
        sent_s, refused = 0.0, False
        while not self._ending:
            self._news.clear()
            now_s, angles = time.monotonic(), self._angles or ()
            for aim, deg in zip(self._aims, angles, strict=False):
                aim.go(deg)
            again = now_s - sent_s >= AGAIN_S
            for name, aim in zip(self._profile.servos, self._aims, strict=True):
                if aim.step(now_s) or again:
                    try:
                        _pulse(outputs, aim.servo, aim.servo.pulse_us(aim.deg))
                    except PinsRefused as fault:
                        self._report(SERVO_FAULT(name=name, reason=fault_text(fault)))
                        refused = True
            if again:
                if not refused:
                    self.fault = None
                sent_s, refused = now_s, False
            if any(aim.moving for aim in self._aims):
                time.sleep(STEP_S)
            else:
                self._news.wait(AGAIN_S)
        for aim in self._aims:
            _pulse(outputs, aim.servo, 0.0)


def _pulse(outputs: Outputs, servo: AimServo, pulse_us: float) -> None:
    """Send pulses of this length to a servo; 0 ends them. Raises PinsFault."""
    output, pins = servo.signal, outputs[0]
    if servo.channel is not None:
        output, pins = servo.channel, outputs[1]
    assert output is not None and pins is not None
    pins.servo(output, pulse_us)

"""Dead man's switch: a script in pigpiod, independent of the life of other processes.

p0 heartbeat number (ours)  p1 time-out in ticks    p7 MAGIC  p8 1 = tripped p9 ticks spent tripped
v0 number last seen     v1 ticks left The script starts tripped; while tripped it stops the pins
again at every tick. `bc1` comes first, because it releases a brake in one instant; pin by pin the
motor would be driven for a moment. Then both `p` and `w` follow: a `w` that meets the start of a
PWM can leave its on-bits set; the next `p 0` clears them. Every register has one writer, so a race
loses nothing.

An ESC gets neutral pulses for HOLD_S first, because silence does not stop it; then `s 0`, which
waits for the end of a pulse (gpioServo, pigpio.c). p6 is 1 after that: it happens once per trip. A
servo that steers gets `s 0` alone: it would jerk at a pulse that is cut short.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from fpvcar.config import EscMotor, Profile
from fpvcar.devices.motors.bridge import motor_drivers
from fpvcar.devices.pigpio.pins import PigpioPins, Result
from fpvcar.devices.pins import HOLD_S, PinsFault, PinsLost

TICK_MS, PATIENCE_TICKS = 20, 9  # trips 200-220 ms after the last heartbeat
MAGIC = 0x57484C53  # "WHLS": marks our script among the 32 that a daemon can hold
PROOF = 0x50524F46  # "PROF": a script over no pins, as a proof that the daemon runs it
RUNNING = 2
START_S = 0.5
_SLOTS = 32
_INITIALISING = 0
log = logging.getLogger("fpvcar.wheels")


def script(gpios: Sequence[int], esc: EscMotor | None = None, servos: Sequence[int] = ()) -> str:
    """Return the text of the script that stops these pins, and then servos and an ESC."""
    bits = sum(1 << gpio for gpio in gpios)
    ends = [f"s {gpio} 0" for gpio in servos]
    stops = " ".join([f"bc1 {bits}", *(f"p {gpio} 0 w {gpio} 0" for gpio in gpios), *ends])
    if esc is not None:
        servo = f"s {esc.output}"
        hold = f"{servo} {round(esc.neutral_us)} mils {round(HOLD_S * 1000)}"
        stops += f" lda p6 cmp 1 jz 2 {hold} ld p6 1 tag 2 {servo} 0"
    return (
        f"tag 0 mils {TICK_MS} lda p0 cmp v0 jz 1 "
        "sta v0 ld v1 p1 ld p6 0 ld p8 0 jmp 0 "
        f"tag 1 dcr v1 jp 0 ld p8 1 {stops} ld v1 0 inr p9 jmp 0"
    )


class ScriptDeadMan:
    """Script in its slot of the daemon. Only one process may hold it: `wheels` has a lock."""

    def __init__(
        self,
        pins: PigpioPins,
        gpios: Sequence[int],
        magic: int = MAGIC,
        esc: EscMotor | None = None,
        servos: Sequence[int] = (),
    ) -> None:
        """Store and start the script, replacing any from a former process."""
        self._pins, self._client, self._magic = pins, pins.client, magic
        self._beat = 0
        self._remove_old()
        text = script(gpios, esc, servos)
        self._id = self._call("store", self._client.store_script, text)
        self._started(lambda status: status != _INITIALISING)
        start = [0, PATIENCE_TICKS, 0, 0, 0, 0, 1, magic, 1]
        self._call("start", self._client.run_script, self._id, start)
        self._started(lambda status: status == RUNNING)

    def feed(self) -> None:
        """Postpone the stop by another 200 ms."""
        self._beat = self._beat % 0x7FFFFFFF + 1
        self._call("feed", self._client.update_script, self._id, [self._beat])

    def awake(self) -> bool:
        """Return True while the script runs and is not tripped. Raises PinsLost if it does not
        run."""
        status, values = self._status(self._id)
        if status != RUNNING or len(values) < 10:
            raise PinsLost(f"the dead man's script does not run (status {status})")
        return values[8] == 0

    def rest(self) -> None:
        """Do nothing: the motors stand, and the script only stops motors."""

    def remove(self) -> None:
        """Free the script's slot; call it only while the motors stand."""
        self._call("remove", self._client.delete_script, self._id)

    def _call(self, action: str, act: Callable[..., Result], *values: Any) -> Result:
        return self._pins.call(f"dead man: {action}", act, *values)

    def _status(self, slot: int) -> tuple[int, Sequence[int]]:
        status: tuple[int, Sequence[int]]
        status = self._call("status", self._client.script_status, slot)
        return status

    def _remove_old(self) -> None:
        for slot in range(_SLOTS):
            status, values = self._status(slot)
            if status >= 0 and len(values) > 7 and values[7] == self._magic:
                self._call("remove", self._client.delete_script, slot)

    def _started(self, reached: Callable[[int], bool]) -> None:
        until_s = time.monotonic() + START_S
        while not reached(self._status(self._id)[0]):
            if time.monotonic() > until_s:
                raise PinsLost("the dead man's script does not start")
            time.sleep(0.001)


class PigpioBoard:
    """Motors of one car on pigpiod, with their dead man."""

    def __init__(self, profile: Profile) -> None:
        """Connect, switch the motors off, arm the dead man. Raises PinsFault."""
        self._esc = esc = profile.motors.esc
        self._servos = servos = profile.motors.servo_pins()
        pulsed = (*servos, *(esc.pins() if esc else ()))
        self._gpios = gpios = tuple(pin for pin in profile.motor_pins() if pin not in pulsed)
        self._pins = PigpioPins(profile.pins.host, profile.pins.port)
        try:
            self._end_pulses()
            for gpio in gpios:
                self._pins.write(gpio, 0)
            self.dead_man = ScriptDeadMan(self._pins, gpios, esc=esc, servos=servos)
            self.drivers = motor_drivers(profile, self._pins)
        except PinsFault:
            self._pins.close()
            raise

    def _end_pulses(self) -> None:
        """End the pulses of a servo, and those of an ESC after a hold at neutral."""
        for gpio in self._servos:
            self._pins.servo(gpio, 0.0)
        if self._esc is not None:
            self._pins.servo(self._esc.output, self._esc.neutral_us)
            time.sleep(HOLD_S)
            self._pins.servo(self._esc.output, 0)

    def close(self) -> None:
        """Switch everything off and remove the dead man, which stays if the daemon does not
        answer."""
        try:
            self._pins.write_together(self._gpios, 0)  # releases a brake at once
            for gpio in self._gpios:
                self._pins.write(gpio, 0)
            self._end_pulses()
            self.dead_man.remove()
        except PinsFault as fault:
            log.debug("closing: %s", fault)
        self._pins.close()

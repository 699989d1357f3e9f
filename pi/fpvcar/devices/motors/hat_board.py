"""Motors on a PCA9685: the chip's outputs, their drivers, and a guardian."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

from fpvcar.config import Profile
from fpvcar.config.servos import chip_turns_servos
from fpvcar.devices.chips.pca9685 import Pca9685, all_off, end_pulses
from fpvcar.devices.guardian import Guardian, take_turn
from fpvcar.devices.i2c import I2cError, Open
from fpvcar.devices.motors.bridge import motor_drivers
from fpvcar.devices.pins import CYCLE_S, IoPins, PinsFault, PinsLost
from fpvcar.runtime.texts import SAYS

ENABLED, DISABLED = 0, 1
"""Levels of OE, which is active low."""
Buses = Callable[[], AbstractContextManager[Open]]
OpenPins = Callable[[], IoPins]


class Switch:
    """Emergency switch, independent of `wheels`: one byte to the chip, and OE where
    wired, over connections of its own. Raises I2cError, PinsFault."""

    def __init__(self, profile: Profile, buses: Buses, pins: OpenPins) -> None:
        """Open the bus. The pins are opened only when used: their daemon may hang."""
        hat = profile.pca9685
        self._open, self._oe, self._esc = ExitStack(), hat.oe, profile.motors.esc
        self._clock, self._servos = hat.clock, chip_turns_servos(profile)
        self._open_pins = pins
        self._pins: IoPins | None = None
        try:
            opens = self._open.enter_context(buses())
            self.device = opens(hat.bus, hat.address)
            self._open.callback(self.device.close)
        except (I2cError, PinsFault):
            self.close()
            raise

    def __call__(self) -> None:
        """Switch the chip off, then OE; either is enough. Closes itself after a fault."""
        with ExitStack() as fault:
            fault.callback(self.close)
            try:
                self._chip_off()
            except (I2cError, PinsFault):
                if self._oe is None:
                    raise
                self.enable(DISABLED)
            else:
                with suppress(PinsFault):
                    self.enable(DISABLED)
            fault.pop_all()

    def _chip_off(self) -> None:
        if self._esc is None:
            all_off(self.device)
            if self._servos and self._oe is not None:
                time.sleep(CYCLE_S)  # OE would cut the last pulse of a servo short
        else:
            end_pulses(self.device, self._esc.output, self._esc.neutral_us, self._clock)

    def enable(self, level: int) -> None:
        """Set OE to this level, if it is wired. Raises PinsFault."""
        if self._oe is None:
            return
        if self._pins is None:
            self._pins = self._open_pins()
        self._pins.write(self._oe, level)

    def close(self) -> None:
        """End the connections; the outputs keep their state. Never raises."""
        with suppress(PinsFault):
            self._open.close()
        if self._pins is not None:
            self._pins.close()


class HatBoard:
    """Motor board that starts switched off, with its guardian."""

    def __init__(self, profile: Profile, buses: Buses, pins: OpenPins, lock: Path) -> None:
        """Open the chip. Raises PinsFault. `pins` is opened only where OE is wired;
        `lock` is held by the chip's guardian."""
        with ExitStack() as opened:
            turn = take_turn(lock)
            opened.callback(os.close, turn)
            try:
                self._switch = Switch(profile, buses, pins)
                if profile.motors.esc is not None:
                    self._switch()  # the chip's start would cut a pulse that a dead process has set
            except I2cError as fault:
                raise PinsLost(SAYS(place="PCA9685", reason=fault)) from None
            with ExitStack() as failed:
                failed.callback(self._switch.close)
                chip = self._chip(profile.hat_hz(), profile.pca9685.clock)
                self.drivers = motor_drivers(profile, chip)
                self._switch.enable(ENABLED)
                self.dead_man = Guardian(lambda: Switch(profile, buses, pins), turn=turn)
                failed.pop_all()

    def _chip(self, hz: int, clock: float) -> Pca9685:
        """Return the chip with all outputs off; disable a chip that does not answer through OE."""
        try:
            return Pca9685(self._switch.device, hz, clock=clock)
        except PinsFault:
            with suppress(PinsFault):
                self._switch.enable(DISABLED)
            raise

    def close(self) -> None:
        """Switch everything off; if that fails, leave it to the guardian."""
        try:
            self._switch()
        except (I2cError, PinsFault):
            self.dead_man.leave()
        else:
            self.dead_man.kill()
        self._switch.close()

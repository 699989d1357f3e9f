"""Time-of-flight sensors of a car, in one thread: each is read when it has a new sample.

The chip is recognised by its identity: a VL53L0X, or one of the family of the VL53L1X.
"""

import contextlib
import logging
import time
from operator import attrgetter

from fpvcar import config
from fpvcar.devices import backends
from fpvcar.devices.chips import vl53l0x, vl53l1x
from fpvcar.devices.i2c import I2cDevice, I2cError, Open
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.devices.pins import Pins, PinsFault
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text, fault_text
from fpvcar.sensors.reading import JUMP_M, JUMP_SHARE, NEVER_S, LastReading, RangeThread

log = logging.getLogger(__name__)
SAME = Phrase("tof_same", "stuck: the same reading {count} times")

AGAIN_S, AGAIN_MOST_S = 1.0, 8.0
"""Pause after a failure, doubled for each failure in a row, because the set-up of one sensor
delays the others."""
SILENT_S = 0.2
"""Time without a new sample after which a ranging sensor is set up again."""
DOWN_S, UP_S = 0.002, 0.003
"""Times of XSHUT: held low, and from high to the first answer (1.2 ms)."""
POLL_S = 0.001
SOONER_S, LATER_S = 0.00005, 0.001
"""Shift of the next poll: earlier after a poll that found a sample, later after one that did
not. Most polls then find a sample, soon after it is ready."""
WAIT_S = (0.02, 0.05)
SAME_MOST = 90
"""Number of identical samples in a row, light rates included, that no working sensor sends."""

Chip = vl53l0x.Vl53l0x | vl53l1x.Vl53l1x
MOVES = {vl53l0x.Vl53l0x: vl53l0x.readdress, vl53l1x.Vl53l1x: vl53l1x.readdress}
"""Driver -> function that gives a chip its address."""


class Tof:
    """Sensor as the thread handles it: `turn` does the due work."""

    def __init__(
        self,
        sensor: config.Tof,
        reading: LastReading,
        pins: Pins | None,
        open_device: Open,
        clock_s: Clock,
    ) -> None:
        """Create the sensor; `pins` is for its XSHUT, None if no pin is configured."""
        self.reading, self.due_s = reading, NEVER_S
        self.patience_s = 0.0
        """Time before `due_s` at which its turn may begin; its bus then waits."""
        self._config, self._pins, self._clock_s = sensor, pins, clock_s
        self._open_device = open_device
        self._device: I2cDevice | None = None
        self._chip: Chip | None = None
        self._name: str = sensor.chip
        self._news_s = NEVER_S
        self._again_s = AGAIN_S
        self._wait_s = vl53l0x.BUDGET_US / 1e6
        self._last_result = b""
        self._same, self._noise = 0, NoiseFilter(JUMP_M, JUMP_SHARE)
        self.power(False)

    def power(self, on: bool) -> None:
        """Switch XSHUT, if it is wired."""
        if self._config.power is not None and self._pins is not None:
            self._pins.write(self._config.power, on)

    def turn(self) -> None:
        """Set the chip up, or read its newest sample as soon as it is due. Raises PinsFault."""
        try:
            if self._chip is None:
                self._set_up()
            else:
                self._read(self._chip)
        except I2cError as fault:
            self.reading.state = fault_text(fault)
            self.close()
            self.due_s = self._clock_s() + self._again_s
            self._again_s = min(2.0 * self._again_s, AGAIN_MOST_S)

    def _set_up(self) -> None:
        time.sleep(DOWN_S)
        self.power(True)
        time.sleep(UP_S)
        default, reset = vl53l0x.DEFAULT_ADDRESS, self._config.power is not None
        if self._config.address != default and reset:
            device = self._open(default)
            MOVES[self._identify(device)](device, self._config.address)
            self._close_device()
        device = self._open(self._config.address)
        driver = self._identify(device)
        chip = driver(device, self._clock_s, time.sleep, reset)
        chip.start()
        self.patience_s = device.patience_s
        self._chip, self._news_s, self._same = chip, self._clock_s(), 0
        self.due_s = self._news_s + self._wait_s

    def _identify(self, device: I2cDevice) -> type[Chip]:
        """Return the driver of the chip that answers. Raises I2cError for an unknown one."""
        found = device.read(vl53l0x.Register.MODEL_ID, len(vl53l0x.IDENTITY))
        name = vl53l0x.NAME
        if found != vl53l0x.IDENTITY:
            wide = vl53l1x.identity(device)
            if wide not in vl53l1x.NAMES:
                raise I2cError(vl53l0x.TOF_IDENTITY(found=f"{found.hex()}, {wide.hex()}"))
            name = vl53l1x.NAMES[wide]
        if name != self._name:
            log.warning(
                "sensors.tof.%s is a %s, and the profile says %s: it is used as %s",
                self.reading.name,
                name,
                self._config.chip,
                name,
            )
            self._name = name
        return vl53l0x.Vl53l0x if name == vl53l0x.NAME else vl53l1x.Vl53l1x

    def _open(self, address: int) -> I2cDevice:
        self._device = self._open_device(self._config.bus, address)
        return self._device

    def _read(self, chip: Chip) -> None:
        after_s = max(0.0, self.due_s - self._clock_s())
        sample, now_s = chip.read(after_s), self._clock_s()
        if sample is None:
            if now_s - self._news_s > SILENT_S:
                raise I2cError(Text("tof_stopped", "stopped ranging"))
            self._wait_s = min(self._wait_s + LATER_S, WAIT_S[1])
            self.due_s = now_s + POLL_S
            return
        self._news_s, self._again_s = now_s, AGAIN_S
        self._wait_s = max(self._wait_s - SOONER_S, WAIT_S[0])
        self.due_s = now_s + self._wait_s
        self._take(sample, chip.result, now_s)

    def _take(self, sample: vl53l0x.Sample, result: bytes, now_s: float) -> None:
        ok = sample.status is vl53l0x.Status.OK
        self._same = self._same + 1 if ok and result == self._last_result else 0
        self._last_result = result
        if self._same >= SAME_MOST:
            raise I2cError(SAME(count=self._same))
        near = sample.status is vl53l0x.Status.NEAR
        range_m = vl53l0x.NEAREST_M if near else sample.range_m
        if self._noise.add(range_m):
            self.reading.noisy(self._noise.nearest)
        elif sample.status in vl53l0x.SILENT:
            self.reading.update(None, sample.status.value, now_s)
        else:
            self.reading.update(range_m, "ok", now_s)

    def _close_device(self) -> None:
        if self._device is not None:
            with contextlib.suppress(I2cError):
                self._device.close()
            self._device = None

    def close(self) -> None:
        """Release the daemon's handle and let the chip sleep. Raises PinsFault."""
        self._chip, self.patience_s = None, 0.0
        self._close_device()
        self.power(False)


class TofThread(RangeThread):
    """Thread for all time-of-flight sensors of a car."""

    def live(self) -> None:
        """Read the sensors in turn, each when due. Raises PinsFault."""
        sensors = self._profile.sensors.tof.values()
        with contextlib.ExitStack() as stack:
            pins: Pins | None = None
            if any(sensor.power is not None for sensor in sensors):
                opened = backends.open_pins(self._profile)
                pins = stack.enter_context(contextlib.closing(opened))
            opens = stack.enter_context(backends.open_i2c(self._profile))
            self._turns(pins, opens)

    def _turns(self, pins: Pins | None, opens: Open) -> None:
        sensors = self._profile.sensors.tof.values()
        # All are held down before any is woken, because they share an address.
        tofs = [
            Tof(sensor, reading, pins, opens, self._clock_s)
            for sensor, reading in zip(sensors, self._readings, strict=True)
        ]
        self.set_state("ok")
        try:
            while not self.ending:
                next_tof = min(tofs, key=attrgetter("due_s"))
                left_s = next_tof.due_s - self._clock_s()
                if left_s > next_tof.patience_s:
                    self.pause(left_s)
                else:
                    next_tof.turn()
                    self.rest()
        finally:
            # The daemon keeps our handles open even if the connection is lost.
            with contextlib.suppress(PinsFault):
                for tof in tofs:
                    tof.close()


THREAD = TofThread

"""TFmini-S sensors of a car, in one thread: those on I2C are asked, serial ones send by
themselves."""

import contextlib
import os
import termios
import tty

from fpvcar import config
from fpvcar.devices import backends
from fpvcar.devices.chips import tfmini
from fpvcar.devices.i2c import I2cDevice, I2cError, Open
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text, fault_text, os_reason
from fpvcar.sensors.reading import JUMP_M, JUMP_SHARE, NEVER_S, LastReading, RangeThread

EVERY_S = 0.02
AGAIN_S = 1.0
"""Pause after a failure."""
SILENT_S = 0.2
"""Time without a frame after which a serial sensor is opened again; it sends 100 a second."""
CHUNK = 4096
PORT = Phrase("tfmini_port", "{device}: {reason}")
SILENT = Text("tfmini_silent", "no frame: check its TX wire, and 115200 baud")


class Tfmini:
    """Sensor as the thread handles it: `turn` does the due work."""

    def __init__(
        self, sensor: config.Tfmini, reading: LastReading, opens: Open, clock_s: Clock
    ) -> None:
        self.due_s = NEVER_S
        self._config, self._reading, self._opens = sensor, reading, opens
        self._clock_s = clock_s
        self._device: I2cDevice | None = None
        self._port = -1
        self._frames, self._news_s = tfmini.Frames(), NEVER_S
        self._noise = NoiseFilter(JUMP_M, JUMP_SHARE)

    def turn(self) -> None:
        """Read the new measurements. Raises PinsFault."""
        now_s = self._clock_s()
        self.due_s = now_s + EVERY_S
        try:
            for measured in self._measured(now_s):
                if isinstance(measured, Text):
                    self._reading.update(None, measured, now_s)
                elif self._noise.add(measured):
                    self._reading.noisy(self._noise.nearest)
                else:
                    self._reading.update(measured, "ok", now_s)
        except I2cError as fault:
            self._reading.state = fault_text(fault)
            self.close()
            self.due_s = now_s + AGAIN_S

    def _measured(self, now_s: float) -> list[tfmini.Measured]:
        if not self._config.device:
            if self._device is None:
                self._device = self._opens(self._config.bus, self._config.address)
            return [tfmini.read(self._device)]
        try:
            return self._received(now_s)
        except (OSError, termios.error) as fault:
            reason = os_reason(fault) if isinstance(fault, OSError) else str(fault)
            raise I2cError(PORT(device=self._config.device, reason=reason)) from None

    def _received(self, now_s: float) -> list[tfmini.Measured]:
        """Return the measurements that have come in. Raises OSError, termios.error, I2cError."""
        if self._port < 0:
            flags = os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK
            self._port = os.open(self._config.device, flags)
            tty.setraw(self._port)
            settings = termios.tcgetattr(self._port)
            settings[4] = settings[5] = termios.B115200
            termios.tcsetattr(self._port, termios.TCSANOW, settings)
            self._frames, self._news_s = tfmini.Frames(), now_s
        try:
            data = os.read(self._port, CHUNK)
        except BlockingIOError:
            data = b""
        got = self._frames.add(data)
        if got:
            self._news_s = now_s
        elif now_s - self._news_s > SILENT_S:
            raise I2cError(SILENT)
        return got

    def close(self) -> None:
        """Release the bus or the port. Raises PinsFault."""
        if self._port >= 0:
            os.close(self._port)
            self._port = -1
        if self._device is not None:
            with contextlib.suppress(I2cError):
                self._device.close()
            self._device = None


class TfminiThread(RangeThread):
    """Thread for all TFmini-S of a car."""

    def live(self) -> None:
        """Read the sensors in turn, each when due. Raises PinsFault."""
        places = self._profile.sensors.tfmini.values()
        with contextlib.ExitStack() as stack:
            opens = stack.enter_context(backends.open_i2c(self._profile))
            sensors = [
                Tfmini(place, reading, opens, self._clock_s)
                for place, reading in zip(places, self._readings, strict=True)
            ]
            for sensor in sensors:
                stack.callback(sensor.close)
            self.set_state("ok")
            while not self.ending:
                next_one = min(sensors, key=lambda sensor: sensor.due_s)
                self.pause(max(0.0, next_one.due_s - self._clock_s()))
                self.rest()
                if not self.ending:
                    next_one.turn()


THREAD = TfminiThread

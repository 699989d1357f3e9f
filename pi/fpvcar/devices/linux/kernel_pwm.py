"""Pulses by the kernel's PWM, in hardware or by the overlay pwm-gpio: /sys/class/pwm.

    find the chip by its device -> export the channel -> duty 0, disabled -> period
    a duty above 0, after 0: written, then enabled; after that only the duty is written

A channel keeps its duty when its process dies, and the kernel does not release it as it
releases a GPIO: the guardian switches it off, then pins_off.py. It has no owner, either: any
program of the group gpio can write it, and may switch off a running channel. Of two inputs of
a bridge that should brake, one could remain on, and drive. So each duty checks that the
running channels are still enabled.

The order of the writes is the kernel's (drivers/pwm/core.c, pwm_apply): it refuses every value
before the first period, a duty above the period, and another polarity while enabled.
"""

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from fpvcar.devices.linux import pins_off
from fpvcar.devices.pins import PinsFault, PinsLost, PinsSilent

FIRST_HZ, SERVO_HZ = 1000, 50
SECOND_NS = 1_000_000_000
UDEV_S, AGAIN_S = 0.5, 0.01
"""Time for udev to give an exported channel, which is root's at first, to the group gpio."""
NEXT_STEPS = {
    errno.EACCES: "join the group gpio: sudo usermod -aG gpio USER, for the user who runs this",
    errno.EBUSY: "another driver uses it, such as a fan or audio: remove its line from config.txt",
    errno.EINVAL: "the device cannot make this frequency: choose another pwm_hz",
    errno.ENODEV: "the device is gone: sudo reboot",
}


@contextlib.contextmanager
def _explained(gpio: int, kind: type[PinsFault] = PinsLost) -> Iterator[None]:
    """Raise an OSError as another exception, with the next step."""
    try:
        yield
    except OSError as fault:
        step = NEXT_STEPS.get(fault.errno or 0, "")
        words = (f"PWM of GPIO {gpio}:", fault.filename, fault.strerror or str(fault))
        text = " ".join(filter(None, words))
        raise kind(f"{text}; {step}" if step else text) from None


class _Channel:
    """Channel of one pin: exported, off. The pulses of an ESC or a servo end with a whole one."""

    def __init__(self, gpio: int, device: str, neutral_us: int | None) -> None:
        chip, number = pins_off.find_pwm(gpio, device)
        self._folder, self._on_ns, self._neutral_us = f"{chip}/pwm{number}", 0, neutral_us
        if not os.path.isdir(self._folder):
            pins_off.put(f"{chip}/export", number)
        files = [self._writable(name) for name in ("enable", "period", "polarity", "duty_cycle")]
        *others, self._duty = files
        for file in others:
            os.close(file)
        self.off()
        if pins_off.read(f"{self._folder}/polarity") != "normal":
            pins_off.put(f"{self._folder}/polarity", "normal")
        self.set_frequency(FIRST_HZ)
        self._enable = os.open(f"{self._folder}/enable", os.O_RDONLY | os.O_CLOEXEC)

    def _writable(self, name: str) -> int:
        until_s = time.monotonic() + UDEV_S
        while True:
            try:
                return os.open(f"{self._folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
            except PermissionError:
                if time.monotonic() > until_s:
                    raise
                time.sleep(AGAIN_S)

    def set_frequency(self, hz: int) -> None:
        """Set the frequency; the output is low until the next duty."""
        if self._on_ns:
            self.set_ns(0)
        self.hz, self.period_ns = hz, SECOND_NS // hz
        pins_off.put(f"{self._folder}/period", self.period_ns)

    def set_ns(self, on_ns: int) -> None:
        """Set the time for which the pin is high in each period."""
        pins_off.store(self._duty, on_ns)
        if on_ns and not self._on_ns:
            pins_off.put(f"{self._folder}/enable", 1)
        self._on_ns = on_ns

    def check(self) -> None:
        """Raise OSError if the channel should run, but has been disabled."""
        if self._on_ns and os.pread(self._enable, 1, 0) != b"1":
            raise OSError(errno.ECANCELED, "another program has switched it off")

    def off(self) -> None:
        if self._neutral_us is not None:
            pins_off.end_pulses(self._folder, self._neutral_us)
        pins_off.disable(self._folder)
        self._on_ns = 0

    def close(self) -> None:
        os.close(self._duty)
        os.close(self._enable)


class KernelPwm:
    """PWM of some pins, by GPIO; off at first.

    Raises PinsLost before a pin is driven, or if another program has switched one off; PinsSilent
    if a PWM may run on: `wheels` then asks the helper, which can make the pin an input.
    """

    def __init__(
        self, gpios: Sequence[int], device: str, neutral_us: Mapping[int, int] | None = None
    ) -> None:
        """`device`: name of the PWM device, or "auto" for a Raspberry Pi's; `neutral_us`: neutral
        pulse of an ESC, 0 of a servo, by GPIO."""
        self._channels: dict[int, _Channel] = {}
        try:
            for gpio in gpios:
                with _explained(gpio):
                    self._channels[gpio] = _Channel(gpio, device, (neutral_us or {}).get(gpio))
        except PinsLost:
            self.close()
            raise

    def __contains__(self, gpio: int) -> bool:
        return gpio in self._channels

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Set the frequency of a pin, which is low until its next duty."""
        with _explained(gpio):
            self._channels[gpio].set_frequency(hz)

    def duty(self, gpio: int, duty: float) -> None:
        """Drive the pin high for `duty` (0 to 1) of the time, from the next period on."""
        channel = self._channels[gpio]
        if duty:
            self._check()
        with _explained(gpio, PinsSilent):
            channel.set_ns(round(duty * channel.period_ns))
        self._check()

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Send 50 pulses per second; 0 ends them with a whole one."""
        channel = self._channels[gpio]
        self._check()
        with _explained(gpio, PinsSilent):
            if pulse_us and channel.hz != SERVO_HZ:
                channel.set_frequency(SERVO_HZ)
            channel.set_ns(round(pulse_us * 1000.0))
        self._check()

    def _check(self) -> None:
        for gpio, channel in self._channels.items():
            with _explained(gpio):
                channel.check()

    def off(self) -> None:
        """Switch all pins off, also after a fault of one; raise the last fault."""
        with contextlib.ExitStack() as pins:
            for gpio, channel in reversed(self._channels.items()):  # called in their order
                pins.enter_context(_explained(gpio, PinsSilent))
                pins.callback(channel.off)

    def close(self) -> None:
        """Close the files; the pins keep their state."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

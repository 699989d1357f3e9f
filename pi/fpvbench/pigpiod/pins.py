"""Pins as pigpio handles them: modes, pulls, levels, PWM, servos, hardware PWM.

Methods take checked arguments (*_commands.py) and the time in microseconds. Each leaves its effect
in the chip file. As in pigpio.c, a pin is "used" for one thing at a time, and changing the use
switches the former one off.
"""

from dataclasses import dataclass
from enum import Enum, auto

from fpvbench import soc as chip
from fpvbench.pigpiod import pwm
from fpvbench.pigpiod.lines import USER_GPIO, Lines
from fpvbench.pigpiod.pwm import PulseTrain

ALT0, ALT5 = 4, 2
PWM_PINS = {12: (0, ALT0), 13: (1, ALT0), 18: (0, ALT5), 19: (1, ALT5)}
"""GPIO -> (channel, mode); the GPIO of bank 2 are never permitted."""
PWM_RANGE = 1_000_000
PLLD_HZ, OSCILLATOR_HZ = 500_000_000, 19_200_000
COUNT_NS = 4
"""Period of one count of the PWM hardware: PLLD / 2."""
CLOCK_PINS = {4: (0, ALT0), 5: (1, ALT0), 6: (2, ALT0), 20: (0, ALT5), 21: (1, ALT5)}
SHOWN_PERIOD_US = 10_000


class Use(Enum):
    """Last use of a pin by pigpio."""

    NONE = auto()
    WRITE = auto()
    PWM = auto()
    SERVO = auto()
    HW_CLOCK = auto()
    HW_PWM = auto()


@dataclass(slots=True)
class Info:
    """pigpio's record of a pin."""

    use: Use = Use.NONE
    width: int = 0
    range: int = pwm.DEFAULT_RANGE
    index: int = pwm.DEFAULT_INDEX


@dataclass(slots=True)
class Channel:
    """Settings of a channel of the PWM hardware."""

    hz: int = 0
    duty: int = 0
    real_range: int = 0
    running: bool = False


class Pins:
    """Setter of modes, pulls, levels and pulse trains of the chip's pins."""

    def __init__(self, soc: chip.Soc, lines: Lines, now_us: int) -> None:
        self._pins, self._lines = soc.pin, lines
        self.info = [Info() for _ in range(chip.PINS)]
        self.channels = (Channel(), Channel())
        self.clock_hz = [0, 0, 0]
        self._freeze(now_us)

    def _freeze(self, now_us: int) -> None:
        """Reset DMA, as a daemon does that starts or ends: pulse trains freeze.

        gpioTerminate and initDMAgo in pigpio.c touch no level. A pin keeps its level of that
        instant, possibly high; so does the output level stored for an input. The PWM hardware,
        behind an alternate function, continues.
        """
        for pin in self._pins:
            if pin.pwm and pin.mode in (chip.MODE_INPUT, chip.MODE_OUTPUT):
                on_us, period_us = pin.pwm >> 32, pin.pwm & 0xFFFFFFFF
                pin.out = int(now_us % period_us < on_us) if period_us else 0
                pin.pwm = 0

    def close(self, now_us: int) -> None:
        """Shut the daemon down in order: DMA is reset."""
        self._freeze(now_us)

    def mode(self, gpio: int) -> int:
        """Return the pin's mode from the register."""
        return int(self._pins[gpio].mode)

    def set_mode(self, gpio: int, mode: int, now_us: int) -> None:
        """Set the mode; a change of mode stops PWM and servo."""
        if mode != self._pins[gpio].mode:
            self._switch_off(gpio, now_us)
            self.info[gpio].use = Use.NONE
        self._pins[gpio].mode = mode
        self._lines.changed(gpio, now_us)

    def set_mode_register(self, gpio: int, mode: int, now_us: int) -> None:
        """Set only the mode, regardless of pigpio's use of the pin."""
        self._pins[gpio].mode = mode
        self._lines.changed(gpio, now_us)

    def set_level_register(self, gpio: int, level: int, now_us: int) -> None:
        """Set only the level: neither mode nor PWM changes."""
        if gpio not in self._lines.trains:
            self._pins[gpio].out = level
            self._lines.changed(gpio, now_us)

    def set_pull(self, gpio: int, pull: int, now_us: int) -> None:
        """Set the pull: 0 off, 1 down, 2 up."""
        self._pins[gpio].pull = pull
        self._lines.changed(gpio, now_us)

    def write(self, gpio: int, level: int, now_us: int) -> None:
        """Make the pin an output at a steady level; end PWM and servo."""
        if self.info[gpio].use is not Use.WRITE:
            self._switch_off(gpio, now_us, level)
            self.info[gpio].use = Use.WRITE
        self._output(gpio, level, now_us)

    def write_bits(self, bank: int, bits: int, level: int, now_us: int) -> None:
        """Set or clear level registers only: neither mode nor PWM changes."""
        for number in range(USER_GPIO):
            gpio = 32 * bank + number
            if bits >> number & 1 and gpio < chip.PINS:
                self.set_level_register(gpio, level, now_us)

    def trigger(self, gpio: int, length_us: int, level: int, now_us: int) -> None:
        """Write a pulse to the level register; only an output shows it."""
        if gpio not in self._lines.trains:
            self._pins[gpio].out = 1 - level
        if self._pins[gpio].mode == chip.MODE_OUTPUT:
            self._lines.pulse(gpio, now_us, length_us, level)

    def set_pwm(self, gpio: int, duty: int, now_us: int) -> None:
        """Start PWM by DMA, at the pin's range and frequency."""
        info = self._become(gpio, Use.PWM, duty, now_us)
        on_us = pwm.on_us(duty, info.range, info.index)
        self._train(gpio, on_us, pwm.period_us(info.index), now_us)
        info.width = duty

    def set_range(self, gpio: int, duty_range: int, now_us: int) -> None:
        """Set the range; a running duty is scaled along."""
        info = self.info[gpio]
        old_range, info.range = info.range, duty_range
        if info.use is Use.PWM and info.width:
            info.width = duty_range * info.width // old_range
            self._restart(gpio, now_us)

    def set_frequency(self, gpio: int, hz: int, now_us: int) -> int:
        """Set the nearest available frequency, and return it."""
        info = self.info[gpio]
        info.index = pwm.frequency_index(hz)
        if info.use is Use.PWM and info.width:
            self._restart(gpio, now_us)
        return pwm.FREQUENCIES[info.index]

    def set_servo(self, gpio: int, width_us: int, now_us: int) -> int:
        """Start servo pulses at 50 Hz.

        Return the end of the last pulse if the servo is switched off during a pulse, otherwise 0.
        """
        train = self._lines.trains.get(gpio)
        if not width_us and train and self.info[gpio].use is Use.SERVO:
            if train.level(now_us):
                return train.pulse_end_us(now_us)
        info = self._become(gpio, Use.SERVO, width_us, now_us)
        on_us = pwm.servo_on_us(width_us)
        self._train(gpio, on_us, pwm.SERVO_PERIOD_US, now_us)
        info.width = width_us
        return 0

    def set_hardware_pwm(self, gpio: int, hz: int, duty: int, now_us: int) -> None:
        """Start PWM by the hardware on one of PWM_PINS; 0 Hz stops it."""
        number, mode = PWM_PINS[gpio]
        channel, info = self.channels[number], self.info[gpio]
        if hz:
            channel.real_range = int(PLLD_HZ / (2.0 * hz) + 0.5)
            channel.hz = int(PLLD_HZ / (2.0 * channel.real_range) + 0.5)
            channel.duty, channel.running = duty, True
            if info.use is not Use.HW_PWM:
                self._switch_off(gpio, now_us)
                info.use = Use.HW_PWM
            self._pins[gpio].mode = mode
        elif info.use is Use.HW_PWM:
            info.use = Use.NONE
            channel.running = False
        for other_gpio, (its_number, its_mode) in PWM_PINS.items():
            if its_number == number and self._pins[other_gpio].mode == its_mode:
                self._hardware_train(other_gpio, channel, its_mode, now_us)

    def stop_hardware_pwm(self, now_us: int) -> None:
        """Stop PWM by the hardware, because waves take over its clock."""
        for gpio in PWM_PINS:
            if self.info[gpio].use is Use.HW_PWM:
                self.set_hardware_pwm(gpio, 0, 0, now_us)

    def set_clock(self, gpio: int, hz: int, now_us: int) -> None:
        """Start a clock on one of CLOCK_PINS; 0 Hz stops it. The clock records no edges."""
        number, mode = CLOCK_PINS[gpio]
        info = self.info[gpio]
        if hz:
            self.clock_hz[number] = _clock_hz(hz)
            self._switch_off(gpio, now_us)
            info.use = Use.HW_CLOCK
            self._pins[gpio].mode = mode
            self._lines.changed(gpio, now_us)
        elif info.use is Use.HW_CLOCK:
            info.use = Use.NONE

    def _become(self, gpio: int, use: Use, value: int, now_us: int) -> Info:
        info = self.info[gpio]
        if info.use is not use:
            self._switch_off(gpio, now_us)
            info.use = use
            if not value:
                self._output(gpio, 0, now_us)
        self._pins[gpio].mode = chip.MODE_OUTPUT
        return info

    def _restart(self, gpio: int, now_us: int) -> None:
        info = self.info[gpio]
        self._output_level(gpio, 0, now_us)
        on_us = pwm.on_us(info.width, info.range, info.index)
        self._train(gpio, on_us, pwm.period_us(info.index), now_us)

    def _switch_off(self, gpio: int, now_us: int, level: int = 0) -> None:
        self.info[gpio].width = 0
        if gpio in self._lines.trains:
            self._output_level(gpio, level, now_us)

    def _output(self, gpio: int, level: int, now_us: int) -> None:
        pin = self._pins[gpio]
        pin.out, pin.mode = level, chip.MODE_OUTPUT
        pin.pwm = 0
        self._lines.changed(gpio, now_us)

    def _output_level(self, gpio: int, level: int, now_us: int) -> None:
        self._lines.set_train(gpio, None, now_us)
        self._pins[gpio].out, self._pins[gpio].pwm = level, 0
        self._lines.changed(gpio, now_us)

    def _train(self, gpio: int, on_us: int, period_us: int, now_us: int) -> None:
        """Put a pulse train on the pin; an `on_us` of 0 stops it, and the pin goes low."""
        pin = self._pins[gpio]
        old = self._lines.trains.get(gpio)
        if not on_us:
            if old:
                self._output_level(gpio, 0, now_us)
            self._lines.changed(gpio, now_us)
            return
        on_ns, period_ns = on_us * 1000, period_us * 1000
        same = old is not None and (old.on_ns, old.period_ns) == (on_ns, period_ns)
        if not same:
            level = self._lines.level(gpio, now_us)
            train = PulseTrain.replacing(old, on_ns, period_ns, now_us, level, chip.MODE_OUTPUT)
            self._lines.set_train(gpio, train, now_us)
        if on_us < period_us:
            pin.pwm = on_us << 32 | period_us
        else:
            pin.out, pin.pwm = 1, 0
        if not same:  # otherwise an edge of the running train, not recorded yet, would seem late
            self._lines.changed(gpio, now_us)

    def _hardware_train(self, gpio: int, channel: Channel, mode: int, now_us: int) -> None:
        pin = self._pins[gpio]
        if not channel.running:
            self._lines.set_train(gpio, None, now_us)
            pin.pwm = 0
        else:
            on = channel.duty * channel.real_range // PWM_RANGE
            period_ns = channel.real_range * COUNT_NS
            train = PulseTrain.replacing(None, on * COUNT_NS, period_ns, now_us, 0, mode)
            self._lines.set_train(gpio, train, now_us)
            # Use whole periods, so that a short one keeps the precision of its duty.
            scale = max(1, -(-SHOWN_PERIOD_US * 1000 // period_ns))
            on_us = on * COUNT_NS * scale // 1000
            pin.pwm = on_us << 32 | period_ns * scale // 1000
        self._lines.changed(gpio, now_us)


def _clock_hz(hz: int) -> int:
    """Compute the frequency that a clock divider of 12.12 bits gives for `hz` (BCM2835, 6.3)."""
    rates = []
    for source in (OSCILLATOR_HZ, PLLD_HZ):
        divider = round(source * 4096 / hz)
        if 4096 <= divider < 4096 * 4096:
            rates.append(source * 4096 / divider)
    return int(min(rates, key=lambda real: abs(real - hz)) + 0.5)

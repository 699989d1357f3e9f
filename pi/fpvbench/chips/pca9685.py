"""PCA9685 (NXP data sheet rev. 4, section 7.3): sixteen PWM outputs set by registers.

The registers are in the chip's file, so the outputs survive the death of the pin
daemon. The outputs change at the STOP of a transaction (OCH = 0).
"""

from fpvbench import soc as chip
from fpvbench.chips.i2c import Device, Make, Nack

MODE1, LED0, LAST_LED, ALL_LED, PRE_SCALE, TEST = 0x00, 0x06, 0x45, 0xFA, 0xFE, 0xFF
ALLCALLADR = 0x05
RESTART, EXTCLK, AI, SLEEP, ALLCALL = 0x80, 0x40, 0x20, 0x10, 0x01
GENERAL_CALL, SOFT_RESET = 0x00, b"\x06"
NOBODY = -1
KNOWN = frozenset((*range(LAST_LED + 1), *range(ALL_LED, TEST + 1)))


class Pca9685:
    """Chip at one address. It acknowledges nothing while `soc.hat.broken`."""

    def __init__(self, soc: chip.Soc, address: int) -> None:
        self._hat, self.address, self._pointer = soc.hat, address, 0

    def write(self, data: bytes) -> None:
        """Write the control register, then registers. Raises Nack."""
        self._present()
        if not data:
            return
        self._pointer = data[0]
        for value in data[1:]:
            if self._pointer not in KNOWN:
                raise Nack(f"PCA9685 has no register {self._pointer:#04x}")
            self._set(self._pointer, value)
            self._advance()
        self._hat.show()

    def read(self, count: int) -> bytes:
        """Read registers from the pointer on; ALL_LED reads 0. Raises Nack."""
        self._present()
        data = bytearray()
        for _ in range(count):
            hidden = ALL_LED <= self._pointer < PRE_SCALE
            data.append(0 if hidden else self._hat.registers[self._pointer])
            self._advance()
        return bytes(data)

    def reset(self) -> None:
        """Reset as after power on. Raises Nack."""
        self._present()
        self._hat.reset()

    @property
    def all_call(self) -> int:
        """Address shared by all such chips; NOBODY while disabled."""
        registers = self._hat.registers
        return registers[ALLCALLADR] >> 1 if registers[MODE1] & ALLCALL else NOBODY

    def _present(self) -> None:
        if self._hat.broken:
            raise Nack("the wire is off")

    def _advance(self) -> None:
        if self._hat.registers[MODE1] & AI:
            wraps = self._pointer in (LAST_LED, PRE_SCALE)
            self._pointer = 0 if wraps else (self._pointer + 1) & 0xFF

    def _set(self, register: int, value: int) -> None:
        registers = self._hat.registers
        if register == MODE1:
            registers[MODE1] = self._mode1(registers[MODE1], value)
        elif register == PRE_SCALE:
            if registers[MODE1] & SLEEP:
                registers[PRE_SCALE] = max(value, 3)
        elif ALL_LED <= register < PRE_SCALE:
            for output in range(chip.HAT_OUTPUTS):
                registers[LED0 + 4 * output + register - ALL_LED] = value
        else:
            registers[register] = value

    def _mode1(self, former: int, value: int) -> int:
        """Update MODE1. EXTCLK is permanent. RESTART is set by falling asleep with
        running outputs, and cleared by writing 1 to it while awake."""
        restart = former & RESTART
        if value & SLEEP and not former & SLEEP and any(self._hat.steps):
            restart = RESTART
        elif value & RESTART and not value & SLEEP:
            restart = 0
        return (value & ~RESTART) | restart | (former & EXTCLK)


class AllCall:
    """Address to which every PCA9685 listens, 0x70 after a reset; write only."""

    def __init__(self, chip: Pca9685) -> None:
        self._chip = chip

    @property
    def address(self) -> int:
        return self._chip.all_call

    def write(self, data: bytes) -> None:
        """Write to the chip itself."""
        self._chip.write(data)

    def read(self, count: int) -> bytes:
        """Raise Nack: with several chips no answer would be defined."""
        raise Nack("ALLCALL is write only")


class GeneralCall:
    """General call address 0, on which the chip listens for its reset."""

    address = GENERAL_CALL

    def __init__(self, chip: Pca9685) -> None:
        self._chip = chip

    def write(self, data: bytes) -> None:
        """Reset the chip on SOFT_RESET."""
        if data != SOFT_RESET:
            raise Nack("no such general call")
        self._chip.reset()

    def read(self, count: int) -> bytes:
        """Raise Nack: a general call has no answer."""
        raise Nack("a general call is write only")


def device(address: int) -> Make:
    """Return the maker of BUS:ADDRESS:pca9685."""
    return lambda soc: motor_hat(soc, address)


def motor_hat(soc: chip.Soc, address: int) -> list[Device]:
    """Return the chip and its shared addresses."""
    pca9685 = Pca9685(soc, address)
    return [pca9685, AllCall(pca9685), GeneralCall(pca9685)]

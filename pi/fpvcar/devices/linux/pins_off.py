"""Releases pins past every daemon: inputs with pull-down, as after a reset.

    wheels, before it takes the pins --> RUNTIME_DIRECTORY/motor-pins: "17 27 24 23"
    ExecStopPost of two units, the helper: python3 -IS pins_off.py <-- motor-pins
        --> /dev/gpiomem: GPIO registers (BCM2835 ARM Peripherals, 6; BCM2711, 5)
        --> /dev/i2c-N: a PCA9685, named as "i2c-1:0x60", turns all its outputs off
        --> /sys/class/pwm: the kernel's PWM of a pin, named as "pwm-12:auto", is disabled
    of an ESC, "pwm-18:auto:1500" or "i2c-1:0x40:0:1500": neutral pulses of 1500 us (on channel 0)
        first, because silence does not stop it; then none, from the end of a pulse on
    of an ESC on pigpiod, "pwm-18:pigpiod@8888:1500": the same by the daemon, unless it is gone
    of a servo, "pwm-13:auto:0" or "i2c-1:0x40:0:0": none, from the end of a pulse on
    request to the helper --> connection (sd_listen_fds(3)): "812", the `wheels` that is mute

systemd may start the helper late. It leaves the pins alone if another `wheels` has requested
them from the kernel by then, as a record lock shows: that one would not notice that they have
become inputs. In doubt it switches them off.

An input ignores all writes by DMA. A pin with the kernel's PWM becomes an input only if its
PWM cannot be disabled: nothing but a reboot connects it to the PWM again. This is a separate
program that uses the standard library only, because it must start within milliseconds when
everything else hangs. /dev/gpiomem needs the group gpio, not root.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import sys
import time

TYPE_CHECKING = False  # typing takes a third of a second on a Pi Zero W
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    ChipStop = tuple[int, int] | tuple[int, int, int, int]
    PwmStop = tuple[int, str] | tuple[int, str, int]

DEVICE = "/dev/gpiomem"
COMPATIBLE = "/sys/firmware/devicetree/base/compatible"
PINS, HOLD = "/run/fpvcar/motor-pins", "motor-pins.lock"
REQUEST, REQUEST_MAX_B = 3, 32
"""Descriptor of a request (SD_LISTEN_FDS_START); other callers pass none."""
FLOCK = "hhqqi4x"
"""struct flock, with 64-bit offsets as in Python: l_type, l_whence, l_start, l_len, l_pid."""
NEWER = 75
"""Exit status if nothing was done; the unit then ends no process."""
REGISTERS_B, GPIO_MAX = 0x100, 53
I2C, CHIP = "/dev/i2c-{}", "i2c-"
I2C_SLAVE_FORCE = 0x0706  # <linux/i2c-dev.h>
ALL_LED_OFF = b"\xfd\x10"
"""PCA9685: ALL_LED_OFF_H, full off (data sheet, 7.3.4)."""
MODE1, LED0, PRE_SCALE = 0x00, 0x06, 0xFE
RESTART, AUTO_INCREMENT, SLEEP, FULL_OFF = 0x80, 0x20, 0x10, 0x10
CLOCK_MHZ = 25
PWM, PWM_CLASS, AUTO = "pwm-", "/sys/class/pwm", "auto"
DAEMON, SERVO, ANSWER_S = "pigpiod@", 8, 0.1
PWM_DEVICES = ("2020c000.pwm", "3f20c000.pwm", "fe20c000.pwm", "1f00098000.pwm")
"""PWM of the header: Zero and 1, 2 and 3, 4, 5. The number of its pwmchip is not stable
(raspberrypi/linux, issue 6818), and other chips belong to a fan or to audio."""
PWM_CHANNELS = {12: (0, 0), 13: (1, 1), 18: (0, 2), 19: (1, 3)}
"""GPIO -> its channel of a chip with two channels (BCM2835), or more (RP1)."""
GPFSEL = 0x00 // 4
"""Function select: three bits per pin, ten pins per register; 0 is an input."""
GPPUD, GPPUDCLK, GPPUD_DOWN = 0x94 // 4, 0x98 // 4, 1
"""BCM2835 to 2837: a pull, then the pins it applies to; 150 cycles between."""
PUP_PDN, PUP_PDN_DOWN = 0xE4 // 4, 2
"""BCM2711: two bits per pin, sixteen pins per register."""
SETTLE_S = 10e-6
"""150 cycles of the slowest core clock, 19.2 MHz, are 8 us."""
HOLD_S, CYCLE_S, TRIES = 0.1, 0.025, 3
"""Time of neutral pulses before an ESC gets none: more than three periods, after the one under
way; and a period, for the last pulse to end."""


def main(pins_file: str = PINS, request: bytes = b"") -> int:
    """Release the pins named in the file, unless another `wheels` than that of the request holds
    them; without a file no pin was ever taken."""
    newer = newer_holder(request, os.path.join(os.path.dirname(pins_file), HOLD))
    if newer:
        print(f"pins-off: nothing: a newer wheels, process {newer}, has the pins", file=sys.stderr)
        return NEWER
    try:
        with open(pins_file) as file:
            stops = parse(file.read())
    except FileNotFoundError:
        print(f"pins-off: {pins_file}: not there, so no pin was taken", file=sys.stderr)
        return 0
    except OSError as fault:
        group = "; it needs the group fpvcar" if fault.errno else ""  # else not parsed
        print(f"pins-off: {fault}{group}", file=sys.stderr)
        return 1
    return stop(*stops)


def newer_holder(request: bytes, lock: str) -> int:
    """Return the process that holds the pins, by its lock, if the request was for another one; 0
    without one, and in doubt. Only one `wheels` runs at a time, so the holder is the newer one."""
    try:
        asked = int(request)
        file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # would a lock for reading fail? Only `wheels` may open the file for writing.
            test = struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, test))
        finally:
            os.close(file)
    except (OSError, ValueError):
        return 0
    return 0 if kind == fcntl.F_UNLCK or pid == asked else max(0, pid)


def read_request() -> bytes:
    """Return the request that systemd has passed with its connection; b"" without one."""
    if "LISTEN_FDS" not in os.environ:
        return b""
    try:
        os.set_blocking(REQUEST, False)
        return os.read(REQUEST, REQUEST_MAX_B)
    except OSError:
        return b""


def stop(pins: Sequence[int], chips: Iterable[ChipStop], pwm: Iterable[PwmStop] = ()) -> int:
    """Switch everything off despite errors; return the exit status. `chips`: bus, address; `pwm`:
    GPIO, device; for an ESC or servo then its channel (of a chip) and neutral pulse in us or 0."""
    failed = 0
    pins = list(pins)
    for gpio, device, *esc in pwm:
        try:
            pwm_off(gpio, device, *esc)
            print(f"pins-off: off: PWM of GPIO {gpio}", file=sys.stderr)
        except OSError as fault:
            print(f"pins-off: PWM of GPIO {gpio}: {fault}", file=sys.stderr)
            if not device.startswith(DAEMON):  # a pin of the daemon becomes an input anyway
                failed = 1
                pins.append(gpio)
                print(
                    f"pins-off: GPIO {gpio} has no PWM until the next sudo reboot", file=sys.stderr
                )
    for bus, address, *esc in chips:
        try:
            hat_off(bus, address, *esc)
            print(f"pins-off: off: PCA9685 at {address:#x}", file=sys.stderr)
        except OSError as fault:
            failed = 1
            print(f"pins-off: PCA9685 at {address:#x}: {fault}", file=sys.stderr)
    try:
        let_go(pins)
        print("pins-off: inputs now: GPIO", *pins, file=sys.stderr)
    except OSError as fault:
        failed = 1
        print(f"pins-off: {fault}", file=sys.stderr)
    return failed


def hat_off(bus: int, address: int, channel: int = 0, neutral_us: int | None = None) -> None:
    """Write ALL_LED_OFF_H, even if the address is in use; an ESC on `channel` gets neutral first.
    Raises OSError."""
    device = os.open(I2C.format(bus), os.O_RDWR)
    try:
        fcntl.ioctl(device, I2C_SLAVE_FORCE, address)
        if neutral_us:
            hat_neutral(
                lambda register: os.write(device, bytes((register,))) and os.read(device, 1)[0],
                lambda *data: os.write(device, bytes(data)),
                channel,
                neutral_us,
            )
        os.write(device, ALL_LED_OFF)
        if neutral_us is not None:
            time.sleep(CYCLE_S)  # before OE, which would cut the last pulse
    finally:
        os.close(device)


def hat_neutral(
    read: Callable[[int], int], write: Callable[..., object], channel: int, neutral_us: float
) -> None:
    """Hold an output of a PCA9685 at neutral for HOLD_S, if it has pulses. Raises the exceptions
    of `read` (a register) and `write` (a register and its data)."""
    mode, led = read(MODE1), LED0 + 4 * channel
    if mode & SLEEP or read(led + 3) & FULL_OFF:
        return
    write(MODE1, (mode | AUTO_INCREMENT) & ~RESTART)
    steps = round(neutral_us * CLOCK_MHZ / (read(PRE_SCALE) + 1))
    write(led, 0, 0, steps & 0xFF, steps >> 8)
    time.sleep(HOLD_S)


def find_pwm(gpio: int, device: str, chips: str = "") -> tuple[str, int]:
    """Return folder and channel of the PWM behind a pin. `device`: the name of its device in
    /sys/devices, or AUTO; `chips`: the folder of all, by default PWM_CLASS. Raises OSError with
    the devices found."""
    names, chips = [], chips or PWM_CLASS
    for chip in sorted(os.listdir(chips)) if os.path.isdir(chips) else ():
        folder = f"{chips}/{chip}"
        name = os.path.basename(os.path.realpath(f"{folder}/device"))
        if _soft_pwm(folder) == gpio:
            return folder, 0
        if gpio in PWM_CHANNELS and name in (PWM_DEVICES if device == AUTO else (device,)):
            few, many = PWM_CHANNELS[gpio]
            return folder, few if int(read(f"{folder}/npwm")) <= 2 else many
        names.append(name)
    expected = "a Raspberry Pi's" if device == AUTO else device
    raise OSError(
        f"no PWM device ({expected}) in {chips} (found: "
        f"{', '.join(names) or 'none'}); sudo fpvcar setup writes its dtoverlay to config.txt, "
        "then sudo reboot"
    )


def _soft_pwm(folder: str) -> int | None:
    """Return the GPIO of a chip of the overlay pwm-gpio, which has one channel. Its property
    "gpios" has three big-endian words: phandle, GPIO, flags."""
    node = f"{folder}/device/of_node"
    try:
        with open(f"{node}/compatible", "rb") as kind, open(f"{node}/gpios", "rb") as gpios:
            words = gpios.read()
            return int.from_bytes(words[4:8], "big") if kind.read() == b"pwm-gpio\0" else None
    except OSError:
        return None


def pwm_off(gpio: int, device: str, neutral_us: int | None = None) -> None:
    """Switch the PWM of a pin off, of an ESC or a servo (0) by `end_pulses`. Raises OSError."""
    if device.startswith(DAEMON):
        return daemon_off(gpio, int(device.removeprefix(DAEMON)), neutral_us or 0)
    chip, channel = find_pwm(gpio, device)
    folder = f"{chip}/pwm{channel}"
    if os.path.isdir(folder):  # otherwise not exported: no program has switched it on
        if neutral_us is not None:
            end_pulses(folder, neutral_us)
        disable(folder)


def daemon_off(gpio: int, port: int, neutral_us: int) -> None:
    """Let pigpiod hold an ESC at neutral for HOLD_S, and end its pulses. Commands and answers
    have 16 bytes (pigpio, command.h: cmdCmd_t). Raises OSError, soon if the daemon hangs."""
    import socket  # takes milliseconds, and few cars need it

    with socket.create_connection(("127.0.0.1", port), ANSWER_S) as daemon:
        for pulse_us, wait_s in ((neutral_us, HOLD_S), (0, CYCLE_S)):
            daemon.sendall(struct.pack("<4I", SERVO, gpio, pulse_us, 0))
            daemon.recv(16)
            time.sleep(wait_s)


def end_pulses(folder: str, neutral_us: int) -> None:
    """Hold neutral, unless it is 0, for HOLD_S; then end the pulses, if any, with a whole one."""
    try:
        if read(f"{folder}/enable") == "1" and read(f"{folder}/duty_cycle") != "0":
            if neutral_us:
                put(f"{folder}/duty_cycle", neutral_us * 1000)
                time.sleep(HOLD_S)
            put(f"{folder}/duty_cycle", 0)
            time.sleep(CYCLE_S)
    except OSError:
        return  # `disable` tries again, and reports it


def disable(folder: str) -> None:
    """Set the duty of an exported PWM channel to zero, and disable it; either is enough. Raises
    OSError."""
    faults = []
    for name in ("duty_cycle", "enable"):
        try:
            put(f"{folder}/{name}", 0)
        except OSError as fault:
            # the kernel refuses any write before the first period
            if fault.errno != errno.EINVAL or read(f"{folder}/period") != "0":
                faults.append(fault)
    if len(faults) == 2:
        raise OSError(f"NOT off: {faults[1]}")


def put(path: str, value: object) -> None:
    """Write one value to a file of the kernel. Raises OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        store(file, value)
    finally:
        os.close(file)


def store(file: int, value: object) -> None:
    """Write one value to an open file of the kernel. Raises OSError."""
    os.pwrite(file, str(value).encode(), 0)


def read(path: str) -> str:
    """Return the line of a file of the kernel. Raises OSError."""
    with open(path) as file:
        return file.readline().strip()


def parse_pwm(text: str) -> PwmStop:
    """Parse "pwm-12:auto", or "pwm-18:auto:1500" of an ESC. Raises OSError."""
    gpio, *words = text.removeprefix(PWM).split(":")
    if gpio.isdecimal() and all(words):
        if len(words) == 1:
            return int(gpio), words[0]
        if len(words) == 2 and words[1].isdecimal():
            return int(gpio), words[0], int(words[1])
    raise OSError(f"motor-pins: {text!r}: expected a form like pwm-12:auto")


def parse_chip(text: str) -> ChipStop:
    """Parse "i2c-1:0x60", or "i2c-1:0x40:0:1500" of an ESC. Raises OSError."""
    try:
        bus, address, *esc = text.removeprefix(CHIP).split(":")
        if not esc:
            return int(bus), int(address, 16)
        channel, neutral_us = map(int, esc)
        return int(bus), int(address, 16), channel, neutral_us
    except ValueError:
        raise OSError(f"motor-pins: {text!r}: expected a form like i2c-1:0x60") from None


def parse(text: str) -> tuple[list[int], list[ChipStop], list[PwmStop]]:
    """Parse the file's pins, chips and PWM. Raises OSError."""
    words = text.split()
    chips = [parse_chip(word) for word in words if word.startswith(CHIP)]
    pwm = [parse_pwm(word) for word in words if word.startswith(PWM)]
    words = [word for word in words if not word.startswith((CHIP, PWM))]
    pins = [int(word) if word.isdecimal() else -1 for word in words]
    if not all(0 <= gpio <= GPIO_MAX for gpio in pins):
        raise OSError(f"motor-pins: {text!r}: expected numbers from 0 to {GPIO_MAX}")
    return pins, chips, pwm


def let_go(pins: Sequence[int]) -> None:
    """Turn pins to inputs. Raises OSError with advice if a pin may still be driven."""
    if not pins:
        return
    new_pulls = _has_new_pulls()
    try:
        with open(DEVICE, "r+b", buffering=0) as file:
            memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
    except FileNotFoundError:
        raise OSError(f"{DEVICE}: not there; is this a Raspberry Pi?") from None
    except PermissionError:
        raise OSError(f"{DEVICE}: not allowed; join the group gpio") from None
    with memory, memoryview(memory) as view, view[:REGISTERS_B] as block:
        with block.cast("I") as registers:  # one 32-bit access each
            write(registers, pins, new_pulls)


def write(registers: memoryview[int], pins: Sequence[int], has_new_pulls: bool) -> None:
    """Write inputs first, then pulls, to the 32-bit registers of the GPIO block.
    `has_new_pulls`: use the BCM2711's pull registers. Raises OSError."""
    for _ in range(TRIES):  # a daemon may write a register between our read and our write
        for gpio in pins:
            registers[GPFSEL + gpio // 10] &= ~(7 << gpio % 10 * 3)
        still_driven = [g for g in pins if registers[GPFSEL + g // 10] >> g % 10 * 3 & 7]
        if not still_driven:
            break
    if has_new_pulls:
        for gpio in pins:
            index, shift = PUP_PDN + gpio // 16, gpio % 16 * 2
            registers[index] = registers[index] & ~(3 << shift) | PUP_PDN_DOWN << shift
    else:
        _pull_down_by_clock(registers, pins)
    if still_driven:
        raise OSError(f"GPIO {still_driven}: no input after {TRIES} tries; stop its daemon")


def _pull_down_by_clock(registers: memoryview[int], pins: Sequence[int]) -> None:
    registers[GPPUD] = GPPUD_DOWN
    time.sleep(SETTLE_S)
    for bank in (0, 1):
        registers[GPPUDCLK + bank] = sum(1 << gpio % 32 for gpio in set(pins) if gpio // 32 == bank)
    time.sleep(SETTLE_S)
    registers[GPPUD] = registers[GPPUDCLK] = registers[GPPUDCLK + 1] = 0


def _has_new_pulls() -> bool:
    """Return True for a BCM2711. Raises OSError for a chip with other registers."""
    try:
        with open(COMPATIBLE, "rb") as file:
            names = file.read().decode("ascii", "replace").split("\0")
    except OSError:
        names = []
    chips = {name.removeprefix("brcm,") for name in names if name.startswith("brcm,")}
    if "bcm2711" in chips:
        return True
    if chips & {"bcm2835", "bcm2836", "bcm2837"}:
        return False
    raise OSError(
        f"{', '.join(sorted(chips)) or 'no chip of a Raspberry Pi'}: supported are bcm2835 to "
        "bcm2837 and bcm2711 (Pi Zero to 4); on others the kernel releases the pins (strict_gpiod)"
    )


if __name__ == "__main__":
    directory = os.environ.get("RUNTIME_DIRECTORY")
    pins_file = os.path.join(directory, "motor-pins") if directory else PINS
    sys.exit(main(pins_file, read_request()))

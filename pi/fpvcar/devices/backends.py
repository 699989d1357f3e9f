"""Selection of back ends: the one module that names the drivers of pins, buses, cameras and Linux.

Each is imported when it is opened, so a machine needs only the libraries of its
profile. Callers use the protocols beside this file.
"""

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from fpvcar.config import Camera, Profile
from fpvcar.config.motors import ChipStop, PwmStop
from fpvcar.config.pwm import MOST_HZ, over_peak
from fpvcar.config.servos import channels
from fpvcar.devices.capture import EncodedSource, FrameSource, WebcamSource
from fpvcar.devices.computer import Computer
from fpvcar.devices.i2c import I2cError, Open
from fpvcar.devices.motors.bridge import MotorBoard
from fpvcar.devices.pins import DeadMan, Edges, IoPins, Pins, PinsLost, PinsRefused
from fpvcar.runtime.texts import SAYS

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BackEnd = Literal["pigpio", "linux"]
REAL_DEVICES = re.compile(r"/dev/(gpio|i2c|spidev)|/sys/(class|devices|bus)/.*pwm")
ANSWER_S = 0.5
"""Time limit for an answer while nothing moves: only a thread waits, not the car."""
MOTORS_ANSWER_S = 0.1
"""Time limit for an answer of the motors' pins."""
PROOF_S = 0.15
"""Time for pigpiod to confirm that the motors are off. Their process has then been mute
for 0.25 s, and a helper needs up to 0.5 s of a 1 GHz core, of 1 s in all."""


def refuse_real_devices() -> None:
    """Let each later open of this computer's pins, PWM and I2C buses fail, in this process and its
    forks. An emulated car may run on a Pi, whose pins belong to a real one."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.fsdecode(arguments[0])
        if REAL_DEVICES.match(path):
            raise OSError(errno.ENXIO, "an emulated car uses no device of this computer", path)

    sys.addaudithook(refuse)


def load(profile: Profile) -> None:
    """Import the back ends of a profile before any thread starts.

    Memory allocated by a thread stays in that thread's arena: `run` would grow by 1 MB.
    """
    if pins_backend(profile) == "pigpio":
        from fpvcar.devices.pigpio import edges, i2c, pins, tripped  # noqa: F401
    else:
        from fpvcar.devices.linux import gpio  # noqa: F401
    if i2c_backend(profile) == "linux":
        from fpvcar.devices.linux import i2c as linux_i2c  # noqa: F401


def pins_backend(profile: Profile) -> BackEnd:
    """Return the back end of the pins: from the profile, or the one that suits this machine. The
    result never varies, because nothing may change over while a motor runs."""
    if profile.pins.backend != "auto":
        return profile.pins.backend
    # a daemon elsewhere: this machine's own pins do not matter
    if profile.pins.host not in LOOPBACK:
        return "pigpio"
    from fpvcar.devices.linux import gpio

    return "linux" if gpio.suits() else "pigpio"


def most_hz(backend: BackEnd) -> int | None:
    """The fastest PWM of a back end's pins; None where the profile's bounds are it."""
    return None if backend == "pigpio" else MOST_HZ


def backend_of(profile: Profile, root: Path) -> BackEnd:
    """Return the pins back end of a board or an offline card, judged by its files."""
    if profile.pins.backend != "auto":
        return profile.pins.backend
    if profile.pins.host not in LOOPBACK:
        return "pigpio"
    from fpvcar.devices.linux import gpio

    return "pigpio" if gpio.daemon_below(root) and not gpio.rp1_board(root) else "linux"


def daemon_reason(profile: Profile, root: Path) -> str:
    """Return the reason why pigpiod cannot drive the pins of this board as the profile demands;
    "" if it can, or need not. The bench emulates its own pigpiod."""
    from fpvcar.devices.linux import gpio

    model, here = gpio.rp1_board(root), profile.pins.host in LOOPBACK
    if (
        not (model and here and profile.pins.backend == "pigpio")
        or profile.camera.source == "bench"
    ):
        return ""
    return (
        f'pins.backend = "pigpio": pigpiod does not support the {model}; expected "linux", or no '
        "such line"
    )


def i2c_backend(profile: Profile) -> BackEnd:
    """Return the back end of the I2C buses: from the profile, or that of the pins."""
    if profile.i2c.backend != "auto":
        return profile.i2c.backend
    return pins_backend(profile)


def open_pins(profile: Profile, answer_s: float = ANSWER_S) -> IoPins:
    """Open a connection to the pins. Raises PinsFault."""
    if pins_backend(profile) == "linux":
        from fpvcar.devices.linux.gpio import LinuxPins

        return LinuxPins("fpvcar run")
    from fpvcar.devices.pigpio.pins import PigpioPins

    return PigpioPins(profile.pins.host, profile.pins.port, answer_s)


def open_edges(profile: Profile, pins: IoPins, gpios: Sequence[int]) -> Edges:
    """Read the edges of pins made inputs by `listen` or `hear` of `pins`. Raises PinsFault."""
    if pins_backend(profile) == "linux":
        from fpvcar.devices.linux.gpio import LinuxPins

        assert isinstance(pins, LinuxPins)
        return pins.edges(gpios)
    from fpvcar.devices.pigpio.edges import PigpioEdges

    return PigpioEdges(profile.pins.host, profile.pins.port, gpios, ANSWER_S)


@contextlib.contextmanager
def open_i2c(profile: Profile, answer_s: float = ANSWER_S) -> Iterator[Open]:
    """Open devices on the I2C buses: the kernel's /dev/i2c-N, or pigpiod's over a
    connection that ends with the context. Raises PinsFault."""
    if i2c_backend(profile) == "linux":
        from fpvcar.devices.linux.i2c import SmbusI2c

        yield SmbusI2c
        return
    from fpvcar.devices.pigpio.i2c import PigpioI2c
    from fpvcar.devices.pigpio.pins import PigpioPins

    pins = PigpioPins(profile.pins.host, profile.pins.port, answer_s)
    with contextlib.closing(pins):
        yield partial(PigpioI2c, pins)


def open_depth(device: str, width: int, height: int, fps: int) -> FrameSource:
    """Open the depth camera at a path, or the first one found. Raises CaptureError."""
    from fpvcar.devices.linux import v4l2

    path = Path(device) if device else v4l2.find(v4l2.Z16)
    return v4l2.Capture(path, v4l2.Z16, width, height, fps)


def open_webcam(
    device: str, formats: Sequence[str], width: int, height: int, fps: float
) -> WebcamSource:
    """Open the webcam at a path, or the first on USB, in the best of these formats.
    Raises CaptureError."""
    from fpvcar.devices.linux import v4l2, webcam

    path = Path(device) if device else v4l2.find_webcam(formats)
    format = v4l2.choose(path, formats, width, height, fps)
    return webcam.Webcam(path, format, width, height, fps)


def open_pi_camera(config: Camera, software: bool) -> EncodedSource:
    """Open the Pi's own camera; `software`: libx264 encodes. Raises CaptureError."""
    from fpvcar.devices.linux.picamera import PiCamera

    return PiCamera(config, software)


def open_computer(disk: Path, root: Path = Path("/")) -> Computer:
    """Open the health sources of this computer; `disk` is a path on the card whose
    free space counts."""
    from fpvcar.devices.linux.computer import Machine

    return Machine(root, disk)


def wifi_power_save(interface: str) -> bool | None:
    """Return whether the Wi-Fi has power saving on; None if the driver does not report it."""
    from fpvcar.devices.linux.computer import power_save

    return power_save(interface)


def pin_holders(gpios: Sequence[int]) -> dict[int, str]:
    """Return the kernel's name of each pin's holder; "" for a free pin. Raises PinsLost."""
    from fpvcar.devices.linux import gpiochip

    with contextlib.closing(gpiochip.find()) as chip:
        return {gpio: chip.holder(gpio) for gpio in gpios}


def loose_reason(root: Path) -> str:
    """Return the reason why the kernel would keep a dead process's pin driven; "" if
    it releases it."""
    from fpvcar.devices.linux import strict

    return strict.loose_reason(root)


def pwm_reason(profile: Profile, root: Path) -> str:
    """Return the reason why a pin of the profile has no PWM of the kernel; "" if all have one."""
    from fpvcar.devices.linux import pins_off

    chips = str(root / pins_off.PWM_CLASS.lstrip("/"))
    for gpio in profile.pins.pwm:
        try:
            pins_off.find_pwm(gpio, profile.pins.pwm_device, chips)
        except OSError as fault:
            return f"GPIO {gpio}: {fault}"
    return ""


def open_motors(profile: Profile, runtime: Path) -> MotorBoard:
    """Open the motors, switched off, with their dead man armed. State files live in
    `runtime`. Raises PinsFault, also if a bridge cannot carry the pulses of a slow PWM."""
    backend = pins_backend(profile)
    for overload in over_peak(profile, most_hz(backend)):
        raise PinsRefused(str(overload))
    if profile.motors.on_hat:
        from fpvcar.devices.motors.hat_board import HatBoard

        return HatBoard(
            profile,
            lambda: open_i2c(profile, MOTORS_ANSWER_S),
            lambda: open_pins(profile, MOTORS_ANSWER_S),
            runtime / "guardian.lock",
        )
    if backend == "linux":
        from fpvcar.devices.linux.gpio import LinuxBoard

        return LinuxBoard(profile, runtime / "guardian.lock")
    from fpvcar.devices.pigpio.dead_man import PigpioBoard

    return PigpioBoard(profile)


def load_servos(profile: Profile) -> None:
    """Import the modules of `open_servos` before its thread starts: the motors' guardian is forked
    beside that thread, and could inherit a half imported module."""
    from fpvcar.devices.chips import pca9685  # noqa: F401

    if pins_backend(profile) == "linux":
        from fpvcar.devices.linux import gpio, i2c  # noqa: F401
    else:
        from fpvcar.devices.pigpio import i2c as pigpio_i2c  # noqa: F401


@contextlib.contextmanager
def open_servos(profile: Profile) -> Iterator[tuple[Pins | None, Pins | None]]:
    """Open the GPIO and the PCA9685 of servos that do not steer, each None without a servo there,
    over connections of their own that end with the context. Raises PinsFault."""
    gpios = [servo.signal for servo in profile.servos.values() if servo.signal is not None]
    with contextlib.ExitStack() as opened:
        pins = None
        if gpios:
            pins = opened.enter_context(contextlib.closing(_servo_pins(profile, gpios)))
        if not any(channels(profile)):
            yield pins, None
            return
        from fpvcar.devices.chips.pca9685 import Pca9685

        opens, chip = opened.enter_context(open_i2c(profile)), profile.pca9685
        try:
            device = opened.enter_context(contextlib.closing(opens(chip.bus, chip.address)))
        except I2cError as fault:
            raise PinsLost(SAYS(place="PCA9685", reason=fault)) from None
        # a board of motors on the same chip has initialised it
        fresh, clock = not profile.motors.on_hat, profile.pca9685.clock
        board = Pca9685(device, profile.hat_hz(), fresh, clock)
        yield pins, board


def _servo_pins(profile: Profile, gpios: Sequence[int]) -> IoPins:
    if pins_backend(profile) == "pigpio":
        return open_pins(profile)
    from fpvcar.devices.linux.gpio import LinuxPins
    from fpvcar.devices.linux.kernel_pwm import KernelPwm

    pwm = [gpio for gpio in gpios if gpio in profile.pins.pwm]
    whole = dict.fromkeys(pwm, 0)
    return LinuxPins("fpvcar wheels", KernelPwm(pwm, profile.pins.pwm_device, whole))


def open_dead_man(profile: Profile) -> DeadMan:
    """Open a second dead man of the motors' kind, without pins, to prove that this
    machine supports it. Raises PinsFault."""
    if profile.motors.on_hat or pins_backend(profile) == "linux":
        from fpvcar.devices.guardian import Guardian

        return Guardian(lambda: lambda: None)
    from fpvcar.devices.pigpio.dead_man import PROOF, ScriptDeadMan
    from fpvcar.devices.pigpio.pins import PigpioPins

    return ScriptDeadMan(PigpioPins(profile.pins.host, profile.pins.port), (), PROOF)


def answering(bus: int, addresses: Sequence[int]) -> list[int]:
    """Return the addresses that answer on a bus of the kernel; [] if the bus does not exist."""
    from fpvcar.devices.linux.i2c import SmbusI2c

    answered = []
    for address in addresses:
        try:
            with contextlib.closing(SmbusI2c(bus, address)) as device:
                device.read(0, 1)
        except I2cError:
            continue
        answered.append(address)
    return answered


def pca9685s(bus: int, addresses: Sequence[int]) -> list[int]:
    """Return the addresses at which a PCA9685 answers on a bus of the kernel."""
    from fpvcar.devices.chips.pca9685 import is_pca9685
    from fpvcar.devices.linux.i2c import SmbusI2c

    found = []
    for address in addresses:
        with contextlib.suppress(I2cError), contextlib.closing(SmbusI2c(bus, address)) as device:
            if is_pca9685(device):
                found.append(address)
    return found


def pin_release(profile: Profile) -> Callable[[], str]:
    """Return a function that turns the motor pins to inputs past a pin daemon of this computer. It
    returns an error text or "". It does nothing for a HAT, another computer, or the kernel's pins,
    which are released when their file is closed."""
    # imported now: after a failure there is no time for it
    from fpvcar.devices.linux import pins_off

    def free() -> str:
        try:
            pins_off.let_go(profile.motor_pins())
        except OSError as fault:
            return str(fault)
        return ""

    daemons = not profile.motors.on_hat and pins_backend(profile) == "pigpio"
    return free if daemons and profile.pins.host in LOOPBACK else lambda: ""


def stops(profile: Profile) -> tuple[Sequence[int], Sequence[ChipStop], Sequence[PwmStop]]:
    """Return everything that a stop past all processes needs: pins, chips and PWM, and the pulses
    that pigpiod gives to an ESC."""
    from fpvcar.devices.linux.pins_off import DAEMON

    pins, chips, pwm = profile.stops()
    daemons = pins_backend(profile) == "pigpio" and profile.pins.host in LOOPBACK
    if daemons and (esc := profile.motors.esc) and not profile.motors.on_hat:
        pwm = (*pwm, (esc.output, f"{DAEMON}{profile.pins.port}", round(esc.neutral_us)))
    return pins, chips, pwm


async def motors_proven_off(profile: Profile) -> bool:
    """Return True if the motors' dead man has certainly switched them off.

    Only pigpiod's can be asked from another process; for others this returns False.
    """
    if profile.motors.on_hat or pins_backend(profile) == "linux":
        return False
    from fpvcar.devices.pigpio import tripped

    return await tripped.motors_off(profile.pins.host, profile.pins.port, PROOF_S)


def switch_off(gpios: Sequence[int], chips: Sequence[ChipStop], pwm: Sequence[PwmStop]) -> int:
    """Stop motors past every daemon: pins to inputs with pull-down, all outputs of each PCA9685
    and the kernel's PWM off. Prints each action; returns the exit status."""
    from fpvcar.devices.linux import pins_off

    return pins_off.stop(gpios, chips, pwm)


def published_pins(text: str) -> tuple[list[int], list[ChipStop], list[PwmStop]]:
    """Parse the GPIOs, PCA9685 and PWM of a motor-pins file written by `wheels`. Raises
    OSError."""
    from fpvcar.devices.linux import pins_off

    return pins_off.parse(text)

"""Conversion of a profile to the parts of the car and their wires. Pure: no I/O."""

from collections.abc import Callable, Iterator
from typing import Any

from fpvcar.config import (
    AimServo,
    AnyMotor,
    DcMotor,
    EscMotor,
    HatEsc,
    HatServo,
    L298n,
    MotorHat,
    Mx1508,
    Profile,
    Servo,
    Tfmini,
    Tof,
    Ultrasound,
)
from fpvcar.config.checks import L298N_LEAST_V, L298N_MOST_V, LOWEST_DOWN
from fpvcar.config.pwm import MOST_HZ, OverPeak, over_peak
from fpvcar.config.servos import channels
from fpvcar.wiring import esc, plan, rig
from fpvcar.wiring.header import USED_BY_THE_IMAGE
from fpvcar.wiring.plan import PI_3V3, PI_5V, PI_GND, End, Part, Plan, Terminal, Use

BATTERY, FUSE, SWITCH, METER = "Battery", "Fuse", "Switch", "INA219"
REGULATOR, SERVO_REGULATOR = "5 V regulator", "5 V for servo"
MX1508, L298N, PCA9685 = "MX1508", "L298N", "PCA9685"
BATTERY_MINUS = End(BATTERY, "-")
RXD = 15
"""GPIO of /dev/serial0 that receives."""
PULL_DOWN = (
    "Pull-down: 10 kΩ from this terminal to ground. The motors stay off while the Pi "
    "starts, and if the wire comes off the Pi."
)
PULLED_UP = (
    f"GPIO 0 to {LOWEST_DOWN - 1} are pulled up until the program runs: the motor "
    f"turns without this pull-down. GPIO {LOWEST_DOWN} to 27 are better."
)
CAPACITOR = (
    "470 µF, at least 16 V, between + and - of the driver, close to it, with its stripe "
    "at -. It supports the voltage when motors start."
)
DIVIDER = (
    "Divider: 1 kΩ from Echo to the GPIO, 2 kΩ from the GPIO to ground. Echo is 5 V, "
    "and a GPIO tolerates 3.3 V."
)
ONE_TERMINAL = "One terminal with two wires: it connects the ground of the Pi to the battery's."
SOCKET = "The regulator's USB plug goes into the Pi's power socket."
JUMPERS = "Remove the jumpers from ENA and ENB."
LOGIC_JUMPER = (
    f"Leave the 5V jumper on: the module makes its own 5 V from {L298N_LEAST_V:g} to "
    f"{L298N_MOST_V:g} V. The 5V terminal stays open."
)
ON_HEADER = "A HAT sits on all 40 pins and uses only these."
OE_UP = (
    "1 kΩ from OE to 3.3 V: the outputs are off until the program runs. Measure first, with the "
    "power off, from OE to ground: below 3 kΩ the level is too low, so leave OE open."
)
IN_LEAD = "In the + lead of the battery, before the driver and the regulator."


def plan_of(profile: Profile, title: str) -> Plan:
    """Return the plan of a car or a rig."""
    if profile.rig.loops:
        sensors = (*_meter(profile), *_ranges(profile), *_buttons(profile))
        on_rig = (*rig.parts_of(profile, sensors), *_cameras(profile))
        return Plan(title, (rig.SUPPLY,), on_rig, ())
    motors = dict(zip(_names(profile), profile.motors.pair, strict=True))
    parts = (
        *_drivers(profile, motors),
        *_meter(profile),
        *_ranges(profile),
        *_buttons(profile),
        *_lights(profile),
        *_cameras(profile),
    )
    supply = (*_supply(profile, motors), *_other_buses(profile))
    return Plan(title, supply, parts, tuple(_actuators(profile, motors)))


def _names(profile: Profile) -> tuple[str, str]:
    sides, uses = ("Left motor", "Right motor"), ("Drive motor", "Steering")
    return sides if profile.motors.differential else uses


def _gpio(name: str, number: int, use: Use, via: str = "", notes: tuple[str, ...] = ()) -> Terminal:
    """Return a terminal on a GPIO, with a note if Raspberry Pi OS may use that pin."""
    other = USED_BY_THE_IMAGE.get(number)
    warning = () if other is None else (f"Raspberry Pi OS may also use this pin: {other}.",)
    return Terminal(name, plan.gpio(number), use, via, (*notes, *warning))


def _input(name: str, number: int, notes: tuple[str, ...] = ()) -> Terminal:
    """Return a terminal that moves the car while it is high: with a pull-down."""
    return _gpio(name, number, plan.MOTOR, "pull-down", (PULL_DOWN, *notes))


def _ground(name: str = "GND", notes: tuple[str, ...] = ()) -> Terminal:
    return Terminal(name, PI_GND, plan.GROUND, "", notes)


def _source(profile: Profile) -> End:
    """Return the source of the battery's +, after fuse, switch and meter."""
    metered = profile.battery.address is not None
    return End(METER, "VIN-") if metered else End(SWITCH, "out")


def _power(profile: Profile, plus: str, minus: str) -> tuple[Terminal, Terminal]:
    """Return the two supply terminals of a part on the battery."""
    return (Terminal(plus, _source(profile), plan.BATTERY), Terminal(minus, BATTERY_MINUS))


def _driver_power(
    profile: Profile, plus: str, minus: str, notes: tuple[str, ...] = ()
) -> tuple[Terminal, Terminal]:
    """Return the supply of a driver that also joins the ground of the Pi to the battery's."""
    supply, ground = _power(profile, plus, minus)
    return supply, ground._replace(notes=(ONE_TERMINAL, *notes), also=PI_GND)


def _capacitor(profile: Profile, driver: str) -> Part:
    """Return the capacitor at the supply of a driver."""
    plus, minus = _power(profile, "+", "- (stripe)")
    return Part(f"470 µF, {driver}", (plus._replace(notes=(CAPACITOR,)), minus))


def _supply(profile: Profile, motors: dict[str, AnyMotor]) -> Iterator[Part]:
    """Yield the parts from the battery to the regulators."""
    yield Part(BATTERY, (Terminal("+"), Terminal("-")))
    yield Part(FUSE, (Terminal("in", End(BATTERY, "+"), plan.BATTERY), Terminal("out")))
    yield Part(SWITCH, (Terminal("in", End(FUSE, "out"), plan.BATTERY), Terminal("out")))
    yield Part(REGULATOR, (*_power(profile, "IN +", "IN -"), Terminal("USB")))
    plug = Terminal("USB", End(REGULATOR, "USB"), plan.FIVE_V, "", (SOCKET,))
    yield Part("Pi's power socket", (plug,))
    servo = profile.servos or any(isinstance(motor, Servo | HatServo) for motor in motors.values())
    if servo and profile.motors.esc is None:
        outputs = Terminal("OUT +"), Terminal("OUT -")
        yield Part(SERVO_REGULATOR, (*_power(profile, "IN +", "IN -"), *outputs))


def _meter(profile: Profile) -> Iterator[Part]:
    battery = profile.battery
    if battery.address is not None:
        lead = Terminal("VIN+", End(SWITCH, "out"), plan.BATTERY, "", (IN_LEAD,))
        if profile.rig.loops:
            lead = Terminal("VIN+", PI_5V, plan.FIVE_V)
        terminals = (*_i2c(battery.bus), lead, Terminal("VIN-"))
        yield Part(METER, terminals, f"{battery.address:#x}")


def _i2c(bus: int, supply: str = "VCC") -> tuple[Terminal, ...]:
    """Return the supply and bus terminals of a chip."""
    if bus == 1:
        data, clock = plan.gpio(2), plan.gpio(3)
    else:
        data, clock = (End(f"I2C bus {bus}", wire) for wire in ("SDA", "SCL"))
    return (
        Terminal(supply, PI_3V3, plan.THREE_V),
        _ground(),
        Terminal("SDA", data, plan.SDA),
        Terminal("SCL", clock, plan.SCL),
    )


def _other_buses(profile: Profile) -> Iterator[Part]:
    """Yield the buses with pins that an overlay chooses."""
    used = {sensor.i2c_place[0] for _, _, sensor in profile.sensors.every() if sensor.i2c_place}
    if profile.battery.address is not None:
        used.add(profile.battery.bus)
    if profile.motors.on_hat or any(channels(profile)):
        used.add(profile.pca9685.bus)
    for bus in sorted(used - {1}):
        yield Part(f"I2C bus {bus}", (Terminal("SDA"), Terminal("SCL")), "by overlay")


def _drivers(profile: Profile, motors: dict[str, AnyMotor]) -> Iterator[Part]:
    """Yield each board that switches motors, once."""
    halves = [motor for motor in motors.values() if isinstance(motor, Mx1508)]
    if halves:
        yield Part(MX1508, (*_mx1508(halves), *_driver_power(profile, "+", "-")))
        yield _capacitor(profile, MX1508)
    enabled = [motor for motor in motors.values() if isinstance(motor, L298n)]
    if enabled:
        power = _driver_power(profile, "12V", "GND", (LOGIC_JUMPER,))
        yield Part(L298N, (*_l298n(enabled), *power, Terminal("5V")))
        yield _capacitor(profile, L298N)
    if (motor := profile.motors.esc) is not None:
        channel = End(PCA9685, f"channel {motor.output}")
        yield esc.esc_part(motor, channel, _power(profile, "battery +", "battery -"))
    if profile.motors.on_hat or any(channels(profile)):
        yield _hat(profile, list(motors.values()))
        if any(isinstance(motor, MotorHat) for motor in motors.values()):
            yield _capacitor(profile, PCA9685)


def _mx1508(halves: list[Mx1508]) -> Iterator[Terminal]:
    pins = [number for half in halves for number in (half.forward, half.reverse)]
    for place in range(4):
        if place < len(pins):
            notes = (PULLED_UP,) if pins[place] < LOWEST_DOWN else ()
            yield _input(f"IN{place + 1}", pins[place], notes)
        else:
            yield Terminal(f"IN{place + 1}")
    for letter in "AB":
        yield from (Terminal(f"MOTOR-{letter} {lead}") for lead in (1, 2))


def _l298n(halves: list[L298n]) -> Iterator[Terminal]:
    terminals = {name: Terminal(name) for name in ("ENA", "IN1", "IN2", "IN3", "IN4", "ENB")}
    for number, half in enumerate(halves):
        enable = f"EN{'AB'[number]}"
        terminals[enable] = _input(enable, half.enable, (JUMPERS,))
        for place, pin in enumerate((half.forward, half.reverse), 2 * number + 1):
            terminals[f"IN{place}"] = _input(f"IN{place}", pin)
    yield from terminals.values()
    yield from (Terminal(f"OUT{output}") for output in range(1, 5))


def _hat(profile: Profile, motors: list[AnyMotor]) -> Part:
    """Return a motor HAT or a servo board, with the terminals of its motors."""
    chip = profile.pca9685
    dc = [motor for motor in motors if isinstance(motor, MotorHat)]
    first, *bus = _i2c(chip.bus)
    terminals = [first._replace(notes=(ON_HEADER,) if dc else ()), *bus]
    if chip.oe is not None:
        terminals.append(_gpio("OE", chip.oe, plan.MOTOR, "pull-up", (OE_UP,)))
    elif not dc:
        terminals.append(Terminal("OE"))
    if dc:
        terminals += _power(profile, "motor +", "motor -")
        terminals += [Terminal(f"M{port} {lead}") for port in range(1, 5) for lead in (1, 2)]
    outputs = [motor.channel for motor in motors if isinstance(motor, HatEsc | HatServo)]
    outputs += [channel for channel, _ in channels(profile)]
    if outputs:
        *feed, own = esc.servo_feed(profile.motors, SERVO_REGULATOR)
        terminals += [
            Terminal("V+", feed[0], plan.FIVE_V, "", (own,)),
            Terminal("V-", feed[1]),
            *(Terminal(f"channel {channel}") for channel in outputs),
            Terminal("others"),
        ]
    kind = "motor HAT" if dc else "servo board"
    return Part(PCA9685, tuple(terminals), f"{kind}, {chip.address:#x}")


def _actuators(profile: Profile, motors: dict[str, AnyMotor]) -> Iterator[Part]:
    """Yield motors and servos; each lead begins at its driver, or at a resistor behind that."""
    mx1508, l298n = iter("AB"), iter((1, 3))
    most_hz = None if profile.pins.backend == "pigpio" else MOST_HZ
    needed = {over.place: over for over in over_peak(profile, most_hz, bare=True)}
    for key, (name, motor) in zip(profile.motors.names, motors.items(), strict=True):
        match motor:
            case Mx1508():
                letter = next(mx1508)
                starts = [End(MX1508, f"MOTOR-{letter} {lead}") for lead in (1, 2)]
            case L298n():
                output = next(l298n)
                starts = [End(L298N, f"OUT{output + lead}") for lead in (0, 1)]
            case MotorHat():
                starts = [End(PCA9685, f"M{motor.port} {lead}") for lead in (1, 2)]
            case EscMotor():
                yield esc.motor_part(name)
                continue
            case _:
                yield Part(f"{name} servo", _servo(profile, motor))
                continue
        over = needed.get(f"motors.{key}")
        if over is not None:
            ohm = max(motor.resistor_ohm, over.resistor_ohm)
            resistor, watts = f"{ohm:g} Ω, {key}", over.resistor_w(ohm)
            lead = Terminal("1", starts[0], plan.BATTERY, "", (_resistor_note(over),))
            yield Part(resistor, (lead, Terminal("2")), f"≥ {watts} W")
            starts[0] = End(resistor, "2")
        leads = (
            Terminal(str(lead), start, plan.BATTERY, "", (_motor_note(motor),))
            for lead, start in enumerate(starts, 1)
        )
        yield Part(name, tuple(leads), "100 nF across")
    for name, servo in profile.servos.items():
        yield Part(f"{name[:1].upper()}{name[1:]} servo", _servo(profile, servo))


def _resistor_note(over: OverPeak) -> str:
    return (
        f"Resistor in one lead of the motor: without it a stalled motor draws {over.stall_a:.1f} A "
        f"in each pulse, and the {MX1508} bears {over.peak_a:g} A. It gets hot. The car drives "
        "after you confirm it: sudo fpvcar setup."
    )


def _motor_note(motor: DcMotor) -> str:
    return (
        f"A motor of {motor.max_volts:g} V, 100 nF across its terminals. If it turns the "
        "wrong way, swap its leads or set invert = true."
    )


def _servo(profile: Profile, motor: AnyMotor | AimServo) -> tuple[Terminal, ...]:
    signal = motor.signal if isinstance(motor, Servo | AimServo) else None
    if signal is not None:
        plus, minus, own = esc.servo_feed(profile.motors, SERVO_REGULATOR)
        return (
            _input("signal", signal),
            Terminal("+", plus, plan.FIVE_V, "", (own,)),
            Terminal("-", minus, notes=(ONE_TERMINAL,), also=PI_GND),
        )
    assert isinstance(motor, HatServo | AimServo)
    channel = End(PCA9685, f"channel {motor.channel}")
    return (Terminal("plug", channel, plan.MOTOR),)


def _tof(name: str, tof: Tof) -> Part:
    shut = Terminal("XSHUT")
    if tof.power is not None:
        shut = _gpio("XSHUT", tof.power, plan.OUTPUT)
    terminals = (*_i2c(tof.bus, "VIN"), shut, Terminal("GPIO1"))
    return Part(f"{tof.chip} {name}", terminals, f"{tof.address:#x}")


def _ultrasound(name: str, sensor: Ultrasound) -> Part:
    return Part(
        f"HC-SR04 {name}",
        (
            Terminal("VCC", PI_5V, plan.FIVE_V),
            _gpio("Trig", sensor.trigger, plan.OUTPUT),
            _gpio("Echo", sensor.echo, plan.INPUT, "divider", (DIVIDER,)),
            _ground(),
        ),
    )


def _tfmini(name: str, sensor: Tfmini) -> Part:
    supply = Terminal("5V", PI_5V, plan.FIVE_V)
    if sensor.device:
        lines = (_ground(), _gpio("TX", RXD, plan.INPUT), Terminal("RX"))
        return Part(f"TFmini-S {name}", (supply, *lines), sensor.device)
    _, *bus = _i2c(sensor.bus)
    return Part(f"TFmini-S {name}", (supply, *bus), f"{sensor.address:#x}")


RANGE_PARTS: dict[str, Callable[[str, Any], Part]] = {
    "tof": _tof,
    "ultrasound": _ultrasound,
    "tfmini": _tfmini,
}
"""Field of `config.Sensors` -> the terminals of its sensors."""


def _ranges(profile: Profile) -> Iterator[Part]:
    for kind, name, sensor in profile.sensors.every():
        yield RANGE_PARTS[kind](name, sensor)


def led_ohms(colour: str) -> str:
    """Return the resistor of an LED at 3.3 V. White and blue ones need 3 V themselves."""
    return "100 Ω" if colour in ("white", "blue", "purple") else "330 Ω"


def _buttons(profile: Profile) -> Iterator[Part]:
    for name, button in profile.buttons.items():
        terminals: list[Terminal] = []
        if button.button is not None:
            contact = _gpio("contact 1", button.button, plan.INPUT)
            terminals += [contact, _ground("contact 2")]
        if button.led is not None:
            ohms = led_ohms(button.colour)
            terminals += [_gpio("LED +", button.led, plan.LED, ohms), _ground("LED -")]
        if terminals:
            yield Part(f"Button {name}", tuple(terminals))


def _lights(profile: Profile) -> Iterator[Part]:
    lights = profile.lights
    lists = {
        "head": lights.head,
        "rear": lights.rear,
        "left": lights.indicator_left,
        "right": lights.indicator_right,
        "recorder": lights.recorder,
        "code": lights.code,
    }
    for name, leds in lists.items():
        for i, led in enumerate(leds, 1):
            ohms = led_ohms("white" if name == "head" else "red")
            legs = (_gpio("long leg", led, plan.LED, ohms), _ground("short leg"))
            yield Part(f"LED {name} {i}" if len(leds) > 1 else f"LED {name}", legs)


def _cameras(profile: Profile) -> Iterator[Part]:
    source = profile.camera.source
    if not profile.camera.command and source in ("picamera2", "rpicam"):
        yield Part("Camera", about="ribbon, CAM socket")
    elif not profile.camera.command and source == "v4l2":
        yield Part("Webcam", about="USB of the Pi")
    if profile.depth.source == "v4l2":
        yield Part("Depth camera", about="USB, powered hub")

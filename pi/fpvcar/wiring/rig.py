"""Wires of a rig: pin-to-pin loops, sensors, a load; no motor, no battery."""

from collections.abc import Iterable, Iterator

from fpvcar.config import Profile
from fpvcar.wiring import plan
from fpvcar.wiring.plan import PI_3V3, PI_GND, End, Part, Terminal, Use

METER = "INA219"
NO_DRIVER = (
    "1 kΩ in each of these wires protects two pins that both drive. A rig has no driver "
    "and no motor."
)
LOAD = "The load gets warm: 5 V on 15 Ω is 0.33 A and 1.7 W. Use a 5 W resistor."
SUPPLY = Part("Pi's supply", about="its own")
LED = "10 cm in front of the lens, in a darkened room."
SCREEN = (
    "On the screen where the LED appears, shaded. A photodiode or phototransistor with a "
    "comparator: a photoresistor is too slow. Never 5 V: DO has the voltage of VCC."
)


def parts_of(profile: Profile, sensors: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of a rig: its loops, the car's sensors, contact, LED, load."""
    yield Part("1 kΩ each", tuple(_loops(profile)), "pin to pin")
    yield from sensors
    rig = profile.rig
    if rig.led is not None:
        yield Part(
            "LED",
            (_pin("long leg", rig.led, plan.LED, "330 Ω", (LED,)), Terminal("short leg", PI_GND)),
        )
    if rig.photodiode is not None:
        yield Part(
            "Light sensor",
            (
                Terminal("VCC", PI_3V3, plan.THREE_V, "", (SCREEN,)),
                _pin("DO", rig.photodiode, plan.INPUT),
                Terminal("GND", PI_GND),
            ),
        )
    if profile.battery.address is not None:
        yield Part(
            "Load 15 Ω",
            (Terminal("1", End(METER, "VIN-"), plan.FIVE_V, "", (LOAD,)), Terminal("2", PI_GND)),
        )


def _loops(profile: Profile) -> Iterator[Terminal]:
    """Yield both ends of each resistor."""
    rig = profile.rig
    motors = zip(profile.motor_pins(), rig.loops, strict=True)
    pairs = [(plan.MOTOR, source, sink) for source, sink in motors]
    for servo in list(profile.servos.values())[:1]:
        if servo.signal is not None and rig.servo is not None:
            pairs.append((plan.MOTOR, servo.signal, rig.servo))
    if rig.out is not None and rig.back is not None:
        pairs.append((plan.OUTPUT, rig.out, rig.back))
    for sensor in list(profile.sensors.ultrasound.values())[:1]:
        if rig.echo is not None:
            pairs.append((plan.INPUT, sensor.echo, rig.echo))
    contacts = [button.button for button in profile.buttons.values() if button.button is not None]
    if rig.contact is not None and contacts:
        pairs.append((plan.OUTPUT, rig.contact, contacts[0]))
    for number, (use, source, sink) in enumerate(pairs, 1):
        yield _pin(f"R{number} a", source, use, "", (NO_DRIVER,))
        yield _pin(f"R{number} b", sink, plan.INPUT)


def _pin(name: str, number: int, use: Use, via: str = "", notes: tuple[str, ...] = ()) -> Terminal:
    return Terminal(name, plan.gpio(number), use, via, notes)

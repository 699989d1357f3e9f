"""Wires of a rig: pin-to-pin loops, sensors, a load; no motor, no battery."""

from collections.abc import Iterable, Iterator

from fpvcar.config import Profile
from fpvcar.wiring import plan
from fpvcar.wiring.plan import PI_GND, End, Part, Terminal, Use

METER = "INA219"
NO_DRIVER = (
    "1 kΩ in each of these wires: two pins that both drive do no harm. A rig has no "
    "driver and no motor."
)
LOAD = "The load gets warm: 5 V on 15 Ω is 0.33 A and 1.7 W. Take a resistor of 5 W."
SUPPLY = Part("Pi's supply", about="its own")
LED = "A hand's breadth before the lens, and the room dark enough that it counts."


def parts_of(profile: Profile, sensors: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of a rig: its loops, the car's sensors, contact, LED, load."""
    yield Part("1 kΩ each", tuple(_loops(profile)), "pin to pin")
    yield from sensors
    rig = profile.rig
    if rig.led is not None:
        yield Part(
            "LED",
            (
                _pin("long leg", rig.led, plan.LIGHTS, "330 Ω", (LED,)),
                Terminal("short leg", PI_GND),
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
    pairs = [(plan.MOVES, gives, hears) for gives, hears in motors]
    if rig.out is not None and rig.back is not None:
        pairs.append((plan.ASKS, rig.out, rig.back))
    for sensor in list(profile.sensors.ultrasound.values())[:1]:
        if rig.echo is not None:
            pairs.append((plan.HEARS, sensor.echo, rig.echo))
    contacts = [one.button for one in profile.buttons.values() if one.button is not None]
    if rig.contact is not None and contacts:
        pairs.append((plan.ASKS, rig.contact, contacts[0]))
    for number, (use, gives, hears) in enumerate(pairs, 1):
        yield _pin(f"R{number} a", gives, use, "", (NO_DRIVER,))
        yield _pin(f"R{number} b", hears, plan.HEARS)


def _pin(name: str, number: int, use: Use, via: str = "", notes: tuple[str, ...] = ()) -> Terminal:
    return Terminal(name, plan.gpio(number), use, via, notes)

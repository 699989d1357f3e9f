"""Wires of a profile: each GPIO once, no battery wire on the Pi, one colour per use."""

import re
from collections import Counter, defaultdict

import pytest

from fpvcar.config import checks
from fpvcar.runtime import paths
from fpvcar.wiring import parts, tables
from fpvcar.wiring.header import USED_BY_THE_IMAGE
from fpvcar.wiring.plan import PI, USES, End, Plan, Wire, gpio
from tests.unit.wiring.cars import CARS

COLOURS = {
    "forward": "green",
    "reverse": "green",
    "enable": "green",
    "signal": "green",
    "oe": "green",
    "trigger": "violet",
    "power": "violet",
    "echo": "grey",
    "button": "grey",
    "led": "white",
    "loops": "grey",
    "back": "grey",
    "servo": "grey",
    "photodiode": "grey",
    "out": "violet",
    "contact": "violet",
}
"""Last word of a profile's key -> the colour of its wire; lights are white."""
TERMINALS = {
    "MX1508": "+, -, IN1, IN2, IN3, IN4, MOTOR-A 1, MOTOR-A 2, MOTOR-B 1, MOTOR-B 2",
    "L298N": "12V, GND, 5V, ENA, IN1, IN2, IN3, IN4, ENB, OUT1, OUT2, OUT3, OUT4",
    "VL53L0X": "VIN, GND, SDA, SCL, XSHUT, GPIO1",
    "HC-SR04": "VCC, Trig, Echo, GND",
    "INA219": "VCC, GND, SDA, SCL, VIN+, VIN-",
    "Battery": "+, -",
    "Fuse": "in, out",
    "Switch": "in, out",
    "5 V regulator": "IN +, IN -, USB",
    "5 V for servo": "IN +, IN -, OUT +, OUT -",
    "470 µF": "+, - (stripe)",
    "Drive motor": "1, 2",
    "Left motor": "1, 2",
    "Right motor": "1, 2",
    "LED": "long leg, short leg",
}
"""Begin of a part's name -> the terminals that the module really has."""


def plan(name: str) -> Plan:
    return parts.plan_of(CARS[name], name)


def ends(name: str) -> dict[str, Wire]:
    """Return the wires by their end, such as "MX1508 IN1"."""
    return {str(wire.end): wire for wire in plan(name).wires()}


def ways(name: str, part: str) -> dict[str, str]:
    """Return the start of each terminal's wire or wires, for one part."""
    wires = [wire for wire in plan(name).wires() if wire.end.part == part]
    starts: dict[str, list[str]] = defaultdict(list)
    for wire in wires:
        starts[wire.end.terminal].append(str(wire.start))
    return {terminal: " and ".join(names) for terminal, names in starts.items()}


@pytest.mark.parametrize("name", CARS)
def test_profile_gpio_has_one_wire_in_its_colour(name: str) -> None:
    """Some pins of a rig have two wires: to a part, and to the pin that measures or drives it."""
    wires = list(plan(name).wires())
    for number, key in checks.used_pins(CARS[name], ""):
        here = [one for one in wires if one.start == gpio(number)]
        assert len(here) == 1 or name == "rig" and len(here) == 2, key
        colour = COLOURS.get(key.rpartition(".")[2], "white")
        assert {wire.use.colour for wire in here} == {colour}, key


@pytest.mark.parametrize("name", CARS)
def test_unused_pins_have_wires_only_for_supply_and_bus(name: str) -> None:
    used = {str(gpio(number)) for number, _ in checks.used_pins(CARS[name], "")}
    rails = {
        "pin 1 (3V3)": "orange",
        "pin 2 (5V)": "red",
        "pin 6 (GND)": "black",
        "pin 3 (GPIO 2)": "blue",
        "pin 5 (GPIO 3)": "yellow",
    }
    for wire in plan(name).wires():
        if wire.start.part == PI and str(wire.start) not in used:
            assert rails[str(wire.start)] == wire.use.colour


def test_car_of_the_guide_leaves_pins_of_the_image_free() -> None:
    """SPI would short a button; console and sound would switch LEDs and motors."""
    profile = CARS["mx1508-sensors"]
    assert {number for number, _ in checks.used_pins(profile, "")}.isdisjoint(USED_BY_THE_IMAGE)
    driven = [number for number, key in checks.used_pins(profile, "") if not key.endswith("button")]
    assert min(driven) >= checks.LOWEST_DOWN, "pulled down while the Pi starts"
    assert profile.guard.mode == "limit" and profile.gate.blind == "stop"


def test_car_of_the_guide_has_its_parts_in_the_shopping_list() -> None:
    text = (paths.HARDWARE / "parts.md").read_text("utf-8")
    section = text.partition("\n## The car of the guide\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (.+) \| (\d)(?: each)? \|$", section, re.M))
    named = " ".join(rows)
    car = plan("mx1508-sensors")
    in_line = Counter(wire.via for wire in car.wires())
    assert int(rows["10 kΩ: pull-downs of the driver's inputs"]) == in_line["pull-down"]
    assert int(rows["330 Ω: LEDs"]) == in_line["330 Ω"] and in_line["divider"] == 1
    motors = sum("100 nF" in part.about for part in car.all())
    assert int(rows["100 nF: motors"]) == int(rows["2.2 Ω, 5 W: leads of the motors"]) == motors
    for part in car.parts:
        word = part.name.removeprefix("Button ").split()[0].rstrip(",")
        assert word in named or word in ("Camera", "470"), part.name


@pytest.mark.parametrize("name", CARS)
def test_wire_ends_are_unique_terminals(name: str) -> None:
    made = Counter(
        End(part.name, terminal.name) for part in plan(name).all() for terminal in part.terminals
    )
    assert set(made.values()) == {1}
    assert set(Counter(part.name for part in plan(name).all()).values()) == {1}
    for wire in plan(name).wires():
        assert wire.start.part == PI or wire.start in made
        assert wire.end in made and wire.start != wire.end


@pytest.mark.parametrize("name", CARS)
def test_battery_wires_never_reach_a_pin(name: str) -> None:
    for wire in plan(name).wires():
        assert wire.end.part != PI
        if wire.use.colour == "brown":
            assert wire.start.part != PI
    if name != "rig":
        assert ways(name, "5 V regulator")["IN -"] == "Battery -"


def test_rig_resistors_join_the_pins_of_the_profile() -> None:
    profile = CARS["rig"]
    rig, sonar = profile.rig, profile.sensors.ultrasound["rear"]
    wanted = [
        *zip(profile.motor_pins(), rig.loops, strict=True),
        (profile.servos["pan"].signal, rig.servo),
        (rig.out, rig.back),
        (sonar.echo, rig.echo),
        (rig.contact, profile.buttons["red"].button),
    ]
    found = ways("rig", "1 kΩ each")
    assert len(found) == 2 * len(wanted)
    for number, pins in enumerate(wanted, 1):
        for end, pin in zip("ab", pins, strict=True):
            assert pin is not None and found[f"R{number} {end}"] == str(gpio(pin))


def test_rig_has_no_motor_no_driver_and_no_battery() -> None:
    names = {part.name for part in plan("rig").all()}
    assert not names & {"MX1508", "Battery", "Drive motor", "Steering"}
    assert ways("rig", "INA219")["VIN+"] == "pin 2 (5V)"
    assert ways("rig", "Load 15 Ω") == {"1": "INA219 VIN-", "2": "pin 6 (GND)"}


@pytest.mark.parametrize("name", CARS)
def test_module_has_all_its_terminals(name: str) -> None:
    for part in plan(name).all():
        names = [terminal.name for terminal in part.terminals]
        for module, terminals in TERMINALS.items():
            if part.name.startswith(module) and part.about != "servo board, 0x40":
                assert sorted(names) == sorted(terminals.split(", ")), part.name


def test_unused_half_of_a_driver_stays_open() -> None:
    assert {"IN3", "IN4", "MOTOR-B 1"}.isdisjoint(ways("mx1508-servo", "MX1508"))
    assert "5V" not in ways("l298n", "L298N")


@pytest.mark.parametrize("name", CARS)
def test_contact_and_led_have_both_legs(name: str) -> None:
    wires = list(plan(name).wires())
    for number, key in checks.used_pins(CARS[name], ""):
        if COLOURS.get(key.rpartition(".")[2], "white") == "white" or ".button" in key:
            legs = [wire.end for wire in wires if wire.start == gpio(number)]
            part = ways(name, legs[-1].part)
            assert list(part.values()).count("pin 6 (GND)") * 2 == len(part), key


def test_wire_colours_have_one_use_each() -> None:
    assert len({use.colour for use in USES}) == len({use.rgb for use in USES}) == 10


def test_motors_are_wired_to_their_half_of_the_driver() -> None:
    assert ways("bench", "Steering") == {"1": "MX1508 MOTOR-B 1", "2": "MX1508 MOTOR-B 2"}
    assert ways("l298n", "Steering") == {"1": "L298N OUT3", "2": "L298N OUT4"}
    assert ways("differential", "Right motor")["1"] == "MX1508 MOTOR-B 1"
    assert ways("two-boards", "Drive motor")["2"] == "L298N OUT2"
    assert ways("two-boards", "Steering")["2"] == "MX1508 MOTOR-A 2"
    assert ways("hat-servo", "Drive motor")["1"] == "PCA9685 M3 1"


def test_servo_has_its_own_five_volts() -> None:
    assert ways("mx1508-servo", "Steering servo") == {
        "signal": "pin 12 (GPIO 18)",
        "+": "5 V for servo OUT +",
        "-": "5 V for servo OUT - and pin 6 (GND)",
    }
    assert ways("hat-servo", "PCA9685")["V+"] == "5 V for servo OUT +"
    assert ways("hat-servo", "Steering servo") == {"plug": "PCA9685 channel 14"}


def test_echo_has_a_divider_and_led_a_resistor() -> None:
    echo = ends("bench")["HC-SR04 rear Echo"]
    assert echo.via == "divider" and "2 kΩ" in echo.notes[0]
    assert ends("bench")["Button red LED +"].via == "330 Ω"
    assert ends("bench")["Button blue LED +"].via == "100 Ω", "it needs 3 V itself"
    assert ends("bench")["LED head 1 long leg"].via == "100 Ω"
    assert ends("bench")["LED rear long leg"].via == "330 Ω"
    assert ends("bench")["Button red contact 1"].via == ""


@pytest.mark.parametrize("name", CARS)
def test_driver_inputs_have_a_pull_down(name: str) -> None:
    """hardware/assembly.md requires it: a green wire's terminal, 10 kΩ, ground."""
    for wire in plan(name).wires():
        pull_down = wire.use.colour == "green" and wire.start.part == PI
        if name == "rig" or wire.end.terminal == "OE":
            pull_down = False  # no motor; OE is pulled up
        assert (wire.via == "pull-down") is pull_down, wire
        assert any("10 kΩ from this terminal" in one for one in wire.notes) is pull_down


@pytest.mark.parametrize(
    ("name", "driver", "plus", "minus"),
    [
        ("mx1508", "MX1508", "+", "-"),
        ("l298n", "L298N", "12V", "GND"),
        ("motor-hat", "PCA9685", "motor +", "motor -"),
        ("bench", "MX1508", "+", "-"),
    ],
)
def test_driver_supply_has_470_uf(name: str, driver: str, plus: str, minus: str) -> None:
    capacitor, supply = ways(name, f"470 µF, {driver}"), ways(name, driver)
    assert capacitor["+"] == supply[plus]
    joined = (capacitor["- (stripe)"], f"{capacitor['- (stripe)']} and pin 6 (GND)")
    assert supply[minus] in joined
    assert "stripe at -" in ends(name)[f"470 µF, {driver} +"].notes[0]


def test_two_boards_have_a_capacitor_each_and_a_rig_has_none() -> None:
    names = [part.name for part in plan("two-boards").all()]
    assert [one for one in names if "470" in one] == ["470 µF, MX1508", "470 µF, L298N"]
    assert not any("470" in part.name for part in plan("rig").all())


def test_battery_meter_is_wired_before_the_load() -> None:
    assert ways("bench", "INA219")["VIN+"] == "Switch out"
    assert ways("bench", "MX1508")["+"] == "INA219 VIN-"
    assert ways("mx1508", "MX1508")["+"] == "Switch out"


def test_overlay_bus_uses_no_header_pins_of_the_plan() -> None:
    assert ways("hat-servo", "PCA9685")["SDA"] == "I2C bus 3 SDA"
    assert ways("sensors", "VL53L0X front")["SCL"] == "I2C bus 3 SCL"
    assert ways("sensors", "VL53L0X left")["SCL"] == "pin 5 (GPIO 3)"


def test_inputs_that_are_pulled_up_and_pins_of_the_image_have_a_note() -> None:
    wires = ends("low-pins")
    assert parts.PULLED_UP in wires["MX1508 IN1"].notes
    assert parts.PULLED_UP not in wires["MX1508 IN2"].notes
    assert any("SPI" in note for note in ends("bench")["Button red contact 1"].notes)
    assert any(note.startswith("1 kΩ") for note in ends("hat-servo")["PCA9685 OE"].notes)
    assert "from 7 to 12 V" in ends("l298n")["L298N GND"].notes[1]


def test_cameras_are_named() -> None:
    names = [part.name for part in plan("low-pins").all()]
    assert "Webcam" in names and "Depth camera" in names
    assert "Camera" in [part.name for part in plan("mx1508").all()]


@pytest.mark.parametrize(
    ("name", "motor", "output"),
    [
        ("mx1508", "Drive motor", "MOTOR-A 1"),
        ("mx1508", "Steering", "MOTOR-B 1"),
        ("zero-w", "Steering", "MOTOR-B 1"),
        ("mx1508-servo", "Drive motor", "MOTOR-A 1"),
    ],
)
def test_motor_above_the_peak_of_its_bridge_has_a_resistor_in_one_lead(
    name: str, motor: str, output: str
) -> None:
    """A part of its own: its wires are two lines to tick off."""
    resistor = f"2.2 Ω, {'drive' if motor == 'Drive motor' else 'steer'}"
    assert ways(name, resistor) == {"1": f"MX1508 {output}"}
    assert ways(name, motor)["1"] == f"{resistor} 2"
    assert ways(name, motor)["2"].startswith("MX1508 MOTOR-")
    (part,) = (part for part in plan(name).all() if part.name == resistor)
    assert part.about == "≥ 4 W"
    assert "draws 3.7 A" in ends(name)[f"{resistor} 1"].notes[0]
    table = tables.wires(plan(name)).splitlines()
    assert sum(resistor in line for line in table) == 2


@pytest.mark.parametrize("name", ["differential", "l298n", "motor-hat", "bench", "rig"])
def test_motor_within_the_peak_of_its_bridge_has_no_resistor(name: str) -> None:
    assert not any("2.2 Ω" in part.name for part in plan(name).all())

"""Elements of a wiring plan: parts, their terminals, and a colour for each use."""

from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.wiring.header import PIN_3V3, PIN_5V, PIN_GND, PIN_OF, PINS

PI = "Pi"


class Use(NamedTuple):
    """Purpose of a wire, shown by its colour."""

    colour: str
    rgb: str
    meaning: str


BATTERY = Use("brown", "#8b5a2b", "battery voltage, motor leads: never to the Pi")
GROUND = Use("black", "#000000", "ground")
FIVE_V = Use("red", "#e02020", "5 V")
THREE_V = Use("orange", "#ff8c00", "3.3 V")
SDA = Use("blue", "#2060e0", "SDA, data of I2C")
SCL = Use("yellow", "#ffe000", "SCL, clock of I2C")
MOTOR = Use("green", "#20a040", "motor control: inputs of a driver, servo signal")
OUTPUT = Use("violet", "#a040d0", "from the Pi to a sensor: Trig, XSHUT")
INPUT = Use("grey", "#909090", "to the Pi: Echo, a button")
LED = Use("white", "#ffffff", "an LED")
USES = (BATTERY, GROUND, FIVE_V, THREE_V, SDA, SCL, MOTOR, OUTPUT, INPUT, LED)


class End(NamedTuple):
    """End of a wire: a part's terminal; for the part PI the number of a pin."""

    part: str
    terminal: str

    def __str__(self) -> str:
        if self.part != PI:
            return f"{self.part} {self.terminal}"
        pin = PINS[int(self.terminal) - 1]
        return f"pin {pin.number} ({pin.name})"


class Terminal(NamedTuple):
    """Terminal with the one wire that ends at it; others may begin here."""

    name: str
    source: End | None = None
    use: Use = GROUND
    via: str = ""
    """Component in the wire: a resistor, a divider."""
    notes: tuple[str, ...] = ()


class Part(NamedTuple):
    """Part with terminals, or (a camera) only with a plug that `about` names."""

    name: str
    terminals: tuple[Terminal, ...] = ()
    about: str = ""


class Wire(NamedTuple):
    start: End
    end: End
    use: Use
    via: str
    notes: tuple[str, ...]


class Plan(NamedTuple):
    """Parts of a car; those of its supply stand below the Pi in a drawing."""

    title: str
    supply: tuple[Part, ...]
    parts: tuple[Part, ...]
    motors: tuple[Part, ...]

    def all(self) -> tuple[Part, ...]:
        return (*self.supply, *self.parts, *self.motors)

    def wires(self) -> Iterator[Wire]:
        """Yield every wire, part by part."""
        for part in self.all():
            for name, source, use, via, notes in part.terminals:
                if source is not None:
                    yield Wire(source, End(part.name, name), use, via, notes)


def gpio(number: int) -> End:
    """Return the pin of a BCM number."""
    return End(PI, str(PIN_OF[number]))


PI_3V3, PI_5V, PI_GND = (End(PI, str(pin)) for pin in (PIN_3V3, PIN_5V, PIN_GND))

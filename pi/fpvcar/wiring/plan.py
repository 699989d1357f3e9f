"""Elements of a wiring plan: parts, their terminals, and a colour for each use."""

from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase
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
    """Terminal with the wires that end at it; others may begin here."""

    name: str
    source: End | None = None
    use: Use = GROUND
    via: str = ""
    """Component in the wire: a resistor, a divider."""
    notes: tuple[str, ...] = ()
    also: End | None = None
    """Start of a second wire of the same use that ends here."""

    @property
    def sources(self) -> tuple[End | None, ...]:
        """Starts of its wires, a row each in the drawing; (None,) without any."""
        return (self.source,) if self.also is None else (self.source, self.also)


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
            for terminal in part.terminals:
                for start in terminal.sources:
                    if start is not None:
                        end = End(part.name, terminal.name)
                        yield Wire(start, end, terminal.use, terminal.via, terminal.notes)

    def marks(self) -> dict[End, str]:
        """Return the mark of each wire or rail by its start: the number of its pin, else a
        letter."""
        starts = list(dict.fromkeys(wire.start for wire in self.wires()))
        others = (start for start in starts if start.part != PI)
        letters = dict(zip(others, (*ascii_lowercase, *ascii_uppercase), strict=False))
        return {start: letters.get(start, start.terminal) for start in starts}


def gpio(number: int) -> End:
    """Return the pin of a BCM number."""
    return End(PI, str(PIN_OF[number]))


PI_3V3, PI_5V, PI_GND = (End(PI, str(pin)) for pin in (PIN_3V3, PIN_5V, PIN_GND))

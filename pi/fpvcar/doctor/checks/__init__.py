"""Checks of each part of the car: facts in, findings out."""

from collections.abc import Callable, Iterator
from types import ModuleType

from fpvcar.doctor.checks import board, computer, network, pins, sensors, units
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Findings, Kind, Report, report_of

MODULES: tuple[ModuleType, ...] = (board, pins, sensors, network, computer, units)
PARTS: tuple[tuple[str, Callable[[Facts], Findings]], ...] = (
    ("board", board.board),
    ("system", board.system),
    ("packages", board.packages),
    ("profile", board.profile),
    ("pins", pins.back_end),
    ("pin owners", pins.holders),
    ("pulls", pins.pulls),
    ("pulses", pins.pulses),
    ("dead man", pins.dead_man),
    ("motors", pins.motors),
    ("I2C", sensors.i2c),
    ("running car", sensors.reported),
    ("camera", sensors.camera),
    ("Wi-Fi", network.wifi),
    ("name", network.name),
    ("TCP", network.tcp),
    ("supply", computer.power),
    ("heat", computer.heat),
    ("memory", computer.memory),
    ("card", computer.card_room),
    ("wear", computer.card_life),
    ("card speed", computer.card_speed),
    ("clock", computer.clock),
    ("certificate", computer.certificate),
    ("units", units.units),
    ("watchdog", units.watchdog),
    ("version", board.version),
)


def kinds() -> Iterator[Kind]:
    """Yield every possible kind of finding."""
    for module in MODULES:
        yield from (value for value in vars(module).values() if isinstance(value, Kind))


def examine(facts: Facts) -> Report:
    """Check all parts, one after the other."""
    profile = facts.profile
    car = "A car" if isinstance(profile, str) else profile.car.name
    board = facts.model or "a computer that is no Raspberry Pi"
    about = f"{car}, on {board}, {facts.os.name}; fpvcar {facts.version}"
    if facts.mode is not None and facts.mode.known:
        about += f"; camera {facts.mode.text}"
    return report_of(about, ((part, act(facts)) for part, act in PARTS))

"""Checks of the systemd units, their watchdogs, and the chip's watchdog."""

from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Kind, Said, Severity, Unasked

RESTARTS_MOST = 2

ABSENT = Kind(
    "unit-absent",
    Severity.FAULT,
    "The car does not start",
    "systemd does not know {unit}",
    "Nothing starts the car, and nothing starts it again when it fails.",
    "sudo apt install --reinstall fpvcar, then sudo fpvcar setup",
)
DOWN = Kind(
    "unit-down",
    Severity.FAULT,
    "The car does not start",
    "{unit} does not run ({state})",
    "A part of the car is missing.",
    "journalctl -u {unit} -n 20 says why; then sudo systemctl restart {unit}",
)
RESTARTED = Kind(
    "unit-restarts",
    Severity.WARNING,
    "It stops by itself",
    "{unit} was started again {count} times",
    "Each time the car stops: it ends or hangs by itself.",
    "journalctl -u {unit} -n 100 has its last words",
)
UNWATCHED = Kind(
    "unit-watchdog",
    Severity.WARNING,
    "It stops by itself",
    "nobody notices when {unit} hangs: it has no watchdog",
    "A hung part is not started again.",
    "sudo systemctl revert {unit}; sudo apt install --reinstall fpvcar",
)
NO_WATCHDOG = Kind(
    "watchdog",
    Severity.WARNING,
    "It stops by itself",
    "the watchdog of the chip is not fed by systemd",
    "When the kernel hangs nobody restarts the computer, and a motor may run on.",
    "sudo fpvcar setup, then sudo reboot",
)


def units(facts: Facts) -> Said:
    """Check that the units run, stay running, and have a watchdog."""
    if isinstance(facts.units, Unasked):
        yield facts.units
        return
    for unit in facts.units:
        if unit.load == "not-found":
            yield ABSENT.found(unit=unit.name)
        elif unit.active not in ("active", "activating", "reloading"):
            yield DOWN.found(unit=unit.name, state=unit.active)
        elif unit.restarts > RESTARTS_MOST:
            yield RESTARTED.found(unit=unit.name, count=unit.restarts)
        elif not unit.watchdog:
            yield UNWATCHED.found(unit=unit.name)


def watchdog(facts: Facts) -> Said:
    """Check that the chip restarts when the kernel hangs."""
    if isinstance(facts.watchdog, Unasked):
        yield facts.watchdog
    elif not facts.watchdog:
        yield NO_WATCHDOG.found()

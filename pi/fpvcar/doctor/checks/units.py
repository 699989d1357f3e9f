"""Checks of the systemd units, their watchdogs, and the chip's watchdog."""

from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Findings, Kind, Severity, Unasked

RESTARTS_MOST = 2

MISSING_UNIT = Kind(
    "unit-absent",
    Severity.FAULT,
    "The car does not start",
    "unit {unit} is missing",
    "systemd cannot start the car, or restart it after a failure.",
    "sudo apt install --reinstall fpvcar, then sudo fpvcar setup",
)
STOPPED_UNIT = Kind(
    "unit-down",
    Severity.FAULT,
    "The car does not start",
    "{unit} is not running ({state})",
    "A process of the car is missing.",
    "read the reason with journalctl -u {unit} -n 20, then sudo systemctl restart {unit}",
)
RESTARTED_UNIT = Kind(
    "unit-restarts",
    Severity.WARNING,
    "It stops by itself",
    "{unit} was restarted {count} times",
    "Its process crashes or hangs, and each restart stops the car.",
    "read its last messages: journalctl -u {unit} -n 100",
)
UNWATCHED_UNIT = Kind(
    "unit-watchdog",
    Severity.WARNING,
    "It stops by itself",
    "{unit} has no systemd watchdog",
    "systemd does not restart it when it hangs.",
    "sudo systemctl revert {unit}; sudo apt install --reinstall fpvcar",
)
NO_WATCHDOG = Kind(
    "watchdog",
    Severity.WARNING,
    "It stops by itself",
    "systemd does not use the hardware watchdog",
    "If the kernel hangs, the computer does not restart, and a motor may stay on.",
    "sudo fpvcar setup, then sudo reboot",
)


def units(facts: Facts) -> Findings:
    """Check that the units run, stay running, and have a watchdog."""
    if isinstance(facts.units, Unasked):
        yield facts.units
        return
    for unit in facts.units:
        if unit.load == "not-found":
            yield MISSING_UNIT.finding(unit=unit.name)
        elif unit.active not in ("active", "activating", "reloading"):
            yield STOPPED_UNIT.finding(unit=unit.name, state=unit.active)
        elif unit.restarts > RESTARTS_MOST:
            yield RESTARTED_UNIT.finding(unit=unit.name, count=unit.restarts)
        elif not unit.watchdog:
            yield UNWATCHED_UNIT.finding(unit=unit.name)


def watchdog(facts: Facts) -> Findings:
    """Check that the chip restarts when the kernel hangs."""
    if isinstance(facts.watchdog, Unasked):
        yield facts.watchdog
    elif not facts.watchdog:
        yield NO_WATCHDOG.finding()

"""Stop causes that a program can produce, on the bench and on a rig, with their limits.

    fpvcar hil              checks/stops.py
    tests and benchmark     tests/e2e/stops/causes.py, which adds causes that need a bench or a LAN

run this one list, on each back end of pins that has the part. The limits are those of
docs/safety.md, "What fails, who notices, how soon".
"""

from dataclasses import dataclass
from signal import SIGKILL, SIGSTOP, Signals


@dataclass(frozen=True)
class StopCause:
    """Failure of a process, or of the driver's page if it has no `unit`.

    `shown`: stop causes that the car may report, the usual one first; None if it is not held.
    """

    name: str
    check: str
    proves: str
    limit_s: float
    shown: tuple[str | None, ...]
    unit: str = ""
    number: Signals = SIGKILL
    needs: tuple[str, ...] = ()

    @property
    def hung(self) -> bool:
        """Whether the process must be continued; the helper kills a hung pigpiod."""
        return self.number == SIGSTOP and self.unit != "pigpiod"


CAUSES = (
    StopCause("finger lifts", "finger", "Lifting the finger stops the car.", 0.04, (None,)),
    StopCause(
        "only heartbeats",
        "silence",
        "A page that sends only pings stops the car.",
        0.30,
        ("silence",),
    ),
    StopCause(
        "half-open socket", "wifi-silent", "A silent link stops the car.", 0.30, ("silence",)
    ),
    StopCause(
        "connection reset", "link-cut", "A closed connection stops the car.", 0.30, ("silence",)
    ),
    StopCause(
        "camera hangs",
        "camera-hangs",
        "A hung camera stops a car that requires a picture.",
        0.30,
        ("blind", "silence"),
        "camera",
        SIGSTOP,
        ("camera",),
    ),
    StopCause(
        "camera killed",
        "camera-killed",
        "A killed camera stops a car that requires a picture.",
        0.30,
        ("blind", "silence"),
        "camera",
        needs=("camera",),
    ),
    StopCause(
        "run killed", "run-killed", "Killing `run` stops the car.", 0.05, ("handover",), "run"
    ),
    StopCause(
        "run stopped",
        "run-hangs",
        "A hung `run` stops the car.",
        0.15,
        ("wheels_stopped", "silence"),
        "run",
        SIGSTOP,
    ),
    StopCause(
        "wheels killed",
        "wheels-killed",
        "Killing `wheels` stops the car, by the dead man's switch.",
        0.30,
        ("wheels_lost",),
        "wheels",
    ),
    StopCause(
        "wheels stopped",
        "wheels-hang",
        "A hung `wheels` stops the car, by the dead man's switch.",
        0.30,
        ("wheels_lost", "wheels_stopped"),
        "wheels",
        SIGSTOP,
    ),
    StopCause(
        "pigpiod killed",
        "pigpiod-killed",
        "Killing pigpiod stops the car.",
        0.50,
        ("pins", "wheels_stopped"),
        "pigpiod",
        needs=("pin daemon",),
    ),
    StopCause(
        "pigpiod hangs",
        "pigpiod-hangs",
        "A hung pigpiod stops the car.",
        0.50,
        ("pins", "wheels_lost", "wheels_stopped"),
        "pigpiod",
        SIGSTOP,
        ("pin daemon",),
    ),
)
BY_NAME = {cause.name: cause for cause in CAUSES}

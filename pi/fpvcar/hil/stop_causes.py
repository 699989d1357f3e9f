"""Stop causes that a program can produce, on the bench and on a rig, with their limits.

    fpvcar hil              checks/stops.py
    tests and benchmark     testkit/stops/causes.py, which adds causes that need a bench or a LAN

run this one list, on each back end of pins that has the part. All stop limits stand here; they are
those of docs/safety.md, "What fails, who notices, how soon".
"""

from dataclasses import dataclass
from signal import SIGKILL, SIGSTOP, Signals

ONE_FRAME_S = 0.04
"""A command of a page that still sends, or an e-stop."""
CLOSED_S = 0.05
"""The connection from `run` to `wheels` closes."""
BLOCKED_S = 0.15
"""`run` misses its deadline at `wheels`."""
NOTICED_S = 0.30
"""Any other part is killed, hung or silent, and the part beside it notices."""
PINS_S = 0.50
"""The pins or their PWM take no command."""
LATE_S = 0.70
"""The link is late: a wish made on a state older than 0.4 s is ignored, and silence follows."""
TWO_FAULTS_S = 1.0
"""Any two parts fail."""


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
    StopCause("finger lifts", "finger", "Lifting the finger stops the car.", ONE_FRAME_S, (None,)),
    StopCause(
        "only heartbeats",
        "silence",
        "A page that sends only pings stops the car.",
        NOTICED_S,
        ("silence",),
    ),
    StopCause(
        "half-open socket", "wifi-silent", "A silent link stops the car.", NOTICED_S, ("silence",)
    ),
    StopCause(
        "connection reset",
        "link-cut",
        "A closed connection stops the car.",
        NOTICED_S,
        ("silence",),
    ),
    StopCause(
        "camera hangs",
        "camera-hangs",
        "A hung camera stops a car that requires a picture.",
        NOTICED_S,
        ("blind", "silence"),
        "camera",
        SIGSTOP,
        ("camera",),
    ),
    StopCause(
        "camera killed",
        "camera-killed",
        "A killed camera stops a car that requires a picture.",
        NOTICED_S,
        ("blind", "silence"),
        "camera",
        needs=("camera",),
    ),
    StopCause(
        "run killed", "run-killed", "Killing `run` stops the car.", CLOSED_S, ("handover",), "run"
    ),
    StopCause(
        "run stopped",
        "run-hangs",
        "A hung `run` stops the car.",
        BLOCKED_S,
        ("wheels_stopped", "silence"),
        "run",
        SIGSTOP,
    ),
    StopCause(
        "wheels killed",
        "wheels-killed",
        "Killing `wheels` stops the car, by the dead man's switch.",
        NOTICED_S,
        ("wheels_lost",),
        "wheels",
    ),
    StopCause(
        "wheels stopped",
        "wheels-hang",
        "A hung `wheels` stops the car, by the dead man's switch.",
        NOTICED_S,
        ("wheels_lost", "wheels_stopped"),
        "wheels",
        SIGSTOP,
    ),
    StopCause(
        "pigpiod killed",
        "pigpiod-killed",
        "Killing pigpiod stops the car.",
        PINS_S,
        ("pins", "wheels_stopped"),
        "pigpiod",
        needs=("pin daemon",),
    ),
    StopCause(
        "pigpiod hangs",
        "pigpiod-hangs",
        "A hung pigpiod stops the car.",
        PINS_S,
        ("pins", "wheels_lost", "wheels_stopped"),
        "pigpiod",
        SIGSTOP,
        ("pin daemon",),
    ),
)
BY_NAME = {cause.name: cause for cause in CAUSES}

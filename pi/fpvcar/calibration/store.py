"""Calibrated values with their history: a file beside the car's codes.

Each change has all values and the number of the change that it came from. Undone changes stay in
the list, with their dates.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from fpvcar.calibration.values import Value, Values
from fpvcar.runtime import files

FILE = "calibration.json"
CHANGES_MOST = 100
OWN = -1
"""Number that stands for the profile's own values, before any change."""
FORGOTTEN = -2
"""Number of a previous change that is no longer in the list; undo stops there."""
RESISTOR = ".resistor"
"""End of a doubt about a motor's resistor; a doubt about its direction is the motor's name."""
DAMAGED = "damaged"
"""Name of the change that stands for an unreadable file."""
log = logging.getLogger("fpvcar.calibration")


class Change(Struct, frozen=True, omit_defaults=True):
    """All values since `utc_s`; `before` is the number of the change that it came from, OWN, or
    FORGOTTEN. `doubts` names the motors with a direction in doubt, or, with RESISTOR, without
    their resistor."""

    utc_s: float
    what: str
    values: dict[str, bool | float | tuple[float, ...]]
    before: int = OWN
    doubts: tuple[str, ...] = ()
    later: dict[str, msgspec.Raw] = {}
    """Fields of a later version."""


class History(Struct, frozen=True):
    """History of all changes, the oldest first; `now` is the number of the current one."""

    changes: tuple[Change, ...] = ()
    now: int = OWN
    later: dict[str, msgspec.Raw] = {}
    """Fields of a later version."""

    @property
    def values(self) -> dict[str, Value]:
        """Values that override the profile's."""
        return dict(self.changes[self.now].values) if self.now != OWN else {}

    @property
    def doubts(self) -> tuple[str, ...]:
        """Motors with a direction in doubt since an earlier change."""
        return self.changes[self.now].doubts if self.now != OWN else ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Doubts about resistors by the last measurement before the current change: a change of an
        older version does not pass them on."""
        number = self.now
        while number >= 0 and not self.changes[number].what.startswith("resistor "):
            number = self.changes[number].before
        measured = self.changes[number].doubts if number >= 0 else ()
        return tuple(doubt for doubt in measured if doubt.endswith(RESISTOR))

    @property
    def damaged(self) -> bool:
        """True if the file could not be read and nothing was kept since."""
        return self.now != OWN and self.changes[self.now].what == DAMAGED

    @property
    def undoable(self) -> bool:
        """True if the values before the current change are known."""
        return self.now != OWN and self.changes[self.now].before != FORGOTTEN

    def changed(
        self, what: str, values: Values, utc_s: float, doubts: tuple[str, ...] = ()
    ) -> "History":
        """Return the history with one more change, to these values."""
        changes = (*self.changes, Change(utc_s, what, dict(values), self.now, doubts))
        if len(changes) > CHANGES_MOST:
            changes = tuple(_renumbered(change) for change in changes[1:])
        return msgspec.structs.replace(self, changes=changes, now=len(changes) - 1)

    def undone(self) -> "History":
        """Return the history before the current change; unchanged if that is unknown."""
        if not self.undoable:
            return self
        return msgspec.structs.replace(self, now=self.changes[self.now].before)


class _Saved(Struct):
    """History in its file, its changes not decoded yet."""

    changes: list[msgspec.Raw]
    now: int
    later: dict[str, msgspec.Raw] = {}


def _renumbered(change: Change) -> Change:
    """Renumber a change after the first of the list was dropped."""
    if change.before in (OWN, FORGOTTEN):
        return change
    before = change.before - 1 if change.before > 0 else FORGOTTEN
    return msgspec.structs.replace(change, before=before)


def load(path: Path, motors: Sequence[str]) -> History:
    """Read the history. A file that cannot be read leaves the profile's own values, and the
    direction of each of these motors in doubt."""
    try:
        return _decoded(path.read_bytes())
    except FileNotFoundError:
        return History()
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        log.error("%s: %s; using the values of the profile", path, fault)
        damaged = Change(_changed_s(path), DAMAGED, {}, FORGOTTEN, tuple(motors))
        return History((damaged,), 0)


def _decoded(text: bytes) -> History:
    """Return the history if it is complete and its numbers are valid. Raises ValueError,
    msgspec.DecodeError."""
    if not {"changes", "now"} <= msgspec.json.decode(text, type=dict[str, msgspec.Raw]).keys():
        raise ValueError("no list of changes")
    saved = files.decoded(text, _Saved)
    changes = tuple(files.decoded(change, Change) for change in saved.changes)
    kept = History(changes, saved.now, saved.later)
    count = len(kept.changes)
    if not OWN <= kept.now < count or any(
        not FORGOTTEN <= change.before < number for number, change in enumerate(kept.changes)
    ):
        raise ValueError(
            f"change {kept.now} of {count} refused: expected changes that refer to earlier ones"
        )
    return kept


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def write(path: Path, kept: History) -> None:
    """Write the whole file or nothing, also if the power fails. Raises OSError."""
    saved = _Saved([files.encoded(change) for change in kept.changes], kept.now, kept.later)
    files.write_whole(path, [files.encoded(saved)])

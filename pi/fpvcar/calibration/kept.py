"""What was calibrated, when, and what held before: a file beside the car's codes.

Each change has all values and names the one that it came from: undone steps stay in
the list, with their dates.
"""

import logging
from pathlib import Path

import msgspec
from msgspec import Struct

from fpvcar import files
from fpvcar.calibration.values import Value

FILE = "calibration.json"
CHANGES_MOST = 100
OWN = -1
"""The profile's own values, before any change."""
log = logging.getLogger("fpvcar.calibration")


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """The values since `utc_s`, all of them; `before` is the number of the change that
    it came from, or OWN."""

    utc_s: float
    what: str
    values: dict[str, bool | float | tuple[float, ...]]
    before: int = OWN


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """All changes, the oldest first; `now` is the number of the one that holds."""

    changes: tuple[Change, ...] = ()
    now: int = OWN

    @property
    def values(self) -> dict[str, Value]:
        """What lies over the profile."""
        return dict(self.changes[self.now].values) if self.now != OWN else {}

    def changed(self, what: str, values: dict[str, Value], utc_s: float) -> "Kept":
        """With these values beside and over what holds."""
        new = Change(utc_s, what, {**self.values, **values}, self.now)
        changes = (*self.changes, new)
        if len(changes) > CHANGES_MOST:
            changes = tuple(
                msgspec.structs.replace(one, before=max(OWN, one.before - 1))
                for one in changes[1:]
            )
        return Kept(changes, len(changes) - 1)

    def undone(self) -> "Kept":
        """As it was before the change that holds; the same where none does."""
        if self.now == OWN:
            return self
        return Kept(self.changes, self.changes[self.now].before)


def load(path: Path) -> Kept:
    """What was kept; nothing if that is damaged, or not ours."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return Kept()
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        log.warning("%s: %s; the profile's own values hold", path, fault)
        return Kept()
    count = len(kept.changes)
    if not OWN <= kept.now < count or any(
        not OWN <= one.before < number for number, one in enumerate(kept.changes)
    ):
        log.warning("%s: its changes do not fit together", path)
        return Kept()
    return kept


def write(path: Path, kept: Kept) -> None:
    """Writes whole or not at all, whatever the power does. Raises OSError."""
    files.write_whole(path, [msgspec.json.encode(kept)])

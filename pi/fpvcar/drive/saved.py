"""What grown-ups have set outlives `run`: speed limit, guard, a stop of theirs.

    Control.step -> Saver.put -> (thread) write_whole -> kept.json -> load

A restart makes nothing looser than the profile, whose part is never written down: who
changes a profile changes the car. What cannot be read is left out, and said.
"""

import logging
from pathlib import Path
from typing import get_args

import msgspec

from fpvcar.config import GuardMode, PersonName, Picture, Profile, Share
from fpvcar.drive.gate import Cause, Hold
from fpvcar.runtime import files
from fpvcar.runtime.workers import Worker

FILE = "kept.json"
AGAIN_S = 5.0
"""How soon a card that failed is tried again."""
GUARD_MODES: tuple[GuardMode, ...] = get_args(GuardMode)
log = logging.getLogger("fpvcar.saved")


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What grown-ups set; None: as the profile says.

    `stopped_by` is the grown-up whose stop holds the car, None if none does.
    """

    limit: Share | None = None
    guard: GuardMode | None = None
    stopped_by: PersonName | None = None
    picture: Picture | None = None


def limit_of(saved: Saved, profile: Profile) -> float:
    """The share of full throttle; no more than the profile's."""
    most = profile.gate.limit
    return most if saved.limit is None else min(saved.limit, most)


def guard_of(saved: Saved, profile: Profile) -> GuardMode:
    """The guard's mode; the profile's, or one that guards more."""
    own = profile.guard.mode
    return max(saved.guard or own, own, key=GUARD_MODES.index)


def hold_of(saved: Saved) -> Hold | None:
    """The grown-up's stop that holds the car from the start."""
    if saved.stopped_by is None:
        return None
    return Hold(Cause.ESTOP_GROWN_UP, saved.stopped_by)


def differing(profile: Profile, limit: float, guard: GuardMode, hold: Hold | None) -> Saved:
    """What is to be saved: nothing of the profile, no stop but a grown-up's."""
    return Saved(
        limit if limit < profile.gate.limit else None,
        guard if guard != profile.guard.mode else None,
        hold.by if hold and hold.cause is Cause.ESTOP_GROWN_UP else None,
    )


def load(path: Path) -> Saved:
    """What was saved; nothing if that is damaged, or not ours."""
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=Saved)
    except FileNotFoundError:
        return Saved()
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        log.warning("%s: %s; the profile's limit and guard hold", path, fault)
        return Saved()
    log.info("as grown-ups left it: %s", saved)
    return saved


def write(path: Path, saved: Saved) -> None:
    """Writes whole or not at all, whatever the power does. Raises OSError."""
    files.write_whole(path, [msgspec.json.encode(saved)])


class Saver(Worker):
    """Writes what was put last, in a thread: a card may take its time, or fail.

    `before` is what the last run has saved in the directory. The picture's settings
    come from another part of the car than the rest: neither forgets the other's.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__("saved")
        self._path = directory / FILE
        self.before = load(self._path)
        self._picture = self.before.picture
        self._new: Saved | None = None
        self._written: Saved | None = None

    def put(self, saved: Saved) -> None:
        """Has it written soon; returns at once."""
        self._new = msgspec.structs.replace(saved, picture=self._picture)
        self.wake()

    def put_picture(self, picture: Picture) -> None:
        """As `put`, of the picture alone."""
        self._picture = None if picture == Picture() else picture
        self.put(self._new or self.before)

    def live(self) -> None:
        """Writes until `ending`, and then what was put before."""
        while True:
            ending, new = self.ending, self._new
            if new is not None and new is not self._written:
                self._write(new)
            if ending:
                return
            self.pause(AGAIN_S)

    def _write(self, new: Saved) -> None:
        try:
            write(self._path, new)
        except OSError as fault:
            self.set_state(f"what grown-ups set is lost at a restart: {fault}")
        else:
            self._written = new
            self.set_state("ok")

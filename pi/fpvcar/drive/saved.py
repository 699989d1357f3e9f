"""What grown-ups have set outlives `run`: speed limit, guard, a stop of theirs.

    Control.step -> Keeper.put -> (thread) write_whole -> kept.json -> load

A restart makes nothing looser than the profile, whose part is never written down: who
changes a profile changes the car. What cannot be read is left out, and said.
"""

import logging
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from fpvcar import files
from fpvcar.config import Profile
from fpvcar.threads import Worker
from fpvcar.wire.up import Name, Share

FILE = "kept.json"
AGAIN_S = 5.0
"""How soon a card that failed is tried again."""
MODES = ("off", "warn", "limit")
"""The guard's, the loosest first."""
log = logging.getLogger("fpvcar.kept")


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """None: as the profile says. `stopped_by`: the grown-up whose stop holds the car,
    None if none does."""

    limit: Share | None = None
    guard: Annotated[str, Meta(pattern=rf"\A({'|'.join(MODES)})\Z")] | None = None
    stopped_by: Name | None = None


def limit_of(kept: Kept, profile: Profile) -> float:
    """The share of full throttle; no more than the profile's."""
    most = profile.gate.limit
    return most if kept.limit is None else min(kept.limit, most)


def guard_of(kept: Kept, profile: Profile) -> str:
    """The guard's mode; the profile's, or one that guards more."""
    own = profile.guard.mode
    return max(kept.guard or own, own, key=MODES.index)


def load(path: Path) -> Kept:
    """What was kept; nothing if that is damaged, or not ours."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return Kept()
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        log.warning("%s: %s; the profile's limit and guard hold", path, fault)
        return Kept()
    log.info("as grown-ups left it: %s", kept)
    return kept


def write(path: Path, kept: Kept) -> None:
    """Whole or not at all, and for good, whatever the power does. Raises OSError."""
    files.write_whole(path, [msgspec.json.encode(kept)])


class Keeper(Worker):
    """Writes what was put last, in a thread: a card may take its time, or fail.

    `left` is what the run before has left in the directory.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__("kept")
        self._path = directory / FILE
        self.left = load(self._path)
        self._new: Kept | None = None
        self._written: Kept | None = None

    def put(self, kept: Kept) -> None:
        """Returns at once."""
        self._new = kept
        self.wake()

    def live(self) -> None:
        """Until `ending`; what was put before is written then."""
        while True:
            ending, new = self.ending, self._new
            if new is not None and new is not self._written:
                self._write(new)
            if ending:
                return
            self.pause(AGAIN_S)

    def _write(self, new: Kept) -> None:
        try:
            write(self._path, new)
        except OSError as fault:
            self.say(f"what grown-ups set is lost at a restart: {fault}")
        else:
            self._written = new
            self.say("ok")

"""Settings of pages that survive a restart of `run`: speed limit, guard mode, a grown-up's stop,
picture, the car's name, the intercom.

    Control.step -> Saver.put -> (thread) write_whole -> kept.json -> load

A restart makes nothing looser than the profile. Values equal to the profile's are not written, so a
changed profile takes effect. Unreadable files are ignored and logged.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import msgspec

from fpvcar.config import PLAIN, GuardMode, PersonName, Picture, Profile, Share
from fpvcar.drive.gate import Cause, Hold
from fpvcar.runtime import files, paths
from fpvcar.runtime.workers import Worker

FILE = "kept.json"
CAR_NAME_MOST = 24
"""Most characters of a car's name, as in a profile."""
AGAIN_S = 5.0
"""Retry interval after a failed write to the card."""
GUARD_MODES: tuple[GuardMode, ...] = get_args(GuardMode)
log = logging.getLogger("fpvcar.saved")


class SavedName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name chosen on a page, and the profile's name at that time."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=CAR_NAME_MOST, pattern=PLAIN)]
    instead_of: str


class SavedSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings by grown-ups; None for the profile's value.

    `stopped_by` is the grown-up whose stop holds the car, None without such a stop.
    """

    limit: Share | None = None
    guard: GuardMode | None = None
    stopped_by: PersonName | None = None
    picture: Picture | None = None
    car: SavedName | None = None
    intercom: bool = False


def limit_of(saved: SavedSettings, profile: Profile) -> float:
    """Return the saved share of full throttle, at most the profile's."""
    most = profile.gate.limit
    return most if saved.limit is None else min(saved.limit, most)


def guard_of(saved: SavedSettings, profile: Profile) -> GuardMode:
    """Return the guard's mode: the profile's, or a stricter saved one."""
    profile_mode = profile.guard.mode
    return max(saved.guard or profile_mode, profile_mode, key=GUARD_MODES.index)


def hold_of(saved: SavedSettings) -> Hold | None:
    """Return the grown-up's stop that holds the car from the start."""
    if saved.stopped_by is None:
        return None
    return Hold(Cause.ESTOP_GROWN_UP, saved.stopped_by)


def differing(profile: Profile, limit: float, guard: GuardMode, hold: Hold | None) -> SavedSettings:
    """Return the settings to save: only differences from the profile, and only a grown-up's
    stop."""
    return SavedSettings(
        limit if limit < profile.gate.limit else None,
        guard if guard != profile.guard.mode else None,
        hold.by if hold and hold.cause is Cause.ESTOP_GROWN_UP else None,
    )


def load(path: Path) -> SavedSettings:
    """Load the saved settings; return defaults if the file is damaged or foreign."""
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=SavedSettings)
    except FileNotFoundError:
        return SavedSettings()
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        log.warning("%s: %s; using the profile's limit and guard", path, fault)
        return SavedSettings()
    log.info("loaded the grown-ups' settings: %s", saved)
    return saved


def write(path: Path, saved: SavedSettings) -> None:
    """Write atomically, so that a power cut leaves a whole file. Raises OSError."""
    files.write_whole(path, [msgspec.json.encode(saved)])


class Saver(Worker):
    """Thread that writes the newest settings, since a card may be slow or fail.

    `before` holds the previous run's settings from the directory. Picture settings and name come
    from other parts of the car than the rest; updating one keeps the others.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__("saved")
        self._path = directory / FILE
        self.before = load(self._path)
        self._picture, self._car = self.before.picture, self.before.car
        self._intercom = self.before.intercom
        self._new: SavedSettings | None = None
        self._written: SavedSettings | None = None

    def put(self, saved: SavedSettings) -> None:
        """Queue the settings for writing; return at once."""
        self._new = msgspec.structs.replace(
            saved, picture=self._picture, car=self._car, intercom=self._intercom
        )
        self.wake()

    def put_picture(self, picture: Picture) -> None:
        """Queue the picture settings for writing; return at once."""
        self._picture = None if picture == Picture() else picture
        self.put(self._new or self.before)

    def put_name(self, car: SavedName) -> None:
        """Queue the car's name for writing; return at once."""
        self._car = car
        self.put(self._new or self.before)

    def put_intercom(self, on: bool) -> None:
        """Queue the intercom's switch for writing; return at once."""
        self._intercom = on
        self.put(self._new or self.before)

    def _run(self) -> None:
        super()._run()
        settings = self._new
        if settings is not None and settings is not self._written:  # stopped before the first turn
            self._write(settings)

    def live(self) -> None:
        """Write until `ending`, then write the last settings put before it."""
        while True:
            ending, settings = self.ending, self._new
            if settings is not None and settings is not self._written:
                self._write(settings)
            if ending:
                return
            self.pause(AGAIN_S)

    def _write(self, settings: SavedSettings) -> None:
        try:
            write(self._path, settings)
        except OSError as fault:
            self.set_state(f"the grown-ups' settings are lost at a restart: {fault}")
        else:
            self._written = settings
            self.set_state("ok")


def ships(name: str) -> bool:
    """Return whether a shipped profile has this car's name."""
    line = f'name = "{name}"'
    texts = (path.read_text(encoding="utf-8") for path in paths.HARDWARE.glob("*.toml"))
    return any(line in text.splitlines() for text in texts)


class DisplayName:
    """Name of the car on its pages: the chosen one, or the profile's.

    The network, recordings and stations use the profile's name. A new name there replaces the
    chosen one.
    """

    def __init__(
        self, own: str, saved: SavedName | None, save: Callable[[SavedName], None], shipped: bool
    ) -> None:
        """`shipped`: the profile's name came with the program and counts as not chosen."""
        self._own, self._save = own, save
        chosen = saved.name if saved and saved.instead_of == own else ""
        self.text, self.chosen = chosen or own, bool(chosen) or not shipped

    def choose(self, name: str) -> None:
        """Set and save a valid name."""
        self.text, self.chosen = name, True
        self._save(SavedName(name, self._own))

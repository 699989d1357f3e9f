"""Settings of pages that survive a restart of `run`: speed limit, guard mode, a grown-up's stop,
picture, the car's name, the intercom, viewers who may turn the servos.

    Control.step -> Saver.put -> (thread) write_whole -> kept.json -> load

A restart makes nothing looser than the profile. Values equal to the profile's are not written, so a
changed profile takes effect. If the file, or its stop, limit or guard is unreadable, the car is
held, with the strictest limit and guard, until a grown-up's Resume. For other unreadable values the
profile's apply.

Earlier versions ignore all of a kept.json that has a field or value unknown to them, also its stop.
So this file keeps its fields for ever. Fields of later versions belong into LATER, where those that
this version does not know stay unchanged while it runs.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from fpvcar.config import PLAIN, GuardMode, PersonName, Picture, Profile, Share
from fpvcar.drive.gate import GROWN_UPS, Cause, Hold
from fpvcar.runtime import files, paths
from fpvcar.runtime.texts import Phrase, fault_text
from fpvcar.runtime.workers import Worker

FILE = "kept.json"
LATER = "kept-later.json"
"""File of the fields that FILE may not have."""
CAR_NAME_MOST = 24
"""Most characters of a car's name, as in a profile."""
AGAIN_S = 5.0
"""Retry interval after a failed write to the card."""
GUARD_MODES: tuple[GuardMode, ...] = get_args(GuardMode)
UNREADABLE = (OSError, ValueError, msgspec.DecodeError, RecursionError)
SETTINGS_UNSAVED = Phrase(
    "settings_unsaved", "the grown-ups' settings are lost at a restart: {reason}"
)
log = logging.getLogger("fpvcar.saved")


class SavedName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name chosen on a page, and the profile's name at that time."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=CAR_NAME_MOST, pattern=PLAIN)]
    instead_of: str


class SavedSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings by grown-ups; None for the profile's value.

    `stopped_by` is the grown-up whose stop holds the car, None without such a stop. FILE holds the
    car after a loss of settings; earlier versions show it as a name.
    """

    limit: Share | None = None
    guard: GuardMode | None = None
    stopped_by: PersonName | None = None
    picture: Picture | None = None
    car: SavedName | None = None
    intercom: bool = False


class LaterSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings by grown-ups in LATER."""

    viewers_look: bool = False
    """Whether viewers may turn the servos that do not steer."""


STRICTEST = SavedSettings(limit=0.1, guard=GUARD_MODES[-1], stopped_by=FILE)
"""Settings that replace unreadable ones; the limit is the least on the page."""
SAFETY = ("limit", "guard", "stopped_by")
"""Fields whose loss holds the car."""


class LoadedSettings(SavedSettings, frozen=True):
    """Settings as loaded, with the fields of a later version and the names of unreadable values."""

    later: dict[str, msgspec.Raw] = {}
    unreadable: tuple[str, ...] = ()

    def settings(self) -> SavedSettings:
        """Return the settings alone, as they are written."""
        fields = SavedSettings.__struct_fields__
        return SavedSettings(**{name: getattr(self, name) for name in fields})


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
    lost = saved.stopped_by == FILE
    return Hold(Cause.SETTINGS_LOST if lost else Cause.ESTOP_GROWN_UP, saved.stopped_by)


def differing(profile: Profile, limit: float, guard: GuardMode, hold: Hold | None) -> SavedSettings:
    """Return the settings to save: only differences from the profile, and only a grown-up's
    stop."""
    return SavedSettings(
        limit if limit < profile.gate.limit else None,
        guard if guard != profile.guard.mode else None,
        hold.by if hold and hold.cause in GROWN_UPS else None,
    )


def load(path: Path) -> LoadedSettings:
    """Load the saved settings; the strictest values replace unreadable ones."""
    try:
        fields = _fields(path)
    except FileNotFoundError:
        return LoadedSettings()
    except UNREADABLE as fault:
        log.error("%s: %s; the car waits for a grown-up's Resume", path, fault)
        return LoadedSettings(**msgspec.structs.asdict(STRICTEST), unreadable=(FILE,))
    values: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    for field in msgspec.structs.fields(SavedSettings):
        if (raw := fields.pop(field.name, None)) is not None:
            try:
                values[field.name] = msgspec.json.decode(raw, type=field.type)
            except UNREADABLE as fault:
                unreadable[field.name] = str(fault)
    if lost := {key: getattr(STRICTEST, key) for key in SAFETY if key in unreadable}:
        values |= {**lost, "stopped_by": values.get("stopped_by") or FILE}
    saved = LoadedSettings(**values, later=fields, unreadable=tuple(unreadable))
    if unreadable or fields:
        log.error("%s: unreadable: %s; unknown: %s", path, unreadable, ", ".join(fields))
    log.info("loaded the grown-ups' settings: %s", saved.settings())
    return saved


def _fields(path: Path) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])


def load_later(path: Path) -> LaterSettings:
    """Load the settings of LATER; the defaults replace unreadable ones."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=LaterSettings)
    except FileNotFoundError:
        return LaterSettings()
    except UNREADABLE as fault:
        log.error("%s: %s", path, fault)
        return LaterSettings()


def write(path: Path, saved: SavedSettings) -> None:
    """Write atomically, so that a power cut leaves a whole file. Raises OSError."""
    files.write_whole(path, [msgspec.json.encode(saved)])


class Saver(Worker):
    """Thread that writes the newest settings, since a card may be slow or fail.

    `before` holds the previous run's settings from the directory, `unreadable` the names of its
    unreadable values. Picture settings and name come from other parts of the car than the rest;
    updating one keeps the others.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__("saved")
        self._path = directory / FILE
        loaded = load(self._path)
        self.before, self._unknown = loaded.settings(), loaded.later
        self.unreadable = loaded.unreadable
        self._picture, self._car = self.before.picture, self.before.car
        self._intercom = self.before.intercom
        self.later = self._later_written = load_later(directory / LATER)
        damaged = self._unknown or self.unreadable
        self._new: SavedSettings | None = self.before if damaged else None
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

    def put_viewers_look(self, on: bool) -> None:
        """Queue the switch that lets viewers turn servos; return at once."""
        self.later = LaterSettings(on)
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
            if self._unknown or self.later != self._later_written:
                self._write_later(self.later)
            write(self._path, settings)
        except OSError as fault:
            self.set_state(SETTINGS_UNSAVED(reason=fault_text(fault)))
        else:
            self._written = settings
            self.set_state("ok")

    def _write_later(self, settings: LaterSettings) -> None:
        """Write the fields of LATER, and move those of a later version there. Raises OSError."""
        later, fields = self._path.with_name(LATER), dict[str, msgspec.Raw]()
        with contextlib.suppress(*UNREADABLE):
            fields = _fields(later)
        fields |= self._unknown
        if settings != self._later_written:
            for name in LaterSettings.__struct_fields__:
                fields[name] = msgspec.Raw(msgspec.json.encode(getattr(settings, name)))
        files.write_whole(later, [msgspec.json.encode(fields)])
        self._unknown, self._later_written = {}, settings


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

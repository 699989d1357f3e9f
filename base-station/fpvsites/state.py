"""Saved changes: the newest state is to be in force, the earlier ones are for `undo`.

apply, allow, undo, off, page -> changes.json -> fpvsites run -> in_force.json
"""

import datetime
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from fpvcar.runtime import files
from fpvcar.runtime.texts import FILE_DAMAGED, Text
from fpvsites.config import Config
from fpvsites.rules import Switch, rules
from fpvstation.errors import StationError

CHANGES, IN_FORCE = "changes.json", "in_force.json"
KEPT = 20
T = TypeVar("T")


class State(msgspec.Struct, frozen=True):
    """Permissions after one change. `config` is None while the rules are off."""

    change: str
    at_s: float
    config: Config | None = None
    switches: dict[str, Switch] = {}


class InForce(msgspec.Struct, frozen=True):
    """Report of `fpvsites run`: the state it enforces, and its last fault."""

    at_s: float
    fault: str = ""
    """The fault in English; older versions read and write only that."""
    text: Text | None = None
    """The same for the page."""


class LocalZone(datetime.tzinfo):
    """Time zone of this computer, with its changes to and from daylight-saving time."""

    def utcoffset(self, wall: datetime.datetime | None) -> datetime.timedelta | None:
        return wall.replace(tzinfo=None).astimezone().utcoffset() if wall else None

    def dst(self, wall: datetime.datetime | None) -> None:
        return None

    def tzname(self, wall: datetime.datetime | None) -> str | None:
        return wall.replace(tzinfo=None).astimezone().tzname() if wall else None

    def fromutc(self, at: datetime.datetime) -> datetime.datetime:
        wall = at.replace(tzinfo=datetime.UTC).astimezone()
        first = wall.replace(tzinfo=self)
        return first if first.utcoffset() == wall.utcoffset() else first.replace(fold=1)


def local_now() -> datetime.datetime:
    """Return the time in this computer's time zone."""
    return datetime.datetime.now(LocalZone())


def load(folder: Path) -> list[State]:
    """Return the saved states, oldest first. Raises StationError, OSError."""
    return _read(folder / CHANGES, list[State], [])


def in_force(folder: Path) -> InForce:
    """Return the last report of `fpvsites run`. Raises StationError, OSError."""
    return _read(folder / IN_FORCE, InForce, InForce(0.0))


def save(path: Path, value: object) -> None:
    """Write a file for the owner of its folder, also if root runs this. Raises OSError."""
    folder = path.parent.stat()
    owner = (folder.st_uid, folder.st_gid) if os.geteuid() == 0 else None
    files.write_whole(path, [msgspec.json.encode(value)], owner=owner)


def _read(path: Path, kind: type[T], absent: T) -> T:
    with suppress(FileNotFoundError):
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except (ValueError, msgspec.DecodeError) as fault:
            values = {"path": path, "reason": fault, "command": "fpvsites apply"}
            raise StationError(FILE_DAMAGED(**values)) from None
    return absent


@contextmanager
def changing(folder: Path) -> Iterator[list[State]]:
    """Lock the states, and save the list that the caller changed in place."""
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        states = load(folder)
        yield states
        save(folder / CHANGES, states[-KEPT:])
    finally:
        os.close(lock)


def newest(states: Sequence[State]) -> State:
    """Return the newest state. Raises StationError before the first `apply`."""
    if not states:
        raise StationError(
            Text("sites_none", "no rules yet: write /etc/fpvsites, then `fpvsites apply`")
        )
    return states[-1]


Change = Callable[[list[State], datetime.datetime], State]
"""Apply a change to the list in place; return the state that is now the newest."""


def applied(config: Config) -> Change:
    """Return the change to other files; switches of groups that remain are kept."""

    def change(states: list[State], now: datetime.datetime) -> State:
        old = states[-1].switches if states else {}
        kept = {name: switch for name, switch in old.items() if name in config.groups}
        states.append(State("apply", now.timestamp(), config, kept))
        return states[-1]

    return change


def switched(group: str, switch: Switch, text: str) -> Change:
    """Return the change of one switch. Raises ConfigError, StationError."""

    def change(states: list[State], now: datetime.datetime) -> State:
        state = newest(states)
        if state.config is None:
            raise StationError(
                Text("sites_off", "the rules are off: `fpvsites apply` turns them on")
            )
        state.config.group(group)
        switches = {**state.switches, group: switch}
        states.append(State(text, now.timestamp(), state.config, switches))
        return states[-1]

    return change


def undone(states: list[State], now: datetime.datetime) -> State:
    """Take the newest change back. Raises StationError."""
    if len(states) < 2:
        raise StationError(
            Text("sites_no_undo", "nothing to undo; `fpvsites off` removes the rules")
        )
    states.pop()
    return states[-1]


def removed(states: list[State], now: datetime.datetime) -> State:
    """Turn the rules off. Raises StationError."""
    newest(states)
    states.append(State("off", now.timestamp()))
    return states[-1]


def preview(state: State, now: datetime.datetime) -> str:
    """Return the rules of a state as text, for --dry-run."""
    if state.config is None:
        return "the rules would be removed: every client reaches every site\n"
    made = rules(state.config, state.switches, now)
    parts = (f"# dnsmasq of {group.name}\n{group.dnsmasq}" for group in made.groups)
    return "\n".join((f"# nft\n{made.nft}", *parts))

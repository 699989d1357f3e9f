"""Features: parts that only some cars have, a folder each.

`feature(core)` of a folder constructs its parts, subscribes them to events of the core, and returns
all that the core needs: parts, routes, handlers, state. The core imports no feature, and a feature
imports no other one. `app.FEATURES` lists them.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from fpvcar.access.rights import RecordingRights
from fpvcar.config import Profile
from fpvcar.drive.saved import Saver
from fpvcar.http.admission import Admission
from fpvcar.runtime.service import Part
from fpvcar.seat.vehicle import Vehicle
from fpvcar.sensors.ranges import Ranges


@dataclass(frozen=True, kw_only=True)
class Core(Vehicle):
    """Core of one car, for the constructors of its features."""

    profile: Profile
    soc: Path | None
    """Emulated chip of the bench; None on a car."""
    runtime: Path
    """Directory of the sockets between processes."""
    doctor: tuple[str, ...]
    """Command line that lists this car's faults."""
    saver: Saver
    ranges: Ranges
    rights: RecordingRights
    code: str
    """Code that gives the right to drive."""
    admission: Admission
    changed: asyncio.Event
    """Set to send the pages a new state at once."""


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Registration of one feature with the core."""

    name: str
    """Name of its folder, of its entry in a page's State, and in Welcome."""
    parts: tuple[Part, ...] = ()
    routes: Callable[[web.Application], object] = lambda app: None
    """Adds its HTTP routes and sockets to the application."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """File of the page at each of its short addresses."""
    bodies: tuple[str, ...] = ()
    """Paths that accept a POST with a body."""
    hosts: Callable[[], tuple[str, ...]] = tuple
    """Further host names by which pages request the car."""
    handlers: tuple[object, ...] = ()
    """Parts with handlers of its messages on /ws/drive: see seat/handlers.py."""
    state: Callable[[], Struct | None] = lambda: None
    """State on all pages, sent with each State; None for nothing."""
    status: Callable[[], dict[str, object]] = dict
    """Further fields of /api/status, by name."""
    faults: Callable[[], Iterable[str]] = tuple
    """Reasons for a 503 of /healthz."""

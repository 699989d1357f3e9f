"""Sessions for queries: a store with driven sessions, its sidecars, and a plain scan of its files
by the public library `mcap`."""

import bisect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from foxglove_schemas_protobuf.Log_pb2 import Log
from mcap.reader import make_reader

from fpvcar.recordings import messages
from fpvcar.recordings.messages import Event, Health, Reading, Turn
from fpvcar.runtime.units import SECOND_NS
from fpvstation.catalogue.catalogue import FILE, Catalogue
from fpvstation.query.keeper import SidecarKeeper
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from testkit import mcaps
from testkit.base_station.stored import put
from testkit.mcaps import Drive, Logged, McapFile, logged

SLOT_NS = SECOND_NS // 10
SESSION = "Plague/2025-11-21/Plague-20251121T200000Z"
OTHER = "Arrow/2025-12-01/Arrow-20251201T080000Z"


def drive_messages(seed: int, seconds: float) -> list[Logged]:
    """Return a drive at random, without pictures: steps, ranges, drivers, faults, marks."""
    steps = Drive(seed).go(seconds)
    half = seconds / 2
    made = [*mcaps.measured(seconds), *mcaps.step_messages(steps)]
    made += [
        logged(messages.DRIVER, 0.0, Turn("Ann", "Ann takes the wheel")),
        logged(messages.DRIVER, half, Turn("Ann", "Ann takes the wheel")),
        logged(messages.DRIVER, half + 0.5, Turn(None, "Ann let go")),
        logged(messages.DRIVER, half + 1.0, Turn("Bob", "Bob takes the wheel")),
        logged(messages.BATTERY, 1.0, messages.Battery(None, None, None, False, state="silent")),
        logged(messages.HEALTH, 2.0, Health("ok", "ok", "ok", faults=("The processor is hot.",))),
        logged(messages.HEALTH, 3.0, Health("ok", "ok", "ok", faults=("The processor is hot.",))),
        logged(messages.EVENT, 2.5, Event(0, messages.WARNING, "camera: gone", "camera")),
        logged(messages.EVENT, 2.6, Event(0, messages.WARNING, "Stopped by Bob", "gate")),
    ]
    for number in range(round(seconds * 5)):
        if number % 40 < 30:  # then the sensor falls silent
            range_m = None if number % 9 == 4 else 0.1 + number % 17 / 10
            reading = Reading(180.0, range_m, "ok" if number % 11 else "silent")
            made.append(logged("/range/rear", number / 5 + 0.017, reading))
    return made


def session_files(folder: Path, name: str, seed: int, seconds: float) -> list[Path]:
    """Record a session of two segments; return its files."""
    made = drive_messages(seed, seconds)
    cut_ns = mcaps.BEGAN_NS + round(seconds * 0.6 * SECOND_NS)
    halves = [[one for one in made if (one.log_ns < cut_ns) == first] for first in (True, False)]
    return [
        McapFile(half, number, recording=name).to(folder / f"{name}-{number:04d}.mcap")
        for number, half in enumerate(halves, 1)
    ]


class QueryWorld:
    """Store with two sessions of 12 s in `home`, its catalogue, and a keeper of its sidecars."""

    def __init__(self, home: Path) -> None:
        self.root, self.state = home / "store", home / "state"
        self.disk, recorded = Folder(self.root), self.root.exists()
        self.root.mkdir(exist_ok=True)
        self.state.mkdir(exist_ok=True)
        self.store = Store(self.disk)
        self.store.open("")
        if not recorded:
            self._record(home / "made")
        self.catalogue = Catalogue(self.state / FILE, self.root, self.store, self.store.id)
        self.catalogue.open()
        self.catalogue.sync()
        self.keeper = self.new_keeper()

    def _record(self, folder: Path) -> None:
        folder.mkdir()
        for number, session in enumerate((SESSION, OTHER)):
            car, _, name = session.split("/")
            for path in session_files(folder, name, number, 12.0):
                put(self.store, path.name, path.read_bytes(), car)

    def new_keeper(self) -> SidecarKeeper:
        replicas = ReplicaLog(self.disk)
        return SidecarKeeper(self.state, self.root, self.store, self.catalogue, replicas)

    def files(self, session: str = SESSION) -> list[Path]:
        """Return the segments of a session."""
        return sorted((self.root / session).glob("*.mcap"))

    def sidecars(self, table: str = "*") -> list[Path]:
        """Return the files of all sidecars."""
        return sorted(self.keeper.folder.glob(f"{table}/month=*/*.parquet"))


class ScannedFile(NamedTuple):
    """Messages of files by topic: time in ns, and the decoded message."""

    topics: dict[str, list[tuple[int, Any]]]

    def last(self, topic: str, before_ns: int) -> tuple[int, Any] | None:
        """Return the last message of a topic before a time."""
        found = self.topics.get(topic, [])
        at = bisect.bisect_left(found, before_ns, key=lambda item: item[0])
        return found[at - 1] if at else None


def scan(paths: Sequence[Path]) -> ScannedFile:
    """Read all messages of some files with the public library."""
    topics: dict[str, list[tuple[int, Any]]] = {}
    for path in paths:
        with path.open("rb") as file:
            for schema, channel, message in make_reader(file).iter_messages():
                assert schema is not None
                if channel.message_encoding == "json":
                    decoded = json.loads(message.data)
                elif schema.name == "foxglove.Log":
                    decoded = Log.FromString(message.data)
                else:
                    continue
                topics.setdefault(channel.topic, []).append((message.log_time, decoded))
    for found in topics.values():
        found.sort(key=lambda item: item[0])
    return ScannedFile(topics)


def cause_of(step: Any) -> str | None:
    after = step["after"]
    if step["reason"] != "stopped":
        return None
    hold: str | None = after["hold"]["cause"] if after.get("hold") else after.get("arm")
    return hold


def sample_rows(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows that the table `samples` has to have, from a plain scan of the files."""
    found = scan(paths)
    slots = {at_ns // SLOT_NS: (at_ns, step) for at_ns, step in found.topics["/step"]}
    for slot, (at_ns, step) in sorted(slots.items()):
        end_ns = (slot + 1) * SLOT_NS
        driver = found.last("/driver", end_ns)
        sides: dict[str, float | None] = {"front": None, "rear": None}
        for side in sides:
            reading = found.last(f"/range/{side}", end_ns)
            if reading and at_ns - reading[0] < SECOND_NS and reading[1]["state"] == "ok":
                sides[side] = reading[1]["range_m"]
        link = found.last("/latency", end_ns)
        page = link[1] if link and at_ns - link[0] < 3 * SECOND_NS else {}
        wish = step.get("wish") or {}
        yield {
            "time_us": at_ns // 1000,
            "driver": driver[1]["name"] if driver else None,
            "wish_throttle_share": wish.get("throttle"),
            "wish_steer_share": wish.get("steer"),
            "throttle_share": step["throttle"],
            "steer_share": step["steer"],
            "drive_duty_share": (step["duties"] + [None, None])[0],
            "steer_duty_share": (step["duties"] + [None, None])[1],
            "reason": step["reason"],
            "cause": cause_of(step),
            "front_m": sides["front"],
            "left_m": None,
            "rear_m": sides["rear"],
            "right_m": None,
            "battery_v": step.get("volts"),
            "picture_age_s": step.get("picture_age_s"),
            "picture_ms": page.get("picture_ms"),
            "link_ms": page.get("link_ms"),
            "share_lost": page.get("lost"),
        }


def stop_rows(paths: Sequence[Path]) -> list[tuple[int, str]]:
    """Return the time in us and the cause of each stop, from a plain scan of the files."""
    causes = [(at_ns // 1000, cause_of(step)) for at_ns, step in scan(paths).topics["/step"]]
    return [
        (at_us, cause)
        for (_, before), (at_us, cause) in zip(causes, causes[1:], strict=False)
        if cause and cause != before
    ]

"""Health of a station: its cars, its remotes, its store, and their faults."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fpvcar.http.prometheus_text import Metric, gauge
from fpvcar.runtime.texts import Text
from fpvcar.runtime.units import counted
from fpvstation.catalogue.catalogue import StoreUsage
from fpvstation.fetch.scheduler import FETCHING, CarState
from fpvstation.housekeeping import ChoreState
from fpvstation.replicas.recalls import RecallState
from fpvstation.replicas.remote import RemoteState
from fpvstation.replicas.replicate import SENDING
from fpvstation.store.replica_log import RECENT_S

OLD_S = 24 * 3600.0
"""Time after which queued segments are a fault if no segment was stored, and likewise sessions
that are at no remote."""

ITEM_METRICS: tuple[tuple[str, str, str, Callable[[Any], float | None]], ...] = (
    (
        "car",
        "station_car_up",
        "1 while the car answers.",
        lambda car: car.state in ("ok", FETCHING),
    ),
    ("car", "station_car_seen_seconds", "Last answer, UTC.", lambda car: car.seen_s or None),
    (
        "car",
        "station_car_stored_seconds",
        "Last time a segment was stored or the queue was empty, UTC.",
        lambda car: car.stored_s or None,
    ),
    (
        "car",
        "station_car_card_free_bytes",
        "Free space on the car's card.",
        lambda car: car.card_free if car.card_total else None,
    ),
    ("car", "station_segments_waiting", "Segments to fetch.", lambda car: car.waiting),
    ("car", "station_segments_held", "Stored segments without a receipt.", lambda car: car.held),
    ("car", "station_segments_failed", "Incomplete segments.", lambda car: len(car.bad)),
    ("car", "station_segments_total", "Stored since the start.", lambda car: car.stored),
    ("car", "station_bytes_total", "Fetched since the start.", lambda car: car.bytes),
    (
        "office",
        "station_office_up",
        "1 while the remote accepts data.",
        lambda remote: remote.state in ("ok", SENDING),
    ),
    (
        "office",
        "station_office_verified_seconds",
        "Last verification of a session, UTC.",
        lambda remote: remote.verified_s or None,
    ),
    (
        "office",
        "station_office_oldest_copy_seconds",
        "Verification of the copy that was not verified for longest, UTC.",
        lambda remote: remote.oldest_s or None,
    ),
    (
        "office",
        "station_office_segments_rotted_total",
        "Bad or missing in a repeated verification, since the start.",
        lambda remote: remote.rotted,
    ),
    ("office", "station_office_sessions_waiting", "To send.", lambda remote: remote.waiting),
    ("office", "station_office_bytes_waiting", "To send.", lambda remote: remote.waiting_bytes),
    (
        "office",
        "station_office_sessions_total",
        "Sent since the start.",
        lambda remote: remote.sent,
    ),
    ("office", "station_office_bytes_total", "Moved since the start.", lambda remote: remote.bytes),
    ("chore", "station_chore_ok", "1 if the last run had no fault.", lambda chore: not chore.fault),
)
"""Metrics of each car, remote and chore: label, name, help text and value; None is left out."""


class StationHealth(msgspec.Struct):
    """Content of the answer to /api/status."""

    store: StoreUsage
    cars: list[CarState]
    remotes: list[RemoteState] = msgspec.field(name="offices")
    alone: int
    """Sessions that are at no remote, if the station has remotes."""
    alone_s: float
    """Time when the oldest of them got its last segment, UTC; 0 if `alone` is 0."""
    unread: int
    why_anew: Text | None
    """Reason of the catalogue's last rebuild."""
    chores: list[ChoreState] = []
    snapshots: int = 0
    snapshot_s: float = 0.0
    """Time of the newest snapshot, UTC; 0 without snapshots."""
    recalls: list[RecallState] = []

    def faults(self, now_s: float) -> Iterator[str]:
        """Yield the faults that need attention."""
        for car in self.cars:
            if car.internal_fault:
                yield f"{car.folder}: {car.internal_fault}"
            elif car.bad:
                yield f"{car.folder}: {car.state}"
            elif car.waiting and now_s - car.stored_s > OLD_S:
                days = (now_s - car.stored_s) / OLD_S
                yield (
                    f"{car.folder}: {counted(car.waiting, 'segment')} pending, none stored for "
                    f"{days:.0f} days ({car.state})"
                )
            if car.late:
                step = next(iter(car.late.values()))
                yield f"{car.folder} keeps {counted(len(car.late), 'late segment')}: {step}"
        for remote in self.remotes:
            if remote.internal_fault:
                yield f"{remote.place}: {remote.internal_fault}"
            if remote.oldest_s and now_s - remote.oldest_s > RECENT_S:
                days = (now_s - remote.oldest_s) / OLD_S
                yield (
                    f"{remote.place}: a copy was last verified {days:.0f} days ago, "
                    f"the limit is {RECENT_S / OLD_S:.0f} ({remote.state})"
                )
        for chore in self.chores:
            if chore.fault:
                yield f"{chore.name}: {chore.fault}"
        if self.alone and now_s - self.alone_s > OLD_S:
            days = (now_s - self.alone_s) / OLD_S
            states = "; ".join(f"{remote.place}: {remote.state}" for remote in self.remotes)
            yield (
                f"{self.alone} sessions have no second copy, the oldest for {days:.0f} days "
                f"({states})"
            )

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics for Prometheus."""
        items: dict[str, list[tuple[str, Any]]] = {
            "car": [(car.folder, car) for car in self.cars],
            "office": [(remote.place, remote) for remote in self.remotes],
            "chore": [(str(chore.name), chore) for chore in self.chores],
        }
        for label, name, text, value in ITEM_METRICS:
            kind = "counter" if name.endswith("_total") else "gauge"
            samples = [({label: key}, value(item)) for key, item in items[label]]
            yield Metric(name, kind, text, samples)
        store = self.store
        yield gauge("station_store_sessions", "Sessions in the store.", store.sessions)
        yield gauge("station_store_segments", "Segments in the store.", store.segments)
        yield gauge("station_store_bytes", "Size of the segments in the store.", store.bytes)
        yield gauge("station_archive_sessions", "Sessions in the archive.", store.archived)
        yield gauge("station_archive_bytes", "Size of these sessions.", store.archived_bytes)
        yield gauge("station_disk_free_bytes", "Free space on the store's disk.", store.free)
        yield gauge("station_disk_bytes", "Size of the store's disk.", store.total)
        yield gauge("station_snapshots", "Snapshots of the store.", self.snapshots)
        yield gauge(
            "station_snapshot_seconds", "Time of the newest snapshot, UTC.", self.snapshot_s or None
        )
        yield gauge("station_sessions_unread", "Sessions not in the catalogue yet.", self.unread)
        yield gauge("station_sessions_alone", "Sessions without a second copy.", self.alone)
        yield gauge(
            "station_alone_seconds",
            "Time of the last segment of the oldest of these sessions, UTC.",
            self.alone_s or None,
        )

"""Health of a station: its cars, its offices, its store, and their faults."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from fpvcar.server.api.prometheus_text import Metric, gauge
from fpvstation.catalogue.catalogue import StoreUsage
from fpvstation.fetch.scheduler import CarState
from fpvstation.housekeeping import ChoreState
from fpvstation.mirror.replicate import OfficeState
from fpvstation.store.replica_log import RECENT_S

OLD_S = 24 * 3600.0
"""Time after which queued segments are a fault if no segment was stored, and likewise sessions
that are at no office."""


class StationHealth(msgspec.Struct):
    """Content of the answer to /api/status."""

    store: StoreUsage
    cars: list[CarState]
    offices: list[OfficeState]
    alone: int
    """Sessions that are at no office, if the station has offices."""
    alone_s: float
    """Time when the oldest of them got its last segment, UTC; 0 if `alone` is 0."""
    unread: int
    why_anew: str
    chores: list[ChoreState] = []

    def faults(self, now_s: float) -> Iterator[str]:
        """Yield the faults that need attention."""
        for one in self.cars:
            if one.internal_fault:
                yield f"{one.folder}: {one.internal_fault}"
            elif one.bad:
                yield f"{one.folder}: {one.state}"
            elif one.waiting and now_s - one.stored_s > OLD_S:
                days = (now_s - one.stored_s) / OLD_S
                yield (
                    f"{one.folder}: {one.waiting} wait, none stored for {days:.0f} "
                    f"days ({one.state})"
                )
        for office in self.offices:
            if office.internal_fault:
                yield f"{office.place}: {office.internal_fault}"
            if office.oldest_s and now_s - office.oldest_s > RECENT_S:
                days = (now_s - office.oldest_s) / OLD_S
                yield (
                    f"{office.place}: a copy there was judged {days:.0f} days ago, "
                    f"at most {RECENT_S / OLD_S:.0f} count ({office.state})"
                )
        for chore in self.chores:
            if chore.fault:
                yield f"{chore.name}: {chore.fault}"
        if self.alone and now_s - self.alone_s > OLD_S:
            days = (now_s - self.alone_s) / OLD_S
            said = "; ".join(f"{one.place}: {one.state}" for one in self.offices)
            yield (f"{self.alone} sessions have no second copy, one for {days:.0f} days ({said})")

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics for Prometheus."""
        yield from self._cars()
        yield from self._offices()
        store = self.store
        yield gauge("station_store_sessions", "In the store.", store.sessions)
        yield gauge("station_store_segments", "In the store.", store.segments)
        yield gauge("station_store_bytes", "Of all segments.", store.bytes)
        yield gauge("station_disk_free_bytes", "Of the store's disk.", store.free)
        yield gauge("station_disk_bytes", "Of the store's disk.", store.total)
        yield gauge("station_sessions_unread", "Not listed yet.", self.unread)
        yield gauge("station_sessions_alone", "Without a second copy.", self.alone)
        yield gauge(
            "station_alone_seconds",
            "When the oldest of these got its last segment, UTC.",
            self.alone_s or None,
        )
        yield from _each(
            "chore",
            [one.name for one in self.chores],
            (
                (
                    "station_chore_ok",
                    "gauge",
                    "1 if its last run had no fault.",
                    [not one.fault for one in self.chores],
                ),
            ),
        )

    def _cars(self) -> Iterator[Metric]:
        cars = self.cars
        yield from _each(
            "car",
            [one.folder for one in cars],
            (
                (
                    "station_car_up",
                    "gauge",
                    "1 while it answers.",
                    [one.state in ("ok", "fetching") for one in cars],
                ),
                (
                    "station_car_seen_seconds",
                    "gauge",
                    "When it answered last, UTC.",
                    [one.seen_s or None for one in cars],
                ),
                (
                    "station_car_stored_seconds",
                    "gauge",
                    "When a segment was stored last, or none waited, UTC.",
                    [one.stored_s or None for one in cars],
                ),
                (
                    "station_car_card_free_bytes",
                    "gauge",
                    "On its card.",
                    [one.card_free if one.card_total else None for one in cars],
                ),
                (
                    "station_segments_waiting",
                    "gauge",
                    "On the car, and not here.",
                    [one.waiting for one in cars],
                ),
                (
                    "station_segments_held",
                    "gauge",
                    "Here, and their receipt waits.",
                    [one.held for one in cars],
                ),
                (
                    "station_segments_failed",
                    "gauge",
                    "Did not come whole.",
                    [len(one.bad) for one in cars],
                ),
                (
                    "station_segments_total",
                    "counter",
                    "Stored since the start.",
                    [one.stored for one in cars],
                ),
                (
                    "station_bytes_total",
                    "counter",
                    "Fetched since the start.",
                    [one.bytes for one in cars],
                ),
            ),
        )

    def _offices(self) -> Iterator[Metric]:
        offices = self.offices
        yield from _each(
            "office",
            [one.place for one in offices],
            (
                (
                    "station_office_up",
                    "gauge",
                    "1 while it takes what it gets.",
                    [one.state in ("ok", "sending") for one in offices],
                ),
                (
                    "station_office_verified_seconds",
                    "gauge",
                    "When it judged a session last, UTC.",
                    [one.verified_s or None for one in offices],
                ),
                (
                    "station_office_oldest_copy_seconds",
                    "gauge",
                    "When its copy that was not judged for longest was judged, UTC.",
                    [one.oldest_s or None for one in offices],
                ),
                (
                    "station_office_segments_rotted_total",
                    "counter",
                    "Bad or gone there when they were judged again, since the start.",
                    [one.rotted for one in offices],
                ),
                (
                    "station_office_sessions_waiting",
                    "gauge",
                    "Not there yet.",
                    [one.waiting for one in offices],
                ),
                (
                    "station_office_bytes_waiting",
                    "gauge",
                    "Not there yet.",
                    [one.waiting_bytes for one in offices],
                ),
                (
                    "station_office_sessions_total",
                    "counter",
                    "Sent since the start.",
                    [one.sent for one in offices],
                ),
                (
                    "station_office_bytes_total",
                    "counter",
                    "Moved since the start.",
                    [one.bytes for one in offices],
                ),
            ),
        )


def _each(
    what: str, names: Sequence[str], figures: Iterable[tuple[str, str, str, Sequence[float | None]]]
) -> Iterator[Metric]:
    """Yield metrics with a figure for each name; None is left out."""
    labels = [{what: one} for one in names]
    for name, kind, words, each in figures:
        yield Metric(name, kind, words, list(zip(labels, each, strict=True)))

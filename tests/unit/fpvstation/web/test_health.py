"""Health of a station: faults, figures, and the output of `fpvstation status`."""

import io
from collections.abc import Callable

import msgspec
import pytest

from fpvcar.http.prometheus_text import exposition
from fpvcar.runtime.texts import VERBATIM
from fpvstation.catalogue.catalogue import StoreUsage
from fpvstation.errors import CHORE_LIST, INTERNAL
from fpvstation.fetch.rate import WINDOW_S, Rate
from fpvstation.fetch.scheduler import FETCHING, CarState
from fpvstation.housekeeping import ChoreState
from fpvstation.replicas.recalls import RecallState
from fpvstation.replicas.remote import RemoteState
from fpvstation.replicas.replicate import SENDING
from fpvstation.store.replica_log import RECENT_S
from fpvstation.web.health import OLD_S, StationHealth
from fpvstation.web.status import follow, lines_of
from tests.unit.recordings.export.test_progress import Terminal

NOW_S = 1e9
TRASH = VERBATIM(text="trash")


def standing(**more: object) -> StationHealth:
    car = CarState(
        "Plague",
        "Plague",
        "https://a",
        FETCHING,
        NOW_S - 3,
        NOW_S,
        7,
        2,
        5_000_000,
        10_000_000,
        2e6,
    )
    office = RemoteState("nas:/srv", SENDING, 0.0, 3, 4, 90_000_000, 30_000_000, 1e6, complete=8)
    made = StationHealth(
        StoreUsage("/store", 12, 340, 5_100_000_000, 10**11, 2 * 10**11),
        [car],
        [office],
        0,
        0.0,
        0,
        None,
    )
    return msgspec.structs.replace(made, **more)


def test_status_lines_have_waiting_rate_and_time_left() -> None:
    car, office, store = lines_of(standing(), NOW_S)
    assert car == (
        "Plague: fetching; seen 3 s ago; 2 pending (10 MB, 2.0 MB/s, 5 s left), 7 stored (5 MB)"
    )
    assert office == (
        "nas:/srv: sending; 8 of 12 sessions there; 4 pending (90 MB, 1.0 MB/s, 1:30 min left), "
        "3 sent (30 MB)"
    )
    assert store == ("/store: 12 sessions, 340 segments, 5100 MB; 100000 of 200000 MB are free")


def test_archived_sessions_are_apart_from_those_of_the_store() -> None:
    usage = StoreUsage("/store", 1, 2, 3_000_000, 10**11, 2 * 10**11, 1, 9_000_000)
    health = standing(store=usage)
    *_, store, archived = lines_of(health, NOW_S)
    assert store.startswith("/store: 1 session, 2 segments, 3 MB; ")
    assert archived == "archived: 1 session, 9 MB"
    text = exposition(health.metrics())
    assert "fpvcar_station_store_bytes 3000000" in text
    assert "fpvcar_station_archive_bytes 9000000" in text


def test_status_names_the_time_when_a_window_opens() -> None:
    (office,) = standing().remotes
    office.state, office.rate, office.waits_until = "ok", 0.0, "22:00"
    said = list(lines_of(standing(remotes=[office]), NOW_S))
    assert said[1].startswith(
        "nas:/srv: waits until 22:00; 8 of 12 sessions there; 4 pending (90 MB), "
    )
    office.state = VERBATIM(text="its disk is full")
    assert "22:00" not in list(lines_of(standing(remotes=[office]), NOW_S))[1]


def test_last_fault_is_shown_after_it_is_over() -> None:
    (office,) = standing().remotes
    office.last_fault, office.fault_s = VERBATIM(text="nas:/srv: it is full"), NOW_S - 120
    said = list(lines_of(standing(remotes=[office]), NOW_S))
    assert said[1].endswith("; 2:00 min ago: nas:/srv: it is full")
    office.state = office.last_fault
    said = list(lines_of(standing(remotes=[office]), NOW_S))
    assert said[1].count("it is full") == 1


def test_session_without_a_second_copy_for_a_day_is_a_fault() -> None:
    young = standing(alone=2, alone_s=NOW_S - OLD_S)
    assert list(young.faults(NOW_S)) == []
    old = standing(alone=2, alone_s=NOW_S - 2 * OLD_S)
    (fault,) = old.faults(NOW_S)
    assert fault == ("2 sessions have no second copy, the oldest for 2 days (nas:/srv: sending)")
    assert f"warning: {fault}" in list(lines_of(old, NOW_S))


def test_late_segment_of_an_archived_session_names_the_next_step() -> None:
    made = standing()
    made.cars[0].late = {"a.mcap": VERBATIM(text="S is in /mnt: recall it")}
    said = ["Plague keeps 1 late segment: S is in /mnt: recall it"]
    assert list(made.faults(NOW_S)) == said


def test_status_shows_the_progress_of_recalls() -> None:
    recall = RecallState("S", ["d"], "s3://b", 340_000_000, "copying", 12_000_000, 4e6)
    ended = RecallState("T", ["e"], "s3://b", 1, "done", 1)
    made = standing(recalls=[recall, ended])
    said = list(lines_of(made, NOW_S))
    assert said[2] == "S: recall from s3://b: copying, 12 of 340 MB, 4.0 MB/s, 1:22 min left"
    recall.state, recall.rate, recall.fault = "failed", 0.0, VERBATIM(text="it is full")
    assert list(lines_of(made, NOW_S))[2] == (
        "S: recall from s3://b: failed, 12 of 340 MB; it is full"
    )
    assert len(said) == 4, "an ended one is not shown"


def test_internal_faults_and_faults_of_chores_are_faults() -> None:
    made = standing(chores=[ChoreState(CHORE_LIST), ChoreState(TRASH, VERBATIM(text="busy"))])
    made.cars[0].internal_fault = made.remotes[0].internal_fault = INTERNAL(reason=0)
    assert list(made.faults(NOW_S)) == [
        "Plague: internal fault: 0",
        "nas:/srv: internal fault: 0",
        "trash: busy",
    ]
    text = exposition(made.metrics())
    assert 'fpvcar_station_chore_ok{chore="list"} 1' in text
    assert 'fpvcar_station_chore_ok{chore="trash"} 0' in text


def test_office_with_a_copy_that_was_not_judged_for_long_is_a_fault() -> None:
    (office,) = standing().remotes
    office.oldest_s, office.rotted = NOW_S - RECENT_S, 2
    now = standing(remotes=[office])
    assert list(now.faults(NOW_S)) == []
    assert ", oldest verification 720:00 h ago, 2 files bad there" in list(lines_of(now, NOW_S))[1]
    (fault,) = now.faults(NOW_S + OLD_S)
    assert fault == ("nas:/srv: a copy was last verified 31 days ago, the limit is 30 (sending)")


def test_figures_are_exposed_to_prometheus() -> None:
    text = exposition(standing(alone=2, alone_s=NOW_S).metrics())
    for line in (
        'station_office_up{office="nas:/srv"} 1',
        'station_office_bytes_waiting{office="nas:/srv"} 90000000',
        "station_disk_free_bytes 100000000000",
        "station_sessions_alone 2",
        "station_alone_seconds 1000000000",
    ):
        assert f"fpvcar_{line}" in text, line


def played(*states: StationHealth) -> Callable[[], bytes]:
    left = iter(states)
    return lambda: msgspec.json.encode(next(left))


def gone() -> StationHealth:
    made = standing()
    made.cars[0].waiting_bytes = made.remotes[0].waiting_bytes = 0
    return made


def half() -> StationHealth:
    made = standing()
    made.cars[0].waiting_bytes = 5_000_000
    return made


@pytest.mark.parametrize("out", [Terminal(), io.StringIO()])
def test_follow_ends_when_nothing_waits(out: io.StringIO) -> None:
    follow(played(standing(), half(), gone()), out, lambda seconds: None)
    seen = out.getvalue()
    assert "Plague: [###############...............]  50%  2.0 MB/s, 2 s left" in seen
    assert seen.rpartition("nas")[2].startswith(f":/srv: [{'#' * 30}] complete")
    assert ("\x1b[2A" in seen) == out.isatty()


def test_rate_covers_the_last_seconds() -> None:
    rate = Rate()
    assert rate.add(0, 0.0) == 0.0
    assert rate.add(100, 1.0) == 100.0
    for second in range(2, 30):
        last = rate.add(100 + second, float(second))
    assert last == pytest.approx(1.0)
    assert rate.add(129, 30.0 + 2 * WINDOW_S) < 0.1

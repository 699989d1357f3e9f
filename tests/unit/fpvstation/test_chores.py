"""What goes by itself: old trash, old litter, and what is over a bound."""

import datetime
import os
from pathlib import Path

import pytest

from fpvstation.chores import expire, keep_tidy, keep_to
from fpvstation.disk import Folder
from fpvstation.identity import StoreGone
from fpvstation.store import Store
from tests.unit.fpvstation.test_store import CAR, DATA, NAME, put, sums_of

NOW = datetime.datetime(2026, 12, 23, 12, tzinfo=datetime.UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(Folder(tmp_path))
    made.open("")
    return made


def test_trash_goes_after_thirty_days(store: Store, tmp_path: Path) -> None:
    for day in ("2026-11-22", "2026-11-23", "2026-12-23", "my-own-way"):
        (tmp_path / ".trash" / day / "Plague").mkdir(parents=True)
        (tmp_path / ".trash" / day / "Plague" / NAME).write_bytes(DATA)
    expire(store, tmp_path, NOW)
    left = sorted(one.name for one in (tmp_path / ".trash").iterdir())
    assert left == ["2026-11-23", "2026-12-23", "my-own-way"]


def test_trash_of_a_clock_in_1970_has_its_thirty_days_too(
    store: Store, tmp_path: Path
) -> None:
    trash = tmp_path / ".trash"
    (trash / "1970-01-01" / CAR).mkdir(parents=True)
    (trash / "1970-01-01" / CAR / NAME).write_bytes(DATA)
    expire(store, tmp_path, datetime.datetime(1970, 3, 1, tzinfo=datetime.UTC))
    (trash / "2026-12-23").mkdir()
    (trash / "2026-12-23" / "other").touch()
    expire(store, tmp_path, NOW)
    assert (trash / "1970-01-01" / CAR / NAME).exists(), "today has a folder already"
    for days, there in ((1, True), (31, True), (32, False)):
        expire(store, tmp_path, NOW + datetime.timedelta(days))
        assert (trash / "2026-12-24" / CAR / NAME).exists() == there


def test_what_never_came_whole_goes_after_thirty_days(
    store: Store, tmp_path: Path
) -> None:
    store.write(CAR, NAME, sums_of(DATA), 0, DATA[:99])
    (part,) = (tmp_path / ".incoming" / CAR).iterdir()
    os.utime(part, (0.0, NOW.timestamp() - 29 * 86400.0))
    expire(store, tmp_path, NOW)
    assert part.exists()
    expire(store, tmp_path, NOW + datetime.timedelta(days=2))
    assert not part.exists()


def test_a_bound_costs_the_oldest_sessions(store: Store, tmp_path: Path) -> None:
    days = [NAME.replace("20261121", f"202611{day}") for day in (21, 22, 23)]
    for name in days:
        put(store, name)
    keep_to(store, tmp_path, 3 * len(DATA))
    assert len(list(store.sessions())) == 3
    keep_to(store, tmp_path, 3 * len(DATA) - 1)
    left = [one.path.rpartition("/")[2] for one in store.segments()]
    assert left == days[1:] and not list(tmp_path.glob(f"{CAR}/2026-11-21"))
    assert sums_of(DATA).sha256 in store.removed(), "it is not fetched again"
    keep_to(store, tmp_path, 1)
    assert len(list(store.segments())) == 1, "the newest stays"


def test_nothing_goes_below_another_disk(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".trash" / "2020-01-01").mkdir(parents=True)
    (tmp_path / ".fpvstation.json").unlink()
    with pytest.raises(StoreGone):
        expire(store, tmp_path, NOW)
    with pytest.raises(StoreGone):
        keep_to(store, tmp_path, 1)
    assert (tmp_path / ".trash" / "2020-01-01").exists()


async def test_a_fault_ends_no_chores(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".fpvstation.json").unlink()
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await keep_tidy(store, tmp_path, 1, sleep)
    assert "mount its disk" in caplog.text

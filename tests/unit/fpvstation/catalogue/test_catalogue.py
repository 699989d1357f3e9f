"""Catalogue: lists each stored drive, even after changes of its file."""

import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from testkit.base_station.stored import put
from testkit.mcaps import McapFile
from testkit.recordings import NAME, drive_messages

from fpvcar.library.drives import Drive, DriveFilter
from fpvcar.runtime.texts import VERBATIM
from fpvstation.catalogue import catalogue_schema, probe
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.catalogue.search import entry_in, place_of
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

FOREVER = float("inf")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "one.mcap"
    McapFile(drive_messages()).to(path)
    return path.read_bytes()


@pytest.fixture
def store(tmp_path: Path, made: bytes) -> Store:
    store = Store(Folder(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    store.open("")
    put(store, data=made, name=NAME)
    return store


@pytest.fixture
def catalogue(tmp_path: Path, store: Store) -> Iterator[Catalogue]:
    one = opened(tmp_path, store)
    yield one
    one.close()


def opened(tmp_path: Path, store: Store, store_id: str = "s1") -> Catalogue:
    path = tmp_path / "catalogue.sqlite"
    one = Catalogue(path, tmp_path / "store", store, store_id)
    one.open()
    one.sync()
    return one


def drives(catalogue: Catalogue, before_ms: float = FOREVER, **wanted: object) -> list[Drive]:
    """Return the drives of a list."""
    found = catalogue.find(DriveFilter(**wanted), before_ms, 50)  # type: ignore[arg-type]
    return [msgspec.json.decode(msgspec.json.encode(one), type=Drive) for one in found.drives]


def test_stored_drive_is_listed_once(catalogue: Catalogue) -> None:
    (drive,) = drives(catalogue)
    assert drive.parts[0].name == NAME and drive.parts[0].pictures == 120
    assert catalogue.sync() == 0, "nothing changed"


def test_two_cars_of_one_name_are_both_listed(
    catalogue: Catalogue, store: Store, made: bytes
) -> None:
    other = made + b"\0"
    put(store, NAME, other, "Plague-abc123")
    assert catalogue.sync() == 1
    assert len(drives(catalogue)) == 2
    names = {part.name for one in drives(catalogue) for part in one.parts}
    assert names == {NAME, NAME.replace("Plague-", "Plague-abc123-")}
    found = catalogue.paths(names)
    assert found[NAME].read_bytes() == made
    assert {path.read_bytes() for path in found.values()} == {made, other}


def test_segment_name_used_twice_is_listed_twice(
    catalogue: Catalogue, store: Store, made: bytes
) -> None:
    put(store, NAME, made + b"\0")
    catalogue.sync()
    assert len({one.id for one in drives(catalogue)}) == 2
    assert len(catalogue.paths(one.name for one in catalogue.page("", 9).entries)) == 2


def test_catalogue_follows_a_store_with_stray_files(
    catalogue: Catalogue, store: Store, made: bytes, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    day = next(root.glob("Plague/*"))
    for folder in (root, root / "Plague", day):
        (folder / "Thumbs.db").touch()
    (day / "empty").mkdir()
    (root / "System Volume Information" / "a" / "b").mkdir(parents=True)
    put(store, NAME.replace("-0001", "-0002"), made)
    assert catalogue.sync() == 1 and not catalogue.faults
    assert len(list(store.sessions())) == 2, "the empty folder is one"


def test_catalogue_lists_all_but_an_unreadable_session(
    catalogue: Catalogue, store: Store, made: bytes, tmp_path: Path
) -> None:
    (bad,) = store.sessions()
    sums = tmp_path / "store" / bad / "SHA256SUMS"
    sums.rename(sums.with_name("kept"))
    sums.mkdir()
    put(store, NAME.replace("T200000Z", "T210000Z"), made)
    catalogue.sync()
    assert catalogue.faults == {bad: VERBATIM(text="Is a directory")}
    assert len(drives(catalogue)) == 2, "the row of the unreadable session stays"
    sums.rmdir()
    sums.symlink_to(sums.name)
    catalogue.sync()
    assert list(catalogue.faults) == [bad] and len(drives(catalogue)) == 2
    sums.unlink()
    sums.with_name("kept").rename(sums)
    catalogue.sync()
    assert not catalogue.faults and len(drives(catalogue)) == 2


@pytest.mark.parametrize("harm", [b"", b"no catalogue at all " * 999, None])
def test_lost_or_damaged_catalogue_is_rebuilt_and_logged(
    catalogue: Catalogue,
    tmp_path: Path,
    store: Store,
    harm: bytes | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = drives(catalogue)
    catalogue.close()
    path = tmp_path / "catalogue.sqlite"
    if harm is None:
        data = bytearray(path.read_bytes())
        data[4096 * 2 :] = b"\xa5" * (len(data) - 4096 * 2)
        path.write_bytes(data)
    else:
        path.write_bytes(harm)
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path, store)
    assert drives(again) == before
    assert not harm or "rebuilt" in caplog.text
    again.close()


def test_catalogue_removed_while_open_is_rebuilt(
    catalogue: Catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = drives(catalogue)
    for one in tmp_path.glob("catalogue.sqlite*"):
        one.unlink()
    with caplog.at_level(logging.WARNING):
        assert catalogue.sync() == 1
    assert drives(catalogue) == before and "it was removed" in caplog.text


def test_close_acts_on_all_threads_and_they_may_reopen(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    """The last thread that closes an SQLite file removes its log."""
    log = tmp_path / "catalogue.sqlite-wal"
    with ThreadPoolExecutor(1) as other:
        for _ in range(2):
            assert other.submit(drives, catalogue).result() == drives(catalogue)
            assert log.exists()
            catalogue.close()
            assert not log.exists()


def test_catalogue_of_another_store_is_replaced(
    catalogue: Catalogue, tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue.close()
    opened(tmp_path, store, "s2").close()
    assert "it belongs to the store s1" in caplog.text


def test_catalogue_of_a_newer_station_is_rebuilt(
    catalogue: Catalogue, tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue.close()
    with sqlite3.connect(tmp_path / "catalogue.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    again = opened(tmp_path, store)
    assert len(drives(again)) == 1 and "schema 99, expected at most" in caplog.text
    again.close()


def test_catalogue_of_an_older_station_is_migrated(
    catalogue: Catalogue, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue.close()
    more = "CREATE TABLE later (one TEXT); INSERT INTO later VALUES ('here');"
    steps = (*catalogue_schema.MIGRATIONS, more)
    monkeypatch.setattr("fpvstation.catalogue.catalogue_schema.MIGRATIONS", steps)
    again = opened(tmp_path, store)
    assert len(drives(again)) == 1 and not again.reset_reason
    with sqlite3.connect(tmp_path / "catalogue.sqlite") as db:
        assert db.execute("SELECT one FROM later").fetchone() == ("here",)
    db.close()
    again.close()


def test_catalogue_of_a_station_without_counts_counts_each_session(
    tmp_path: Path, store: Store, made: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (session,) = store.sessions()
    stamp = (tmp_path / "store" / session / "SHA256SUMS").stat().st_mtime_ns
    with monkeypatch.context() as patch:
        first = catalogue_schema.MIGRATIONS[:1]
        patch.setattr("fpvstation.catalogue.catalogue_schema.MIGRATIONS", first)
        db = catalogue_schema.open_database(tmp_path / "catalogue.sqlite")
        with db:
            db.execute("INSERT INTO about VALUES ('s1')")
            db.execute("INSERT INTO session VALUES (?, ?)", (session, stamp))
        db.close()
    catalogue = opened(tmp_path, store)
    assert catalogue.reset_reason is None
    usage = catalogue.usage()
    assert (usage.sessions, usage.segments, usage.bytes) == (1, 1, len(made))
    catalogue.close()


def test_session_removed_from_the_store_is_not_listed(catalogue: Catalogue, store: Store) -> None:
    (session,) = store.sessions()
    store.remove(session, ".trash/today")
    catalogue.sync()
    assert drives(catalogue) == [] and catalogue.paths([NAME]) == {}


def test_title_is_searchable_and_outlives_the_catalogue(
    catalogue: Catalogue, tmp_path: Path, store: Store
) -> None:
    (drive,) = drives(catalogue)
    catalogue.name(drive.id, "Über die Rampe")
    assert drives(catalogue, text="rampe")[0].title == "Über die Rampe"
    catalogue.close()
    (tmp_path / "catalogue.sqlite").unlink()
    again = opened(tmp_path, store)
    assert drives(again, text="ÜBER ramp")[0].title == "Über die Rampe"
    again.close()


@pytest.mark.parametrize(
    ("text", "causes", "found"),
    [
        ("look here", (), 1),
        ("LOOK", (), 1),
        ("here look", (), 1),
        ("oo", (), 1),
        ("zz", (), 0),
        ("nowhere", (), 0),
        ("plague", (), 1),
        ('"look', (), 0),
        ("look OR nowhere", (), 0),
        ("x*", (), 0),
        ("\0\0\0", (), 0),
        ("nowhere", ("estop",), 0),
        ("zz", ("estop",), 0),
    ],
)
def test_search_takes_words_literally(
    catalogue: Catalogue, text: str, causes: tuple[str, ...], found: int
) -> None:
    some = drives(catalogue, text=text, causes=frozenset(causes))
    assert len(some) == found


def test_filters_give_the_same_results_as_the_car(catalogue: Catalogue) -> None:
    """Equal filters give equal results on both: see library/drives.py."""
    (drive,) = drives(catalogue)
    for wanted in (
        DriveFilter(wheel="parked"),
        DriveFilter(wheel="driven"),
        DriveFilter(driver="Ada"),
        DriveFilter(since_ms=drive.start_ms),
        DriveFilter(until_ms=drive.start_ms),
        DriveFilter(since_ms=drive.start_ms + 1),
        DriveFilter(until_ms=drive.start_ms + 1),
    ):
        shown = catalogue.find(wanted, FOREVER, 50).drives
        assert len(shown) == wanted.takes(drive), wanted
    assert drives(catalogue, drive.start_ms) == []


def test_files_are_listed_in_pages(catalogue: Catalogue, store: Store, made: bytes) -> None:
    second = NAME.replace("-0001", "-0002")
    put(store, second, made)
    catalogue.sync()
    assert [one.name for one in catalogue.page("", 9).entries] == [NAME, second]
    page = catalogue.page("", 1)
    assert [one.name for one in page.entries] == [second] and page.more
    page = catalogue.page(second, 1)
    assert [one.name for one in page.entries] == [NAME] and not page.more


def test_unreadable_file_is_listed_as_damaged(catalogue: Catalogue, store: Store) -> None:
    put(store, NAME.replace("T2000", "T2100"), b"no recording")
    catalogue.sync()
    bad = [one for one in drives(catalogue) if one.state == "damaged"]
    assert len(bad) == 1 and bad[0].parts[0].lost


def test_listing_does_not_read_the_start_of_a_file(
    tmp_path: Path, made: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of files has the name: car and profile are not needed."""
    (tmp_path / NAME).write_bytes(made)
    monkeypatch.setattr("fpvcar.recordings.overview.Walk", None)
    entry = entry_in(probe.probe(probe.ProbeJob(str(tmp_path / NAME), NAME)))
    assert entry.state == "closed" and entry.pictures == 120 and entry.marks


def test_places_sort_by_time() -> None:
    times = (-1.0, 0.0, 1.0, 1.5, 1.7e12, 1.7e12 + 0.5, FOREVER)
    places = [place_of(one) for one in times]
    assert places == sorted(places) and places[-1] < 2**63


def test_key_is_the_segment_name_with_the_cars_folder() -> None:
    day = "Plague-abc123/2026-11-21"
    one = "Plague-20261121T193100Z"
    assert probe.key_of(f"{day}/{one}/{one}-0001.mcap") == (
        "Plague-abc123-20261121T193100Z-0001.mcap"
    )
    assert probe.key_of(f"{day}/{one}.1a2b/{one}-0001.mcap") == (
        "Plague-abc123-20261121T193100Z.1a2b-0001.mcap"
    )

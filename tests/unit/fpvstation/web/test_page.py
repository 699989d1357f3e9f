"""Page and figures of the station, over a store with drives of two cars."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from testkit.base_station.stored import put
from testkit.mcaps import McapFile
from testkit.recordings import NAME, drive_messages

from fpvcar.access.rights import RecordingRights
from fpvcar.datasets import jobs
from fpvcar.library.drive_repository import DriveBusy
from fpvcar.library.drives import DriveFilter
from fpvcar.runtime.texts import VERBATIM
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.fetch.cars import Cars
from fpvstation.fetch.scheduler import CarState, FetchScheduler
from fpvstation.housekeeping import Chores
from fpvstation.replicas.recalls import Recalls
from fpvstation.replicas.remotes import Remotes
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.web.health import OLD_S
from fpvstation.web.page import Page

DOCS = Path(__file__).resolve().parents[4] / "docs"
OTHER = NAME.replace("Plague", "Arrow")
Client = TestClient[Any, Any]
CHORES = Chores([])


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    store = Store(Folder(tmp_path))
    store.open("")
    McapFile(drive_messages()).to(tmp_path / ".made")
    data = (tmp_path / ".made").read_bytes()
    for name in (NAME, OTHER):
        put(store, name, data, name.partition("-")[0])
    keeper = FetchScheduler(Cars(tmp_path), store)
    keeper.states["1"] = CarState("Plague", "Plague", "https://a", "ok", 1e9, 1e9, 3, 0, 99)
    catalogue = Catalogue(tmp_path / "catalogue.sqlite", tmp_path, store, "s1", keeper.inventory)
    catalogue.open()
    catalogue.sync()
    yield Page(catalogue, keeper, Remotes([], 1, ReplicaLog(Folder(tmp_path))), CHORES)
    catalogue.close()


def ask(page: Page) -> Client:
    return TestClient(TestServer(page.application()))


def faults(page: Page, now_s: float) -> list[str]:
    return list(asyncio.run(page.health()).faults(now_s))


async def test_page_lists_the_recordings_of_all_cars(page: Page, tmp_path: Path) -> None:
    async with ask(page) as client:
        answer = await client.get("/")
        assert "recordings/main.js" in await answer.text()
        said = await (await client.get("/api/recordings/drives")).json()
        names = [part["name"] for one in said["drives"] for part in one["parts"]]
        assert sorted(names) == [OTHER, NAME] and said["car"] == "Station"
        for name in (NAME, OTHER):
            answer = await client.get(f"/api/recordings/{name}")
            assert await answer.read() == (tmp_path / ".made").read_bytes()
            answer = await client.get(f"/api/recordings/{name}/units")
            assert answer.status == 200 and len(await answer.read()) > 1000


async def test_delete_without_a_password_is_refused(page: Page, tmp_path: Path) -> None:
    async with ask(page) as client:
        said = await (await client.get("/api/recordings/drives")).json()
        assert not said["removable"]
        for one in said["drives"]:
            path = f"/api/recordings/drives/{one['id']}/delete"
            answer = await client.post(path)
            assert answer.status == 401
            assert answer.headers["X-Opened-By"] == "password"
    assert len(list(tmp_path.glob("*/*/*/*.mcap"))) == 2


async def test_datasets_without_a_password_are_listed_only(page: Page, tmp_path: Path) -> None:
    page._state = tmp_path
    async with ask(page) as client:
        listed = await (await client.get("/api/datasets")).json()
        assert (listed["datasets"], listed["path"]) == ([], f"{tmp_path}/datasets")
        assert (await client.post("/api/datasets", json={})).status == 401


async def test_recordings_of_two_cars_become_one_dataset(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page._state = tmp_path / "state"
    monkeypatch.setattr(RecordingRights, "let_grown_up", lambda *_: None)
    monkeypatch.setattr(jobs, "NICEST", 0)  # other tests would delay it by minutes
    drive = {"files": [NAME, OTHER], "from_ms": 0.0, "to_ms": 1e15}
    async with ask(page) as client:
        request = {"name": "both", "kind": "donkey", "drives": [drive]}
        assert (await client.post("/api/datasets", json=request)).status == 201
        for _ in range(15_000):
            listed = await (await client.get("/api/datasets")).json()
            (dataset,) = listed["datasets"]
            if dataset["state"] != "working":
                break
            await asyncio.sleep(0.02)
        assert dataset["state"] == "ready", dataset
        assert dataset["summary"]["frames"] > 100
    assert (tmp_path / "state/datasets/both/manifest.json").exists()


async def test_foreign_host_or_origin_is_refused(page: Page) -> None:
    async with ask(page) as client:
        answer = await client.get("/", headers={"Host": "evil.example"})
        assert answer.status == 403
        answer = await client.get("/", headers={"Origin": "http://evil.example"})
        assert answer.status == 403


async def test_metrics_status_and_health_report_cars(page: Page) -> None:
    async with ask(page) as client:
        text = await (await client.get("/metrics")).text()
        assert 'fpvcar_station_car_up{car="Plague"} 1' in text
        assert 'fpvcar_station_bytes_total{car="Plague"} 99' in text
        assert (await client.get("/healthz")).status == 200
        (state,) = (await (await client.get("/api/status")).json())["cars"]
        assert (state["folder"], state["stored"]) == ("Plague", 3)
        page._scheduler.states["1"].waiting = 2
        answer = await client.get("/healthz")
        text = await answer.text()
        assert answer.status == 503 and "2 segments pending, none stored for" in text


def test_car_that_answers_but_delivers_nothing_is_a_fault(page: Page) -> None:
    state = page._scheduler.states["1"]
    state.waiting, state.seen_s = 2, 1e9 + 3 * OLD_S
    assert faults(page, 1e9 + OLD_S) == []
    said = ["Plague: 2 segments pending, none stored for 3 days (ok)"]
    assert faults(page, 1e9 + 3 * OLD_S) == said
    state.seen_s, state.stored_s = 1e9, 1e9 + 3 * OLD_S
    assert faults(page, 1e9 + 3 * OLD_S) == [], "it is the storing that counts"


def test_segment_damaged_on_a_car_is_a_fault(page: Page) -> None:
    state = page._scheduler.states["1"]
    state.bad = {NAME: VERBATIM(text="2 MiB arrived damaged")}
    state.state = VERBATIM(text="1 damaged on the car")
    assert faults(page, 1e9) == ["Plague: 1 damaged on the car"]


async def test_health_without_a_catalogue_is_503(page: Page, tmp_path: Path) -> None:
    async with ask(page) as client:
        page._catalogue.close()
        (tmp_path / "catalogue.sqlite").write_bytes(b"no database" * 1000)
        answer = await client.get("/healthz")
        assert answer.status == 503 and "catalogue" in await answer.text()


def test_copy_on_the_car_is_listed_first(page: Page, tmp_path: Path) -> None:
    inventory, sizes = page._scheduler.inventory, {NAME: (tmp_path / ".made").stat().st_size}

    def places() -> set[tuple[str, bool]]:
        found = page._catalogue.find(DriveFilter(), float("inf"), 9).copies.values()
        assert all(one.verified_s > 1e9 for copies in found for one in copies)
        return {(copies[0].place, copies[0].whole) for copies in found}

    assert places() == {("", True)}
    inventory.update("Plague", {NAME: 7}, True)
    assert places() == {("", True)}, "another one of that name"
    inventory.update("Plague", sizes, True)
    inventory.update("Plague", {}, False)
    assert places() == {("car", True), ("", True)}, "what has its receipt is there, too"
    inventory.update("Plague", {}, True)
    assert places() == {("", True)}, "the ring let it go"


async def test_status_has_storage_sizes_and_waiting_bytes(page: Page) -> None:
    async with ask(page) as client:
        said = await (await client.get("/api/status")).json()
        store, (car,) = said["store"], said["cars"]
        assert (store["sessions"], store["segments"]) == (2, 2)
        assert 0 < store["bytes"] and 0 < store["free"] <= store["total"]
        assert car["folder"] == "Plague" and car["waiting_bytes"] == 0
        said = await (await client.get("/api/recordings/drives")).json()
        assert said["station"] and len(said["copies"]) == 2
        for (copy,) in said["copies"].values():
            assert copy["place"] == "" and copy["whole"] and copy["verified_s"] > 1e9


async def test_status_counts_snapshots_of_both_tools(page: Page, tmp_path: Path) -> None:
    async with ask(page) as client:
        said = await (await client.get("/api/status")).json()
        assert (said["snapshots"], said["snapshot_s"]) == (0, 0.0)
        for name in (
            ".snapshots/store.20261127T130000+0000",
            ".snapshots/store.20261127T150000+0100_1",
            ".zfs/snapshot/autosnap_2026-11-27_12:00:00_hourly",
            ".snapshots/.outgoing",
            ".snapshots/other",
        ):
            (tmp_path / name).mkdir(parents=True)
        said = await (await client.get("/api/status")).json()
        assert (said["snapshots"], said["snapshot_s"]) == (3, 1795788000.0)
        text = await (await client.get("/metrics")).text()
        assert "station_snapshots 3" in text


async def test_size_page_is_served(page: Page) -> None:
    async with ask(page) as client:
        answer = await client.get("/size?cars=2")
        assert answer.content_type == "text/html"
        text = await answer.text()
        assert "no disk was measured yet: fpvstation measure" in text and "fault" not in text


async def test_list_has_the_line_that_installs_missing_libraries(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ask(page) as client:

        async def to_search() -> str:
            return str((await (await client.get("/api/recordings/drives")).json())["to_search"])

        assert await to_search() == ""
        monkeypatch.setitem(sys.modules, "duckdb", None)
        assert await to_search() == f"{sys.prefix}/bin/pip install 'fpvcar[query]'"
        monkeypatch.setattr(sys, "prefix", sys.base_prefix)
        line = await to_search()
    assert f"\n    {line} " in DOCS.joinpath("query.md").read_text()


# --- Archived drives


@pytest.fixture
def archive(page: Page, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the drive of Arrow, from which the page may bring it back."""
    folder = tmp_path_factory.mktemp("archive")
    store = Store(Folder(tmp_path))
    store.open("")
    place = archive_of(str(folder), tmp_path)
    tiers = Tiers(store, Folder(tmp_path), place, (), asyncio.to_thread)
    (session,) = (name for name in store.sessions() if name.startswith("Arrow"))
    asyncio.run(tiers.archive(session))
    page._catalogue.sync()
    page._recalls = Recalls(tiers)
    return folder


async def drive_of(client: Client, car: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the id of a car's drive, and its copies."""
    said = await (await client.get("/api/recordings/drives")).json()
    (drive,) = (one["id"] for one in said["drives"] if one["parts"][0]["name"].startswith(car))
    return drive, said["copies"][drive]


async def test_archived_drive_is_brought_back_on_request(page: Page, archive: Path) -> None:
    async with ask(page) as client:
        drive, (copy,) = await drive_of(client, "Arrow")
        assert (copy["place"], copy["tier"], copy["whole"]) == (str(archive), "folder", True)
        path = f"/api/recordings/drives/{drive}/recall"
        origin = {"Origin": str(client.make_url("/").origin())}
        for ask_for in (client.post, client.delete):
            assert (await ask_for(path)).status == 401, "another program needs the password"
        assert (await client.delete(path, headers=origin)).status == 404
        state = await (await client.post(path, headers=origin)).json()
        assert (state["state"], state["drives"]) == ("waiting", [drive])
        assert state["total"] == sum(file.stat().st_size for file in archive.rglob("*.mcap"))
        work = asyncio.create_task(page._recalls.run())
        async with asyncio.timeout(20.0):
            while state["state"] != "done":
                (state,) = (await (await client.get("/api/status")).json())["recalls"]
        work.cancel()
        assert state["done"] == state["total"]
        _, (copy,) = await drive_of(client, "Arrow")
        assert (copy["place"], copy["tier"]) == ("", "")
        answer = await client.post(path, headers=origin)
        assert answer.status == 409 and "is out of date: reload it" in await answer.text()
        answer = await client.post(path.replace(drive, "none"), headers=origin)
        assert answer.status == 404


async def test_recall_is_cancelled_on_request(page: Page, archive: Path) -> None:
    async with ask(page) as client:
        drive, _ = await drive_of(client, "Arrow")
        path = f"/api/recordings/drives/{drive}/recall"
        origin = {"Origin": str(client.make_url("/").origin())}
        await client.post(path, headers=origin)
        state = await (await client.delete(path, headers=origin)).json()
        assert state["state"] == "cancelled"
        (state,) = (await (await client.get("/api/status")).json())["recalls"]
        assert state["state"] == "cancelled" and list(archive.rglob("*.mcap"))


async def test_recall_without_an_archive_in_the_settings_is_refused(
    page: Page, archive: Path
) -> None:
    page._recalls = Recalls()
    async with ask(page) as client:
        drive, _ = await drive_of(client, "Arrow")
        origin = {"Origin": str(client.make_url("/").origin())}
        answer = await client.post(f"/api/recordings/drives/{drive}/recall", headers=origin)
        assert answer.status == 409
        assert f'set archive = "{archive}" in [tiers]' in await answer.text()


async def test_drive_of_an_archive_that_is_away_is_listed_and_not_sent(
    page: Page, archive: Path
) -> None:
    archive.rename(archive.with_name("unmounted"))
    async with ask(page) as client:
        drive, (copy,) = await drive_of(client, "Arrow")
        assert copy["tier"] == "away"
        for path in (OTHER, f"{OTHER}/units", f"{OTHER}/thumbnail"):
            answer = await client.get(f"/api/recordings/{path}")
            assert answer.status == 422 and "mount it" in await answer.text()
        body = {"kind": "zip", "files": [OTHER], "from_ms": 0, "to_ms": 9e12}
        answer = await client.post("/api/recordings/exports", json=body)
        assert answer.status == 422 and "mount it" in await answer.text()
        assert page._catalogue.usage().archived == 1
        with pytest.raises(DriveBusy, match="fpvstation recall Arrow-"):
            page._catalogue.delete(drive)

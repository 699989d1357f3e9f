"""Route /api/recordings/exports: films and zips of a drive, whole, or reported as cut."""

import asyncio
import csv
import io
import json
import os
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import av
import msgspec
import pytest
from aiohttp import ClientError, web
from testkit import mcaps
from testkit.mcaps import BEGAN_NS, McapFile
from testkit.recordings import Client, ask

from fpvcar.access.rights import RecordingRights
from fpvcar.library.api import exports
from fpvcar.library.api.export_jobs import ExportRequest, JobFactory
from fpvcar.library.drive_repository import FolderRepository
from fpvcar.library.recording_index import RecordingIndex
from fpvcar.recordings.export import mp4
from fpvcar.recordings.export.mp4_export import Mp4Export
from fpvcar.recordings.export.zipped import DriveZip
from fpvcar.runtime.texts import Text

BASE = "/api/recordings/exports"
NAMES = [f"Plague-20251121T200000Z-{number:04d}.mcap" for number in (1, 2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a drive of two files, two seconds each."""
    made = tmp_path / "recordings"
    made.mkdir()
    pictures = [*mcaps.pictures(4.0)]
    McapFile([*pictures[:60], *mcaps.measured(2.0)]).to(made / NAMES[0])
    later = [*pictures[60:], *mcaps.measured(2.0, 2.0)]
    McapFile(later, segment=2, sequence_from=60).to(made / NAMES[1])
    return made


async def begun(client: Client, kind: str, names: list[str] = NAMES, **more: Any) -> Any:
    answer = await client.post(BASE, json={"kind": kind, "files": names, **more})
    assert answer.status == 201, await answer.text()
    return await answer.json()


async def until(client: Client, one: Any, *states: str) -> Any:
    for _ in range(500):
        said = await (await client.get(f"{BASE}/{one['id']}")).json()
        if said["state"] in states:
            return said
        await asyncio.sleep(0.01)
    raise AssertionError(said)


async def sent(client: Client, one: Any) -> bytes:
    """Return the file of an export."""
    return await (await client.get(f"{BASE}/{one['id']}/file")).read()


async def unzipped(client: Client, one: Any) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(await sent(client, one)))


def pictures_in(data: bytes) -> int:
    with av.open(io.BytesIO(data), "r") as found:
        return sum(1 for _ in found.decode(video=0))


async def test_film_has_exactly_the_announced_size(client: Client) -> None:
    one = await begun(client, "film")
    said = await until(client, one, "ready")
    assert said["exact"] and said["missing"] == [] and said["done"] == 0
    assert said["name"] == "Plague-20251121T200000Z.mp4"
    answer = await client.get(f"{BASE}/{one['id']}/file")
    data = await answer.read()
    assert answer.content_length == len(data) == said["total"]
    assert answer.content_type == "video/mp4"
    assert 'filename="Plague-20251121T200000Z.mp4"' in (answer.headers["Content-Disposition"])
    assert pictures_in(data) == 120
    said = await until(client, one, "sent")
    assert said["done"] == said["total"]
    assert await sent(client, one) == data, "a phone may ask twice"
    head = await client.head(f"{BASE}/{one['id']}/file")
    assert head.content_length == len(data)


async def test_film_of_a_time_range_has_its_pictures_only(client: Client) -> None:
    began_ms = BEGAN_NS / 1e6
    one = await begun(client, "film", from_ms=began_ms + 1000, to_ms=began_ms + 3000)
    assert (await until(client, one, "ready"))["name"] == ("Plague-20251121T200001Z.mp4")
    data = await sent(client, one)
    assert pictures_in(data) == 60


def test_film_plan_rests_for_the_driver_until_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests, before = list[int](), 0
    shelf = FolderRepository(RecordingIndex(folder.iterdir), None, False, lambda: None)
    workshop = JobFactory(shelf, "Plague", lambda: rests.append(1))
    film = workshop.job(ExportRequest("film", NAMES), 0.0).work
    assert isinstance(film, Mp4Export)
    monkeypatch.setattr(mp4, "SLICE", 1)
    for _ in film.plan():
        before = len(rests)
    assert len(rests) - before > film.pictures == 120


async def test_zip_has_unchanged_files_and_tables(folder: Path, client: Client) -> None:
    one = await begun(client, "zip")
    assert one["state"] == "ready" and not one["exact"]
    files = [folder / name for name in NAMES]
    assert one["total"] == sum(path.stat().st_size for path in files)
    answer = await client.get(f"{BASE}/{one['id']}/file")
    assert answer.content_type == "application/zip"
    data = await answer.read()
    with zipfile.ZipFile(io.BytesIO(data)) as made:
        assert made.testzip() is None
        for path in files:
            assert made.read(path.name) == path.read_bytes()
            assert made.getinfo(path.name).compress_type == zipfile.ZIP_STORED
        tables = [one for one in made.namelist() if one.startswith("tables/")]
        assert "tables/battery.csv" in tables and "tables/camera.csv" in tables
        text = made.read("tables/range-front.csv").decode()
        assert len(list(csv.reader(io.StringIO(text)))) == 41
        assert "Nothing is missing." in made.read("README.txt").decode()
    assert (await until(client, one, "sent"))["done"] == len(data)
    with await unzipped(client, one) as second:
        assert second.namelist() == made.namelist()


async def test_export_of_one_file_named_twice_is_refused(client: Client) -> None:
    for kind in ("film", "zip", "csv"):
        asked = {"kind": kind, "files": [NAMES[0]] * 1500}
        answer = await client.post(BASE, json=asked)
        assert answer.status == 400
        assert f"{NAMES[0]!r} is named twice" in await answer.text()


async def test_export_names_damage_on_the_page_and_in_the_zip(folder: Path, client: Client) -> None:
    path = folder / NAMES[0]
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0x10
    path.write_bytes(damaged)
    (folder / NAMES[1]).write_text("Dear reader, this is no recording.")
    film = await begun(client, "film")
    said = await until(client, film, "ready")
    words = " ".join(str(msgspec.convert(text, Text)) for text in said["missing"])
    assert said["name"] == "Plague-20251121T200000Z-incomplete.mp4"
    assert f"{NAMES[0]}: " in words and "bytes are missing" in words
    assert f"{NAMES[1]}: no MCAP" in words and str(folder) not in words
    data = await sent(client, film)
    assert 0 < pictures_in(data) < 60
    one = await begun(client, "zip")
    with await unzipped(client, one) as made:
        note = made.read("README.txt").decode()
        assert made.read(NAMES[1]) == (folder / NAMES[1]).read_bytes()
    assert "bytes are missing" in note and "no MCAP" in note
    assert (await until(client, one, "sent"))["missing"]


async def test_growing_file_is_in_the_film_but_not_in_the_zip(folder: Path, client: Client) -> None:
    growing = folder / (NAMES[1] + ".part")
    os.rename(folder / NAMES[1], growing)
    film = await begun(client, "film", [NAMES[0], growing.name])
    await until(client, film, "ready")
    os.rename(growing, folder / NAMES[1])  # sealed before it is sent
    data = await sent(client, film)
    assert pictures_in(data) == 120
    os.rename(folder / NAMES[1], growing)
    one = await begun(client, "zip", [NAMES[0], growing.name])
    (missing,) = one["missing"]
    assert (missing["key"], missing["values"]) == ("export_growing", {"name": growing.name})
    with await unzipped(client, one) as made:
        assert growing.name not in made.namelist()
    old = BEGAN_NS / 1e9  # left by a run that died
    os.utime(growing, (old, old))
    one = await begun(client, "zip", [NAMES[0], growing.name])
    with await unzipped(client, one) as made:
        assert made.read(growing.name) == growing.read_bytes()


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, ""),
        (b'{"kind": "film", "files": ["\xff"]}', 400, ""),
        (b'{"kind": "film", "files": [], "x": ' + b"[" * 5000, 400, ""),
        (b'{"kind": "film", "files": []}', 400, ""),
        (b'{"kind": "gif", "files": ["a"]}', 400, "gif"),
        (b'{"kind": "film", "files": ["../secret.mcap"]}', 404, "not found"),
        (b'{"kind": "film", "files": [' + b'"a",' * 20_000 + b'"a"]}', 413, ""),
    ],
    ids=["cut", "latin", "deep", "empty", "kind", "escape", "many"],
)
async def test_malformed_export_request_is_refused(
    body: bytes, status: int, says: str, client: Client
) -> None:
    answer = await client.post(BASE, data=body)
    assert answer.status == status and says in await answer.text()


async def test_unknown_export_or_foreign_request_is_refused(client: Client) -> None:
    answer = await client.post(BASE, json={"kind": "zip", "files": ["x" * 60_000]})
    assert answer.status == 404 and "x" * 80 in answer.headers["X-Refusal"]
    assert len(await answer.text()) + len(answer.headers["X-Refusal"]) < 1000
    for path in ("/nothing", "/nothing/file"):
        assert (await client.get(BASE + path)).status == 404
    foreign = {"Sec-Fetch-Site": "cross-site"}
    body = {"kind": "zip", "files": NAMES}
    assert (await client.post(BASE, json=body, headers=foreign)).status == 403


async def test_rights_that_end_during_the_upload_begin_no_export(folder: Path) -> None:
    checked = asyncio.Event()

    class Ending(RecordingRights):
        def let_in(self, request: web.Request) -> None:
            if checked.is_set():
                raise web.HTTPUnauthorized
            checked.set()

    async def slow_body() -> AsyncIterator[bytes]:
        yield b'{"kind": "zip",'
        await checked.wait()
        yield f'"files": {json.dumps(NAMES)}}}'.encode()

    async with ask(folder, rights=Ending()) as client:
        assert (await client.post(BASE, data=slow_body())).status == 401


async def test_drive_without_pictures_makes_no_film(folder: Path, client: Client) -> None:
    McapFile(list(mcaps.measured(1.0))).to(folder / NAMES[0])
    one = await begun(client, "film", NAMES[:1])
    said = await until(client, one, "failed")
    assert said["fault"]["key"] == "export_no_picture"
    answer = await client.get(f"{BASE}/{one['id']}/file")
    assert answer.status == 410 and "no picture" in await answer.text()


async def test_cancelled_or_unwatched_film_plan_stops(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    """At most two plans run at once."""
    held, steps = threading.Event(), [0]

    def slow(_: Any) -> int:
        held.wait(0.01)
        steps[0] += 1
        return 0

    monkeypatch.setattr(exports, "advance", slow)
    one = await begun(client, "film")
    two = await begun(client, "film")
    third = await client.post(BASE, json={"kind": "zip", "files": NAMES})
    assert third.status == 429 and "2 exports" in await third.text()
    assert (await client.get(f"{BASE}/{one['id']}/file")).status == 409
    answer = await client.delete(f"{BASE}/{one['id']}")
    assert (await answer.json())["state"] == "stopped"
    assert (await client.get(f"{BASE}/{one['id']}/file")).status == 410
    monkeypatch.setattr(exports, "UNSEEN_S", -1.0)
    await until(client, two, "stopped")
    count = steps[0]
    await asyncio.sleep(0.05)
    assert steps[0] <= count + 1, "it goes on"


@pytest.mark.parametrize("kind", ["film", "zip"])
@pytest.mark.parametrize("how", ["leaves", "cancels"])
async def test_sending_stops_when_its_reader_leaves_or_cancels(
    monkeypatch: pytest.MonkeyPatch, kind: str, how: str, client: Client
) -> None:
    """Sending is endless here, until its reader is gone, or it is cancelled."""
    closed = threading.Event()

    def endless(self: Any) -> Any:
        try:
            while True:
                yield bytes(64 * 1024)
        finally:
            closed.set()

    made = Mp4Export if kind == "film" else DriveZip
    monkeypatch.setattr(made, "pieces", endless)
    monkeypatch.setattr(Mp4Export, "size", 1 << 40)
    one = await begun(client, kind)
    await until(client, one, "ready")
    answer = await client.get(f"{BASE}/{one['id']}/file")
    await answer.content.readexactly(200_000)
    assert (await until(client, one, "sending"))["done"] >= 200_000
    if how == "leaves":
        answer.close()
    else:
        assert (await client.delete(f"{BASE}/{one['id']}")).status == 200
        with pytest.raises(ClientError):
            await answer.content.read()
    await until(client, one, "stopped")
    assert await asyncio.to_thread(closed.wait, 5.0), "it goes on"


@pytest.mark.parametrize("kind", ["film", "zip"])
async def test_export_failing_midway_is_cut_and_reports_its_fault(
    monkeypatch: pytest.MonkeyPatch, kind: str, client: Client
) -> None:
    def failing(self: Any) -> Any:
        yield bytes(1000)
        raise OSError(5, "Input/output error")

    made = Mp4Export if kind == "film" else DriveZip
    monkeypatch.setattr(made, "pieces", failing)
    one = await begun(client, kind)
    await until(client, one, "ready")
    with pytest.raises(ClientError):
        await sent(client, one)
    said = await until(client, one, "failed")
    assert said["fault"]["key"] == "os_eio"


async def test_oldest_exports_beyond_the_limit_are_forgotten(client: Client) -> None:
    ids = [(await begun(client, "zip"))["id"] for _ in range(exports.KEPT_MAX + 2)]
    known = [(await client.get(f"{BASE}/{one}")).status for one in ids]
    assert known == [404, 404, *[200] * exports.KEPT_MAX]

"""Route /api/recordings: lists and plays files, also damaged and growing ones."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.mcaps import BEGAN_NS, FRAME_NS, McapFile
from testkit.recordings import NAME, SECONDS, Client, ask, drive_messages, units

from fpvcar.library import recording_index
from fpvcar.library.cache import RecordingCache
from fpvcar.library.index import NAME as INDEX
from fpvcar.library.recording_index import RecordingIndex
from fpvcar.library.summaries import Entry
from fpvcar.recordings import messages
from fpvcar.recordings.export import pictures
from fpvcar.recordings.mcap import protobuf, records


async def test_list_gives_name_state_time_size_and_marks(folder: Path, client: Client) -> None:
    answer = await client.get("/api/recordings")
    said = await answer.json()
    assert (said["car"], said["seat"]) == ("Plague", True)
    (one,) = said["recordings"]
    assert one["name"] == NAME and one["state"] == "closed"
    assert one["start_ms"] == pytest.approx(BEGAN_NS / 1e6, abs=1)
    assert one["seconds"] == pytest.approx(SECONDS, abs=0.05)
    assert one["bytes"] == (folder / NAME).stat().st_size
    assert one["pictures"] == 120
    assert one["marks"] == [{"t": 2.0, "text": "look here"}]
    assert answer.headers["Cache-Control"] == "no-store"


async def test_unlistable_files_do_not_hide_the_others(folder: Path, client: Client) -> None:
    """Odd files: an undecodable name, a pipe, and wrong summaries with a valid CRC."""
    (folder / os.fsdecode(b"Pl\xe4gue.mcap")).write_bytes(b"latin")
    os.mkfifo(folder / "pipe.mcap")
    for name, index in (("odd", bytes(7)), ("huge", struct.pack("<HQ", 12, 0))):
        place = struct.pack("<4QI", 0, 9, 8, 2**63, len(index)) + index + bytes(8 + 4 + 16)
        marks = records.channel(12, 0, messages.MARK, "protobuf")
        counts = records.statistics(records.Counts({}, 0, 1, 0, 9))
        head = records.MAGIC + records.header("x") + records.data_end()
        groups = (
            (records.CHANNEL, marks),
            (records.STATISTICS, counts),
            (records.CHUNK_INDEX, records.record(records.CHUNK_INDEX, place)),
        )
        data = head + records.summary(len(head), groups)
        (folder / f"{name}.mcap").write_bytes(data)

    answer = await client.get("/api/recordings")
    said = {one["name"]: one for one in (await answer.json())["recordings"]}
    assert set(said) == {NAME, "odd.mcap", "huge.mcap"}
    assert said["odd.mcap"]["state"] == "damaged"
    assert said["huge.mcap"]["state"] == "closed" and not said["huge.mcap"]["marks"]
    assert said[NAME]["state"] == "closed"


async def test_failing_card_gives_422_with_the_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    (entry,) = RecordingIndex(lambda: [folder / NAME / "x.mcap"]).entries()
    assert entry.state == "damaged" and "Not a directory" in entry.lost

    def broken(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", broken)
    for end in ("", f"/{NAME}", f"/{NAME}/table"):
        answer = await client.get("/api/recordings" + end)
        assert answer.status == 422 and "Input/output" in await answer.text()


async def test_units_beyond_the_byte_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr(pictures, "STRETCH_MOST", 300_000)
    url = f"/api/recordings/{NAME}/units"
    answer = await client.get(f"{url}?seconds=30")
    assert answer.status == 422 and "ask for fewer seconds" in await answer.text()
    assert (await client.get(f"{url}?from=3&seconds=0.05")).status == 200


async def test_impossible_capture_time_loses_only_its_picture(folder: Path, client: Client) -> None:
    one, *others = mcaps.pictures(1.0)
    stamp = protobuf.sized(1, b"\x08" + b"\xff" * 9 + b"\x01")
    at = one.data.index(b"\x1a")
    far = one._replace(log_ns=one.log_ns + 500_000_000, data=stamp + one.data[at:])
    McapFile([one, far, *others]).to(folder / NAME)
    answer = await client.get(f"/api/recordings/{NAME}/units")
    assert answer.status == 200 and 20 <= len(units(await answer.read())) < 30


async def test_missing_folder_is_an_empty_list(tmp_path: Path) -> None:
    async with ask(tmp_path / "never made") as client:
        said = await (await client.get("/api/recordings")).json()
        assert said["recordings"] == []


async def test_units_begin_with_the_key_frame_before_the_start(client: Client) -> None:
    url = f"/api/recordings/{NAME}/units"
    found = units(await (await client.get(f"{url}?from=1.5&seconds=1")).read())
    times_s = [(head.capture_us * 1000 - BEGAN_NS) / 1e9 for head, _ in found]
    assert found[0][0].key and 1.0 < times_s[0] <= 1.515
    assert times_s == sorted(times_s) and times_s[-1] < 2.515
    assert encode(120, gop=10)[45] in [unit for _, unit in found]
    everything = units(await (await client.get(f"{url}?seconds=30")).read())
    assert [(head.capture_us, unit) for head, unit in everything] == [
        ((BEGAN_NS + n * FRAME_NS) // 1000, unit) for n, unit in enumerate(encode(120, gop=10))
    ]
    first = units(await (await client.get(f"/api/recordings/{NAME}/thumbnail")).read())
    assert len(first) == 1 and first[0][0].key


@pytest.mark.parametrize("query", ["from=x", "from=-1", "from=nan", "seconds=31"])
async def test_bad_query_number_is_refused_with_its_bounds(query: str, client: Client) -> None:
    answer = await client.get(f"/api/recordings/{NAME}/units?{query}")
    assert answer.status == 400 and "expected 0 to" in await answer.text()


async def test_table_has_series_marks_and_thinning(client: Client) -> None:
    said = await (await client.get(f"/api/recordings/{NAME}/table")).json()
    lines = {(one["group"], one["name"]): one for one in said["series"]}
    front = lines["range", "front"]
    assert front["unit"] == "m" and len(front["t"]) == len(front["v"]) == 40
    assert front["v"][:5] == [1.0, 1.01, 1.02, None, 1.04]
    assert {group for group, _ in lines} == {"range", "battery", "current", "latency", "lost"}
    assert said["marks"] == [{"t": 2.0, "text": "look here"}]
    thin = await (await client.get(f"/api/recordings/{NAME}/table?points=10")).json()
    longest = max(len(one["t"]) for one in thin["series"])
    assert 5 <= longest <= 16


async def test_silent_battery_has_no_voltage_in_the_table(folder: Path, client: Client) -> None:
    heard = messages.Battery(7.4, 0.5, 0.6, False, 0.01)
    lost = messages.Battery(7.4, 0.5, 0.6, False, 2.5, "INA219: no answer")
    mcap_file = [
        mcaps.logged(messages.BATTERY, number / 10, heard if number < 3 else lost)
        for number in range(6)
    ]
    McapFile(mcap_file).to(folder / NAME)
    said = await (await client.get(f"/api/recordings/{NAME}/table")).json()
    lines = {one["name"]: one["v"] for one in said["series"]}
    assert lines["volts"] == [7.4] * 3 + [None] * 3
    assert lines["amps"] == [0.5] * 3 + [None] * 3


async def test_damaged_file_is_reported_and_plays(folder: Path, client: Client) -> None:
    mcaps.flipped(folder / NAME, McapFile(drive_messages()).chunks(), 2)
    old = folder / "old.mcap.part"
    McapFile(drive_messages(), closed=False).to(old)
    os.utime(old, (1, 1))
    (folder / "broken.mcap").write_bytes(b"no recording")
    said = await (await client.get("/api/recordings")).json()
    states = {one["name"]: one for one in said["recordings"]}
    assert states["old.mcap.part"]["state"] == "damaged"
    assert states["old.mcap.part"]["lost"] == "never closed"
    assert states["old.mcap.part"]["marks"][0]["t"] == 2.0
    assert "no MCAP" in states["broken.mcap"]["lost"]
    table = await (await client.get(f"/api/recordings/{NAME}/table")).json()
    assert len(table["gaps"]) == 1 and table["gaps"][0]["words"]["key"] == "lost_here"
    whole = units(await (await client.get(f"/api/recordings/{NAME}/units?seconds=30")).read())
    assert 80 < len(whole) < 120
    broken = await client.get("/api/recordings/broken.mcap/table")
    assert broken.status == 422 and "no MCAP" in await broken.text()


async def test_open_file_plays_but_is_not_downloaded(folder: Path, client: Client) -> None:
    name = "Plague-20251121T200000Z-0002.mcap.part"
    McapFile(drive_messages(), closed=False).to(folder / name)
    said = await (await client.get("/api/recordings")).json()
    states = {one["name"]: one["state"] for one in said["recordings"]}
    assert states[name] == "open"
    refused = await client.get(f"/api/recordings/{name}")
    assert refused.status == 409 and "still being written" in await refused.text()
    answer = await client.get(f"/api/recordings/{name}/units?seconds=30")
    assert len(units(await answer.read())) == 120


async def test_file_sealed_meanwhile_is_found_by_its_old_name(client: Client) -> None:
    answer = await client.get(f"/api/recordings/{NAME}.part/units?seconds=0.95")
    assert len(units(await answer.read())) == 29


def test_listed_files_are_read_once_until_they_change(folder: Path, looked: list[str]) -> None:
    found = RecordingIndex(lambda: recording_index.files_in(folder))
    assert found.entries() == found.entries() and len(looked) == 1
    os.utime(folder / NAME, (5, 5))
    found.entries()
    assert len(looked) == 2
    assert [one.name for one in found.entries()] == [NAME]
    (folder / NAME).unlink()
    assert found.entries() == []


def many(folder: Path, count: int) -> list[str]:
    """Add files of the same bytes; return the names of all."""
    for number in range(2, count + 1):
        (folder / NAME.replace("0001", f"{number:04d}")).hardlink_to(folder / NAME)
    return sorted(one.name for one in folder.iterdir())


def test_stale_or_damaged_index_entries_are_read_anew(
    folder: Path, looked: list[str], listed_anew: Callable[[], list[Entry]]
) -> None:
    names, listed = many(folder, 20), listed_anew
    first = listed()
    assert looked == names and [one.name for one in first] == names
    assert (folder / INDEX).stat().st_mode & 0o777 == 0o600
    assert listed() == first and looked == []
    other = folder / names[3]
    data = other.read_bytes()
    other.unlink()  # of the same size and time: only its inode is another one
    other.write_bytes(data)
    os.utime(other, ns=(0, (folder / NAME).stat().st_mtime_ns))
    assert listed() == first and looked == [names[3]]
    (folder / names[5]).unlink()
    assert [one.name for one in listed()] == [*names[:5], *names[6:]]
    for wrong in (b"", b"[]", b"{", b"\xff", b'{"a":[[1,2,3],5]}', b"[" * 100_000):
        (folder / INDEX).write_bytes(wrong)
        assert [one.name for one in listed()] == [*names[:5], *names[6:]]
        assert len(looked) == 19 and listed() and looked == [], "made anew"


def test_folder_that_takes_no_index_is_still_listed(folder: Path) -> None:
    names = many(folder, 20)
    (folder / INDEX).mkdir()
    found = RecordingIndex(lambda: recording_index.files_in(folder), folder=folder)
    assert [one.name for one in found.entries()] == names


async def test_recordings_list_comes_in_pages(folder: Path, client: Client) -> None:
    names = many(folder, 7)

    async def page(query: str) -> tuple[list[str], bool | None]:
        said = await (await client.get(f"/api/recordings{query}")).json()
        return [one["name"] for one in said["recordings"]], said.get("more")

    assert await page("") == (names, None)
    assert await page("?most=3") == (names[4:], True)
    assert await page(f"?most=3&before={names[4]}") == (names[1:4], True)
    assert await page(f"?most=3&before={names[1]}") == (names[:1], False)
    assert await page(f"?before={names[0]}") == ([], False)
    assert (await client.get("/api/recordings?most=0")).status == 400


def test_closed_cache_opens_the_file_anew(folder: Path) -> None:
    opened = RecordingCache(lambda: 0.0)
    first = opened.get(folder / NAME, False)
    assert opened.get(folder / NAME, False) is first
    opened.close()
    assert opened.get(folder / NAME, False) is not first
    opened.close()


def test_growing_file_is_read_anew_after_five_seconds(folder: Path) -> None:
    now_s = 100.0
    opened = RecordingCache(lambda: now_s)
    first = opened.get(folder / NAME, True)
    now_s += 4.0
    assert opened.get(folder / NAME, True) is first
    now_s += 2.0
    assert opened.get(folder / NAME, True) is not first
    opened.close()


async def test_thumbnail_is_the_first_key_frame_from_the_start(client: Client) -> None:
    url = f"/api/recordings/{NAME}/thumbnail"
    times = []
    for end in ("", "?from=2"):
        ((header, _),) = units(await (await client.get(url + end)).read())
        assert header.key
        times.append(header.capture_us)
    assert 1_990_000 <= times[1] - times[0] < 2_500_000
    assert (await client.get(f"{url}?from=9")).status == 404
    assert (await client.get(f"{url}?from=x")).status == 400

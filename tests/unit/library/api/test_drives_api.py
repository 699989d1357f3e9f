"""Route /api/recordings/drives: listing, naming, deleting, and the rights for each."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit import mcaps
from testkit.mcaps import BEGAN_NS, RECORDING, Logged, McapFile
from testkit.recorder.recording import step
from testkit.recordings import CODES, Client, ask, no_devices

from fpvcar.access.codes import CodeCheck
from fpvcar.access.remembered_browsers import GROWN_UP_S
from fpvcar.access.rights import CODE, DeviceRights
from fpvcar.drive.gate import Latches
from fpvcar.library import drive_repository, recording_index, summaries
from fpvcar.library.recording_index import RecordingIndex
from fpvcar.recordings import messages
from fpvcar.recordings.messages import Stint, Stints, Turn
from fpvcar.runtime.units import SECOND_NS

DRIVES = "/api/recordings/drives"
ORIGIN = {"Origin": "http://car.example"}
ANN = f"{RECORDING}-0001@0"
CALM = Latches(None, None)


def brief(*spans: tuple[float, float, str]) -> Logged:
    """Return the brief of drivers, the last message of a file by the recorder."""
    said = Stints(
        tuple(
            Stint(
                BEGAN_NS + round(a * SECOND_NS),
                BEGAN_NS + round(b * SECOND_NS),
                name,
                2.5,
                {"estop": 1},
            )
            for a, b, name in spans
        )
    )
    return mcaps.logged(messages.STINTS, spans[-1][1], said)


def minute(number: int, *spans: tuple[float, float, str]) -> McapFile:
    """Return a file of a minute without pictures, with its drivers."""
    from_s = (number - 1) * 60.0
    ends = [
        mcaps.logged(messages.LIGHTS, from_s + at_s, messages.Lights(True)) for at_s in (0.0, 59.9)
    ]
    return McapFile([*ends, brief(*spans)], number)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a drive of Ann for 70 s, a pause of 35 s, then a drive of Bob for 75 s: three files,
    of which the second is shared."""
    made = tmp_path / "recordings"
    made.mkdir()
    for number, spans in enumerate(
        (
            [(0.0, 60.0, "Ann")],
            [(60.0, 70.0, "Ann"), (105.0, 120.0, "Bob")],
            [(120.0, 179.9, "Bob")],
        ),
        1,
    ):
        minute(number, *spans).to(made / f"{RECORDING}-{number:04d}.mcap")
    return made


async def listed(client: Client, query: str = "") -> dict[str, Any]:
    answer = await client.get(DRIVES + query)
    assert answer.status == 200, await answer.text()
    found: dict[str, Any] = await answer.json()
    return found


async def change(client: Client, what: str, drive: str = ANN, **more: Any) -> tuple[int, str]:
    """Name or delete a drive like our page; return status and text of the answer."""
    answer = await client.post(f"{DRIVES}/{drive}/{what}", **{"headers": ORIGIN, **more})
    return answer.status, await answer.text()


async def grow_up(client: Client, code: str = "grownups") -> None:
    answer = await client.post("/api/recordings/unlock", headers={CODE: code})
    assert answer.status == 204


async def test_drives_are_listed_the_newest_first(client: Client) -> None:
    said = await listed(client)
    assert (said["car"], said["seat"], said["editable"]) == ("Plague", True, True)
    assert not said["grown_up"] and not said["more"] and said["unread"] == 0
    assert said["drivers"] == ["Ann", "Bob"]
    bob, parked, ann = said["drives"]
    assert (bob["drivers"], parked["drivers"]) == (["Bob"], []) and parked["parked"]
    assert ann["seconds"] == pytest.approx(70.0) and ann["metres"] == 5.0
    assert bob["stops"] == {"estop": 2} and ann["id"] == f"{RECORDING}-0001@0"
    assert [one["from_s"] for one in bob["parts"]] == pytest.approx([45.0, 0.0])


async def test_drives_list_is_filtered_and_paged(client: Client) -> None:

    async def drivers(query: str) -> list[list[str]]:
        return [one["drivers"] for one in (await listed(client, query))["drives"]]

    assert await drivers("?driver=Ann") == [["Ann"]]
    assert await drivers("?wheel=parked") == [[]]
    assert await drivers("?wheel=driven&text=stop&cause=estop") == [["Bob"], ["Ann"]]
    assert await drivers("?text=nothing") == []
    assert await drivers(f"?since={BEGAN_NS / 1e6 + 100_000}") == [["Bob"]]
    first = await listed(client, "?most=2")
    assert first["more"] and len(first["drives"]) == 2
    before = first["drives"][-1]["start_ms"]
    rest = await listed(client, f"?most=2&before={before}")
    assert not rest["more"] and [one["drivers"] for one in rest["drives"]] == [["Ann"]]
    for query, words in (("wheel=x", "driven or parked"), ("most=0", "1 to 1000")):
        answer = await client.get(f"{DRIVES}?{query}")
        assert answer.status == 400 and words in await answer.text()


async def test_parked_time_is_listed_if_there_was_no_driver(tmp_path: Path) -> None:
    light = mcaps.logged(messages.LIGHTS, 0.0, messages.Lights(True))
    empty = mcaps.logged(messages.STINTS, 59.0, Stints())
    McapFile([light, empty]).to(tmp_path / f"{RECORDING}-0001.mcap")
    async with ask(tmp_path) as client:
        (one,) = (await listed(client, "?wheel=driven"))["drives"]
        assert one["parked"] and one["seconds"] == pytest.approx(59.0)


async def test_unread_files_block_titles_and_deletions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    """A file that was not read yet may be shared."""
    monkeypatch.setattr(drive_repository, "LOOK_S", 0.0)
    await grow_up(client)
    assert (await listed(client))["unread"] == 3
    for what in ("title", "delete"):
        status, said = await change(client, what)
        assert status == 409 and "still being read" in said
    assert len(list(folder.glob("*.mcap"))) == 3


async def test_drive_title_is_cleaned_stored_and_bounded(client: Client) -> None:
    params = {"title": "  To the\n kitchen "}
    assert (await change(client, "title", params=params))[0] == 200
    said = await listed(client, "?text=kitchen")
    assert [one["title"] for one in said["drives"]] == ["To the kitchen"]
    for title in ("x" * 65, "a\u202eb", "a\x1bb"):
        status, text = await change(client, "title", params={"title": title})
        assert status == 400 and "at most 64" in text, title
    status, text = await change(client, "title", f"{RECORDING}-0009@0", params=params)
    assert status == 404 and "reload the page" in text
    status, _ = await change(client, "title", params=params, headers={})
    assert status == 401, "no page of ours"


async def test_deletion_of_a_drive_needs_a_grown_up(folder: Path, client: Client) -> None:
    before = sorted(folder.iterdir())
    for code in ("", "123456"):
        if code:
            await grow_up(client, code)
        status, text = await change(client, "delete")
        assert status == 401 and "grown-up" in text
    assert (await client.get(f"{DRIVES}/{ANN}/delete")).status in (404, 405)
    head = {**ORIGIN, "Sec-Fetch-Site": "cross-site"}
    await grow_up(client)
    assert (await change(client, "delete", headers=head))[0] == 403
    assert (await listed(client))["grown_up"]
    assert sorted(folder.iterdir()) == before


async def test_deletion_keeps_files_shared_with_another_drive(folder: Path, client: Client) -> None:
    first = folder / f"{RECORDING}-0001.mcap"
    for mark in (".ack", ".keep", ".parked"):
        first.with_name(first.name + mark).touch()
    await grow_up(client)
    said = json.loads((await change(client, "delete"))[1])
    assert said == {"gone": [f"{RECORDING}-0001.mcap"], "stay": [f"{RECORDING}-0002.mcap"]}
    assert (await client.get("/api/recordings/" + said["stay"][0])).status == 200
    assert sorted(one.name for one in folder.iterdir()) == [
        ".deleted.json",
        f"{RECORDING}-0002.mcap",
        f"{RECORDING}-0003.mcap",
    ]


async def test_rest_of_a_deleted_drive_is_not_listed(folder: Path) -> None:
    """A restart without an index does not list it either, nor does it keep a file of Bob's."""
    async with ask(folder) as client:
        await grow_up(client)
        before = (await listed(client))["drives"]
        await change(client, "delete", before[-1]["id"])
        said = await listed(client)
        assert [one["drivers"] for one in said["drives"]] == [["Bob"], []]
        assert said["drivers"] == ["Bob"]
        for one, same in zip(said["drives"], before, strict=False):
            assert {**one, "parts": ()} == {**same, "parts": ()}, "as it was"
        assert not any(part["shared"] for part in said["drives"][0]["parts"])
    (folder / ".list.json").unlink(missing_ok=True)
    async with ask(folder) as client:
        await grow_up(client)
        bob, parked = (await listed(client))["drives"]
        assert (bob["drivers"], parked["drivers"]) == (["Bob"], [])
        said = json.loads((await change(client, "delete", bob["id"]))[1])
        assert said["stay"] == [] and len(said["gone"]) == 2
        assert (await listed(client))["drives"] == []
    assert list(folder.glob("*.mcap")) == []
    assert (folder / ".deleted.json").read_bytes() == b"{}", "gone with its file"


async def test_deletion_succeeds_though_its_list_cannot_be_saved(
    folder: Path, client: Client
) -> None:
    (folder / ".deleted.json").mkdir()
    await grow_up(client)
    _, said = await change(client, "delete")
    assert json.loads(said)["gone"] == [f"{RECORDING}-0001.mcap"]
    left = (await listed(client))["drives"]
    assert [one["drivers"] for one in left] == [["Bob"], [], ["Ann"]]
    assert left[-1]["seconds"] == pytest.approx(10.0)


async def test_drive_still_being_recorded_is_not_deleted(folder: Path, client: Client) -> None:
    last = folder / f"{RECORDING}-0003.mcap"
    part = last.rename(last.with_name(last.name + ".part"))
    await grow_up(client)
    bob, _, ann = (await listed(client))["drives"]
    assert bob["state"] == "open" and ann["state"] == "closed"
    status, said = await change(client, "delete", bob["id"])
    assert status == 409 and "still being recorded" in said
    os.utime(part, (1, 1))
    bob = (await listed(client))["drives"][0]
    assert bob["state"] != "open", "a run before left it open"
    assert (await change(client, "delete", bob["id"]))[0] == 409, "it will be sealed"
    assert len(list(folder.glob("*.mcap*"))) == 3


async def test_grown_up_rights_end_half_an_hour_after_last_change(folder: Path) -> None:
    times_s, known = [1000.0], no_devices()
    rights = DeviceRights(CodeCheck(CODES), known, utc_s=lambda: times_s[-1])
    async with ask(folder, at_home=False, rights=rights) as client:
        await grow_up(client)
        times_s.append(times_s[-1] + GROWN_UP_S - 1.0)
        assert (await change(client, "title", params={"title": "x"}))[0] == 200
        times_s.append(times_s[-1] + GROWN_UP_S - 1.0)
        assert (await listed(client))["grown_up"], "a change was a use of its rights"
        times_s.append(times_s[-1] + 1.0)
        assert not (await listed(client))["grown_up"], "to look is none"
        assert (await change(client, "delete"))[0] == 401
        await grow_up(client)
        (device,) = known.all()
        known.lock(device)
        assert (await change(client, "delete"))[0] == 401, "locked again, at the seat"
        await grow_up(client)
        assert (await change(client, "delete"))[0] == 200 and known.all() == [device]


def test_file_without_a_brief_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions wrote no brief: the steps hold the same facts."""
    steps = [mcaps.logged(messages.STEP, 180.0 + n / 50, step(n, after=CALM)) for n in range(100)]
    driver = mcaps.logged(messages.DRIVER, 181.0, Turn("Eve"))
    McapFile([*steps, driver], 4).to(folder / f"{RECORDING}-0004.mcap")
    found = RecordingIndex(lambda: recording_index.files_in(folder))
    (eve,) = found.entries()[-1].stints or ()
    assert eve.name == "Eve" and eve.metres > 0.0
    looked: list[Path] = []
    monkeypatch.setattr(summaries, "entry_of", lambda path, _: looked.append(path))
    assert len(found.scan(1.0).entries) == 4 and looked == []


def test_files_not_read_in_time_are_counted_as_unread(folder: Path) -> None:
    ticks = iter(range(1000))

    def clock_s() -> float:
        return float(next(ticks))

    found = RecordingIndex(lambda: recording_index.files_in(folder), clock_s)
    first = found.scan(2.0)
    names = [one.name for one in first.entries]
    assert first.unread and names and names[-1].endswith("0003.mcap"), "the newest"
    for _ in range(3):
        last = found.scan(2.0)
    assert last.unread == 0 and len(last.entries) == 3


def test_unreadable_files_are_read_once(
    folder: Path, looked: list[str], listed_anew: Callable[[], list[summaries.Entry]]
) -> None:
    (folder / "broken.mcap").write_bytes(b"no recording" * 1000)
    for number in range(20):
        (folder / f"none{number}.mcap").write_bytes(b"nor this")
    first = listed_anew()
    assert listed_anew() == first and looked == []
    (broken,) = [one for one in first if one.name == "broken.mcap"]
    assert broken.unreadable and broken.lost.startswith("no MCAP"), "no path in it"
    (folder / "broken.mcap").write_bytes(b"still none")
    listed_anew()
    assert looked == ["broken.mcap"]
    index = folder / ".list.json"
    index.write_bytes(index.read_bytes().replace(b"none7.mcap", b"none7.mc\n\nap"))
    assert {one.name for one in listed_anew()} == {one.name for one in first}
    assert sorted(looked) == ["broken.mcap", "none7.mcap"], "a torn line, and no other"

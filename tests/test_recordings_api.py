"""/api/recordings: who may see, what is listed, downloaded, played; no way out."""

import asyncio
import json
import os
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from fpvcar import paths
from fpvcar.access import Codes, Door
from fpvcar.recording import film, format, library, page, protobuf, records
from fpvcar.recording.library import Library
from fpvcar.recording.opened import Opened
from fpvcar.recordings_api import CODE, Recordings, Shown, Tokens
from fpvcar.server import Server
from fpvcar.wire import down
from fpvcar.wire.video import VIDEO_HEADER, VideoHeader, parse_video
from tests import tapes
from tests.tapes import BEGAN_NS, FRAME_NS, Tape
from tests.video_source import encode

SECONDS = 4.0
NAME = "Plague-20251121T200000Z-0001.mcap"
Client = TestClient[Any, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one whole recording, and a secret beside it."""
    made = tmp_path / "recordings"
    made.mkdir()
    (tmp_path / "secret.mcap").write_bytes(b"secret")
    messages = [*tapes.pictures(SECONDS), *tapes.senses(SECONDS)]
    Tape(messages).to(made / NAME)
    return made


def ask(
    folder: Path, act: Callable[[Client], Awaitable[None]], *, at_home: bool = True
) -> None:
    """Runs the routes; not at home means from another machine."""

    @web.middleware
    async def elsewhere(request: web.Request, handler: Any) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(
            request if at_home else request.clone(remote="192.0.2.7")
        )
        return answer

    async def run() -> None:
        app = web.Application(middlewares=[elsewhere])
        Recordings(
            lambda: library.files_in(folder), Shown("Plague", True),
            Door(Codes("123456", "grownups")),
        ).add_to(app)  # fmt: skip
        async with TestClient(TestServer(app)) as client:
            await act(client)

    asyncio.run(run())


def units(body: bytes) -> list[tuple[VideoHeader, bytes]]:
    """The frames of an answer, as the page cuts them."""
    found, at = [], 0
    while at < len(body):
        size = VIDEO_HEADER.size + int.from_bytes(body[at + 16 : at + 20], "little")
        found.append(parse_video(body[at : at + size]))
        at += size
    return found


def test_the_list_says_what_there_is(folder: Path) -> None:
    async def act(client: Client) -> None:
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

    ask(folder, act)


def test_what_cannot_be_listed_hides_nothing_else(folder: Path) -> None:
    """A name that is no text, a pipe, and summaries that lie, with a CRC that holds."""
    (folder / os.fsdecode(b"Pl\xe4gue.mcap")).write_bytes(b"latin")
    os.mkfifo(folder / "pipe.mcap")
    for name, index in (("odd", bytes(7)), ("huge", struct.pack("<HQ", 12, 0))):
        place = (
            struct.pack("<4QI", 0, 9, 8, 2**63, len(index)) + index + bytes(8 + 4 + 16)
        )
        marks = records.channel(12, 0, format.MARK, "protobuf")
        counts = records.statistics(records.Counts({}, 0, 1, 0, 9))
        head = records.MAGIC + records.header("x") + records.data_end()
        groups = (
            (records.CHANNEL, marks), (records.STATISTICS, counts),
            (records.CHUNK_INDEX, records.record(records.CHUNK_INDEX, place)),
        )  # fmt: skip
        data = head + records.summary(len(head), groups)
        (folder / f"{name}.mcap").write_bytes(data)

    async def act(client: Client) -> None:
        answer = await client.get("/api/recordings")
        said = {one["name"]: one for one in (await answer.json())["recordings"]}
        assert set(said) == {NAME, "odd.mcap", "huge.mcap"}
        assert said["odd.mcap"]["state"] == "damaged"
        assert said["huge.mcap"]["state"] == "closed" and not said["huge.mcap"]["marks"]
        assert said[NAME]["state"] == "closed"

    ask(folder, act)


def test_a_card_that_fails_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = Library(lambda: [folder / NAME / "x.mcap"]).entries()
    assert entry.state == "damaged" and "Not a directory" in entry.lost

    def broken(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", broken)

    async def act(client: Client) -> None:
        for end in ("", f"/{NAME}", f"/{NAME}/table"):
            answer = await client.get("/api/recordings" + end)
            assert answer.status == 422 and "Input/output" in await answer.text()

    ask(folder, act)


def test_more_pictures_than_fit_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(film, "STRETCH_MOST", 300_000)

    async def act(client: Client) -> None:
        url = f"/api/recordings/{NAME}/units"
        answer = await client.get(f"{url}?seconds=30")
        assert answer.status == 422 and "ask for fewer seconds" in await answer.text()
        assert (await client.get(f"{url}?from=3&seconds=0.05")).status == 200

    ask(folder, act)


def test_a_time_from_nowhere_costs_its_picture_only(folder: Path) -> None:
    one, *others = tapes.pictures(1.0)
    stamp = protobuf.sized(1, b"\x08" + b"\xff" * 9 + b"\x01")
    at = one.data.index(b"\x1a")
    far = one._replace(log_ns=one.log_ns + 500_000_000, data=stamp + one.data[at:])
    Tape([one, far, *others]).to(folder / NAME)

    async def act(client: Client) -> None:
        answer = await client.get(f"/api/recordings/{NAME}/units")
        assert answer.status == 200 and 20 <= len(units(await answer.read())) < 30

    ask(folder, act)


def test_nothing_recorded_is_an_empty_list(tmp_path: Path) -> None:
    async def act(client: Client) -> None:
        said = await (await client.get("/api/recordings")).json()
        assert said["recordings"] == []

    ask(tmp_path / "never made", act)


def test_a_file_is_downloaded_whole_and_in_part(folder: Path) -> None:
    data = (folder / NAME).read_bytes()

    async def act(client: Client) -> None:
        url = f"/api/recordings/{NAME}"
        answer = await client.get(url)
        assert answer.status == 200 and await answer.read() == data
        assert answer.headers["Content-Disposition"] == (
            f'attachment; filename="{NAME}"'
        )
        for text, wanted in (
            ("bytes=0-99", data[:100]), ("bytes=100-", data[100:]),
            ("bytes=-50", data[-50:]),
        ):  # fmt: skip
            part = await client.get(url, headers={"Range": text})
            assert part.status == 206 and await part.read() == wanted
        beyond = await client.get(url, headers={"Range": f"bytes={len(data)}-"})
        assert beyond.status == 416
        assert (await client.head(url)).content_length == len(data)

    ask(folder, act)


@pytest.mark.parametrize(
    "name",
    [
        "..%2Fsecret.mcap", "../secret.mcap", "%2e%2e/secret.mcap", "..", ".",
        "link.mcap", "..%5Csecret.mcap", "%00", "secret.mcap", "notes.txt",
        "x" * 300, f"{NAME}%2f..%2f{NAME}", "%ff",
    ],
)  # fmt: skip
def test_no_name_leads_elsewhere(folder: Path, name: str) -> None:
    (folder / "link.mcap").symlink_to(folder.parent / "secret.mcap")
    (folder / "notes.txt").write_text("not for everybody")

    async def act(client: Client) -> None:
        for end in ("", "/units", "/table", "/thumbnail"):
            answer = await client.get(f"/api/recordings/{name}{end}")
            body = await answer.read()
            listed = name == "." and answer.status == 200  # the list itself
            assert answer.status == 404 or listed, (name, end, answer.status)
            assert b"secret" not in body.replace(b"secret.mcap", b"")

    ask(folder, act)


def test_names_with_dots_and_spaces_are_names(folder: Path) -> None:
    odd = "my..car v1.2 ä.mcap"
    os.rename(folder / NAME, folder / odd)

    async def act(client: Client) -> None:
        answer = await client.get(f"/api/recordings/{odd}")
        assert answer.status == 200
        said = answer.headers["Content-Disposition"]
        assert 'filename="my..car v1.2 _.mcap"' in said
        assert said.endswith("filename*=UTF-8''my..car%20v1.2%20%C3%A4.mcap")

    ask(folder, act)


def test_a_name_cannot_write_headers(folder: Path) -> None:
    os.rename(folder / NAME, folder / 'a"\r\nX-Evil: 1\\.mcap')

    async def act(client: Client) -> None:
        answer = await client.get(
            URL("/api/recordings/a%22%0D%0AX-Evil:%201%5C.mcap", encoded=True)
        )
        assert answer.status == 200 and "X-Evil" not in answer.headers
        said = answer.headers["Content-Disposition"]
        assert said.startswith('attachment; filename="a___X-Evil: 1_.mcap"; filename*=')
        assert answer.headers["X-Content-Type-Options"] == "nosniff"

    ask(folder, act)


def test_a_download_goes_on_only_with_the_same_file(folder: Path) -> None:
    data = (folder / NAME).read_bytes()

    async def act(client: Client) -> None:
        url = f"/api/recordings/{NAME}"

        async def asked(**head: str) -> tuple[int, bytes]:
            answer = await client.get(
                url,
                headers={name.replace("_", "-"): text for name, text in head.items()},
            )
            return answer.status, await answer.read()

        etag = (await client.head(url)).headers["ETag"]
        part = "bytes=10-19"
        assert await asked(If_Match=etag, Range=part) == (206, data[10:20])
        assert (await asked(If_Match='"other"', Range=part))[0] == 412
        assert (await asked(If_Match=f"W/{etag}", Range=part))[0] == 412
        assert (await asked(If_Match="*", Range=part))[0] == 206
        assert await asked(If_None_Match=etag) == (304, b"")
        assert (await asked(If_None_Match=f'"x", W/{etag}'))[0] == 304
        assert (await asked(If_None_Match='"other"'))[0] == 200
        assert await asked(If_Range=etag, Range=part) == (206, data[10:20])
        assert await asked(If_Range='"other"', Range=part) == (200, data)
        for odd in ("bytes=5-3", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=x-"):
            answer = await client.get(url, headers={"Range": odd})
            assert answer.status == 416, odd
            assert answer.headers["Content-Range"] == f"bytes */{len(data)}"
        assert await asked(Range=f"bytes=-{len(data) * 2}") == (206, data)
        far = await client.head(url, headers={"Range": "bytes=0-9"})
        assert far.status == 206 and far.content_length == 10
        assert far.headers["Content-Range"] == f"bytes 0-9/{len(data)}"
        os.utime(folder / NAME, (7, 7))
        assert (await asked(If_Match=etag))[0] == 412

    ask(folder, act)


def test_units_begin_with_what_leads_up_to_them(folder: Path) -> None:
    async def act(client: Client) -> None:
        url = f"/api/recordings/{NAME}/units"
        found = units(await (await client.get(f"{url}?from=1.5&seconds=1")).read())
        times_s = [(head.capture_us * 1000 - BEGAN_NS) / 1e9 for head, _ in found]
        assert found[0][0].key and 1.0 < times_s[0] <= 1.515
        assert times_s == sorted(times_s) and times_s[-1] < 2.515
        assert encode(120, gop=10)[45] in [unit for _, unit in found]
        everything = units(await (await client.get(f"{url}?seconds=30")).read())
        assert [unit for _, unit in everything] == list(encode(120, gop=10))
        first = units(
            await (await client.get(f"/api/recordings/{NAME}/thumbnail")).read()
        )
        assert len(first) == 1 and first[0][0].key

    ask(folder, act)


@pytest.mark.parametrize("query", ["from=x", "from=-1", "from=nan", "seconds=31"])
def test_a_bad_figure_is_refused_with_its_bounds(folder: Path, query: str) -> None:
    async def act(client: Client) -> None:
        answer = await client.get(f"/api/recordings/{NAME}/units?{query}")
        assert answer.status == 400 and "expected 0 to" in await answer.text()

    ask(folder, act)


def test_the_table_has_the_courses(folder: Path) -> None:
    async def act(client: Client) -> None:
        said = await (await client.get(f"/api/recordings/{NAME}/table")).json()
        lines = {(one["group"], one["name"]): one for one in said["series"]}
        front = lines["range", "front"]
        assert front["unit"] == "m" and len(front["t"]) == len(front["v"]) == 40
        assert front["v"][:5] == [1.0, 1.01, 1.02, None, 1.04]
        assert {group for group, _ in lines} == {
            "range", "battery", "current", "latency",
        }  # fmt: skip
        assert said["marks"] == [{"t": 2.0, "text": "look here"}]
        thin = await (
            await client.get(f"/api/recordings/{NAME}/table?points=10")
        ).json()
        longest = max(len(one["t"]) for one in thin["series"])
        assert 5 <= longest <= 16

    ask(folder, act)


def test_a_battery_that_is_not_heard_has_no_voltage(folder: Path) -> None:
    heard = down.Battery(7.4, 0.5, 0.6, False, 0.01)
    lost = down.Battery(7.4, 0.5, 0.6, False, 2.5, "INA219: no answer")
    tape = [
        tapes.said(format.BATTERY, number / 10, heard if number < 3 else lost)
        for number in range(6)
    ]
    Tape(tape).to(folder / NAME)

    async def act(client: Client) -> None:
        said = await (await client.get(f"/api/recordings/{NAME}/table")).json()
        lines = {one["name"]: one["v"] for one in said["series"]}
        assert lines["volts"] == [7.4] * 3 + [None] * 3
        assert lines["amps"] == [0.5] * 3 + [None] * 3

    ask(folder, act)


def test_a_damaged_file_is_said_and_plays(folder: Path) -> None:
    messages = [*tapes.pictures(SECONDS), *tapes.senses(SECONDS)]
    tapes.flipped(folder / NAME, Tape(messages).chunks(), 2)
    old = folder / "old.mcap.part"
    Tape(messages, closed=False).to(old)
    os.utime(old, (1, 1))
    (folder / "broken.mcap").write_bytes(b"no recording")

    async def act(client: Client) -> None:
        said = await (await client.get("/api/recordings")).json()
        states = {one["name"]: one for one in said["recordings"]}
        assert states["old.mcap.part"]["state"] == "damaged"
        assert states["old.mcap.part"]["lost"] == "never closed"
        assert states["old.mcap.part"]["marks"][0]["t"] == 2.0
        assert "no MCAP" in states["broken.mcap"]["lost"]
        table = await (await client.get(f"/api/recordings/{NAME}/table")).json()
        assert (
            len(table["gaps"]) == 1 and "bytes are missing" in table["gaps"][0]["words"]
        )
        whole = units(
            await (await client.get(f"/api/recordings/{NAME}/units?seconds=30")).read()
        )
        assert 80 < len(whole) < 120
        broken = await client.get("/api/recordings/broken.mcap/table")
        assert broken.status == 422 and "no MCAP" in await broken.text()

    ask(folder, act)


def test_the_open_file_is_played_and_not_given_away(folder: Path) -> None:
    messages = [*tapes.pictures(SECONDS), *tapes.senses(SECONDS)]
    name = "Plague-20251121T200000Z-0002.mcap.part"
    Tape(messages, closed=False).to(folder / name)

    async def act(client: Client) -> None:
        said = await (await client.get("/api/recordings")).json()
        states = {one["name"]: one["state"] for one in said["recordings"]}
        assert states[name] == "open"
        refused = await client.get(f"/api/recordings/{name}")
        assert refused.status == 409 and "still being written" in await refused.text()
        answer = await client.get(f"/api/recordings/{name}/units?seconds=30")
        assert len(units(await answer.read())) == 120

    ask(folder, act)


def test_strangers_say_the_code_first(folder: Path) -> None:
    async def status(client: Client, method: str, path: str, **more: Any) -> int:
        answer: ClientResponse = await client.request(method, path, **more)
        return answer.status

    async def act(client: Client) -> None:
        base, unlock = "/api/recordings", "/api/recordings/unlock"
        for end in ("", f"/{NAME}", f"/{NAME}/units", f"/{NAME}/table"):
            assert await status(client, "GET", base + end) == 401
        assert await status(client, "POST", unlock, headers={CODE: "000000"}) == 401
        assert await status(client, "GET", base) == 401
        answer = await client.post(unlock, headers={CODE: "123456"})
        assert answer.status == 204
        cookie = answer.headers["Set-Cookie"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/api/recordings", "Max-Age"):
            assert word in cookie
        assert "123456" not in cookie
        token = {"Cookie": cookie.partition(";")[0]}
        assert await status(client, "GET", base, headers=token) == 200
        assert await status(client, "GET", f"{base}/{NAME}", headers=token) == 200
        forged = {"Cookie": "fpvcar-drive=x"}
        client.session.cookie_jar.clear()
        assert await status(client, "GET", base, headers=forged) == 401

    ask(folder, act, at_home=False)


def test_five_wrong_codes_a_minute(folder: Path) -> None:
    async def act(client: Client) -> None:
        tries = [
            await client.post("/api/recordings/unlock", headers={CODE: f"{number:06d}"})
            for number in range(6)
        ]
        assert [one.status for one in tries] == [401] * 5 + [429]
        assert "try again in" in await tries[-1].text()
        right = await client.post("/api/recordings/unlock", headers={CODE: "123456"})
        assert right.status == 429

    ask(folder, act, at_home=False)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_foreign_pages_get_nothing(folder: Path, site: str) -> None:
    async def act(client: Client) -> None:
        head = {"Sec-Fetch-Site": site}
        for end in ("", f"/{NAME}", f"/{NAME}/table"):
            answer = await client.get("/api/recordings" + end, headers=head)
            assert answer.status == 403
        head = {"Sec-Fetch-Site": "same-origin"}
        assert (await client.get("/api/recordings", headers=head)).status == 200

    ask(folder, act)


def test_a_token_counts_for_half_a_day_and_the_oldest_go() -> None:
    tokens = Tokens()
    first = tokens.new(100.0)
    assert tokens.good(first, 100.0) and not tokens.good("", 100.0)
    assert tokens.good(first, 100.0 + 12 * 3600 - 1)
    assert not tokens.good(first, 100.0 + 12 * 3600)
    for _ in range(256):
        last = tokens.new(100.0)
    assert tokens.good(last, 100.0) and not tokens.good(first, 100.0)


def test_a_file_that_was_sealed_meanwhile_is_found(folder: Path) -> None:
    async def act(client: Client) -> None:
        answer = await client.get(f"/api/recordings/{NAME}.part/units?seconds=0.95")
        assert len(units(await answer.read())) == 29

    ask(folder, act)


def test_a_long_list_is_read_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    real = library.entry_of

    def counting(path: Path) -> library.Entry:
        looked.append(path)
        return real(path)

    monkeypatch.setattr(library, "entry_of", counting)
    shelf = Library(lambda: library.files_in(folder))
    assert shelf.entries() == shelf.entries() and len(looked) == 1
    os.utime(folder / NAME, (5, 5))
    shelf.entries()
    assert len(looked) == 2
    assert json.dumps([one.name for one in shelf.entries()]) == json.dumps([NAME])
    (folder / NAME).unlink()
    assert shelf.entries() == []


def test_frames_are_as_far_apart_as_they_were(folder: Path) -> None:
    async def act(client: Client) -> None:
        answer = await client.get(f"/api/recordings/{NAME}/units?seconds=30")
        times = [head.capture_us for head, _ in units(await answer.read())]
        assert times == [(BEGAN_NS + n * FRAME_NS) // 1000 for n in range(120)]

    ask(folder, act)


# --- fpvcar replay --page ---


def test_the_page_of_some_files_is_for_this_machine_only(folder: Path) -> None:
    async def act() -> None:
        app = page.application([folder / NAME], "Plague")
        async with TestClient(TestServer(app)) as client:
            assert (await client.get("/recordings.html")).status == 200
            assert (await client.get("/")).status == 200
            assert (await client.get("/recordings/main.js")).status == 200
            said = await (await client.get("/api/recordings")).json()
            assert (said["car"], said["seat"]) == ("Plague", False)
            assert [one["name"] for one in said["recordings"]] == [NAME]
            for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                assert (await client.get("/api/recordings", headers=head)).status == 403
            assert (await client.get("/..%2fREADME.md")).status == 404
            assert (await client.post("/api/recordings/unlock")).status == 404

    asyncio.run(act())


def test_the_page_refuses_what_is_no_recording(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "letter").write_text("Dear reader")
    assert page.run([folder / "letter"], 0, False) == 1
    assert "letter" in capsys.readouterr().err
    other = folder.parent / NAME
    other.write_bytes((folder / NAME).read_bytes())
    assert page.run([folder / NAME, other], 0, False) == 1
    assert "two files are called" in capsys.readouterr().err


def test_files_are_closed_when_nobody_looks_any_more(folder: Path) -> None:
    opened = Opened(lambda: 0.0)
    first = opened.get(folder / NAME, False)
    assert opened.get(folder / NAME, False) is first
    opened.close()
    assert opened.get(folder / NAME, False) is not first
    opened.close()


def test_a_growing_file_is_read_anew_after_a_while(folder: Path) -> None:
    now_s = 100.0
    opened = Opened(lambda: now_s)
    first = opened.get(folder / NAME, True)
    now_s += 4.0
    assert opened.get(folder / NAME, True) is first
    now_s += 2.0
    assert opened.get(folder / NAME, True) is not first
    opened.close()


def test_the_cars_own_rules_hold_for_recordings(folder: Path) -> None:
    """Behind the server: Host, Origin, no bodies; and its pages do not hide them."""
    hub: Any = SimpleNamespace(leave=lambda _: None)
    shelf = Recordings(
        lambda: library.files_in(folder), Shown("Plague", True),
        Door(Codes("123456", "grownups")),
    )  # fmt: skip

    async def act() -> None:
        app = Server(
            tapes.PROFILE, hub, hub, paths.WEB, dict, recordings=shelf
        ).application()
        async with TestClient(TestServer(app)) as client:
            url = f"/api/recordings/{NAME}"
            assert (await client.get("/recordings")).status == 200
            assert (await client.get(url)).status == 200
            for head in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                assert (await client.get(url, headers=head)).status == 403
            unlock = "/api/recordings/unlock"
            assert (await client.post(unlock, data=b"x")).status == 413
            assert (await client.post(unlock, headers={CODE: "123456"})).status == 204
            assert (await client.delete(url)).status == 405

    asyncio.run(act())

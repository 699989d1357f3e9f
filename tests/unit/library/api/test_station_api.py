"""Route /api/station: pairing, listing, sending, and the receipts that release a file."""

import hashlib
import json
import threading
from pathlib import Path

import msgspec
import pytest
from testkit.base_station.station import ask_car, paired, signed, stations_of
from testkit.hub import House

from fpvcar.recordings import names
from fpvcar.runtime.units import MIB
from fpvcar.wire import down, up
from fpvcar.wire import station as wire

NAME = "Plague-20261121T193100Z-0001.mcap"
OTHER = "Plague-20261121T193100Z-0002.mcap"
DATA = bytes(range(256)) * 5000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / NAME).write_bytes(DATA)
    (tmp_path / OTHER).write_bytes(b"second")
    (tmp_path / (OTHER + ".ack")).touch()
    (tmp_path / "Plague-20261121T193100Z-0003.mcap.part").write_bytes(b"open")
    (tmp_path / "Plague-20261121T193100Z-0004.mcap").symlink_to("/etc/passwd")
    return tmp_path


async def test_station_pairs_only_by_the_grown_up_code(folder: Path) -> None:
    stations = stations_of(folder)
    async with ask_car(folder, stations) as client:
        for code, status in (("", 401), ("123456", 401), ("grownupz", 401)):
            answer = await client.post(
                wire.BASE + "/pair", headers={wire.CODE: code, wire.NAME: "workshop"}
            )
            assert answer.status == status
        pairing = await paired(client)
        assert pairing.car == "Plague" and len(bytes.fromhex(pairing.key)) == 32
        for _ in range(4):
            await client.post(wire.BASE + "/pair", headers={wire.CODE: "no", wire.NAME: "workshop"})
        answer = await client.post(
            wire.BASE + "/pair", headers={wire.CODE: "no", wire.NAME: "workshop"}
        )
        assert answer.status == 401
    (one,) = stations.all()
    assert (one.name, one.where) == ("workshop", "base station")
    assert "key" not in json.loads((folder / "stations.json").read_text())[0]
    assert [again.id for again in stations_of(folder).all()] == [one.id]


async def test_sixth_wrong_pairing_code_has_to_wait(folder: Path) -> None:
    async with ask_car(folder) as client:
        headers = {wire.CODE: "wrong", wire.NAME: "workshop"}
        said = [(await client.post(wire.BASE + "/pair", headers=headers)).status for _ in range(6)]
        assert said == [401] * 5 + [429]


@pytest.mark.parametrize("name", ["", "x" * 41, "a\u200fb"])
async def test_unprintable_station_name_is_refused(folder: Path, name: str) -> None:
    async with ask_car(folder) as client:
        headers = {wire.CODE: "grownups", wire.NAME: name}
        answer = await client.post(wire.BASE + "/pair", headers=headers)
        assert answer.status == 400


async def test_pairing_without_https_is_refused(folder: Path) -> None:
    stations = stations_of(folder)
    async with ask_car(folder, stations, remote="192.0.2.7") as client:
        headers = {wire.CODE: "grownups", wire.NAME: "workshop"}
        answer = await client.post(wire.BASE + "/pair", headers=headers)
        assert answer.status == 403 and "https" in await answer.text()
    assert not stations.all()


async def test_list_has_sealed_segments_and_a_signature(folder: Path) -> None:
    async with ask_car(folder) as client:
        pairing = await paired(client)
        answer = await signed(client, pairing, "GET", "/segments")
        body = await answer.read()
        listing = msgspec.json.decode(body, type=wire.Listing)
        assert listing.car == "Plague" and not listing.more
        assert listing.segments == [wire.Segment(NAME, len(DATA))]
        assert 0 < listing.free < listing.total, "how full the card is"
        nonce = answer.request_info.headers[wire.NONCE]
        mac = wire.answer_mac(bytes.fromhex(pairing.key), nonce, body)
        assert answer.headers[wire.MAC] == mac
        answer = await signed(client, pairing, "GET", "/segments?all=1&most=1")
        listing = msgspec.json.decode(await answer.read(), type=wire.Listing)
        assert [one.name for one in listing.segments] == [NAME] and listing.more
        path = f"/segments?all=1&after={NAME}"
        answer = await signed(client, pairing, "GET", path)
        listing = msgspec.json.decode(await answer.read(), type=wire.Listing)
        assert listing.segments == [wire.Segment(OTHER, 6, True)]


async def test_missing_folder_lists_no_segments(tmp_path: Path) -> None:
    async with ask_car(tmp_path / "none/yet", stations_of(tmp_path)) as client:
        answer = await signed(client, await paired(client), "GET", "/segments")
        listing = msgspec.json.decode(await answer.read(), type=wire.Listing)
        assert listing.segments == [] and listing.free > 0


async def test_lists_are_signed_outside_the_event_loop_thread(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of 500 segments would block the loop of a Zero W, and thus driving, for
    milliseconds."""
    signers, real = list[threading.Thread](), wire.answer_mac

    def mac(key: bytes, nonce: str, body: bytes) -> str:
        signers.append(threading.current_thread())
        return real(key, nonce, body)

    monkeypatch.setattr(wire, "answer_mac", mac)
    async with ask_car(folder) as client:
        pairing = await paired(client)
        for path in ("/segments", f"/sums/{NAME}"):
            assert (await signed(client, pairing, "GET", path)).status == 200
    assert len(signers) == 2 and threading.main_thread() not in signers


async def test_station_gets_segment_bytes_and_checksums(folder: Path) -> None:
    async with ask_car(folder) as client:
        pairing = await paired(client)
        answer = await signed(client, pairing, "GET", f"/sums/{NAME}")
        sums = msgspec.json.decode(await answer.read(), type=wire.Sums)
        assert sums.sha256 == hashlib.sha256(DATA).hexdigest()
        assert len(sums.pieces) == 2 and sums.size == len(DATA)
        answer = await signed(
            client,
            pairing,
            "GET",
            f"/segments/{NAME}",
            Range=f"bytes={MIB}-",
            **{"If-Match": f'"{sums.sha256}"'},
        )
        assert answer.status == 206 and await answer.read() == DATA[MIB:]
        answer = await signed(
            client, pairing, "GET", f"/segments/{NAME}", **{"If-Match": '"other"'}
        )
        assert answer.status == 412
        for name in (
            "x",
            "..%2Fsecret",
            "Plague-20261121T193100Z-0003.mcap.part",
            "Plague-20261121T193100Z-0004.mcap",
            "Plague-20261121T193100Z-0009.mcap",
        ):
            for kind in ("sums", "segments"):
                answer = await signed(client, pairing, "GET", f"/{kind}/{name}")
                assert answer.status in (401, 404), name


async def test_receipt_with_the_right_checksum_alone_releases_a_file(folder: Path) -> None:
    async with ask_car(folder) as client:
        pairing, mark = await paired(client), folder / (NAME + names.ACKNOWLEDGED)
        for sha256 in ("", "0" * 64):
            path = f"/receipts/{NAME}?sha256={sha256}"
            answer = await signed(client, pairing, "POST", path)
            assert answer.status == 409 and not mark.exists()
        own = hashlib.sha256(DATA).hexdigest()
        for _ in range(2):
            path = f"/receipts/{NAME}?sha256={own}"
            answer = await signed(client, pairing, "POST", path)
            assert answer.status == 204
        assert json.loads(mark.read_bytes())["sha256"] == own
        path = f"/receipts/Plague-20261121T193100Z-0009.mcap?sha256={own}"
        answer = await signed(client, pairing, "POST", path)
        assert answer.status == 404


async def test_requests_without_the_station_key_are_refused(folder: Path) -> None:
    async with ask_car(folder) as client:
        pairing = await paired(client)
        forged = msgspec.structs.replace(pairing, key="00" * 32)
        stranger = msgspec.structs.replace(pairing, station="0" * 32)
        for who in (forged, stranger):
            paths = ("/segments", f"/sums/{NAME}", f"/segments/{NAME}", "/certificate")
            for path in paths:
                assert (await signed(client, who, "GET", path)).status == 401
            path = f"/receipts/{NAME}?sha256={hashlib.sha256(DATA).hexdigest()}"
            assert (await signed(client, who, "POST", path)).status == 401
            assert (await signed(client, who, "POST", "/end")).status == 401
        assert (await client.get(wire.BASE + "/segments")).status == 401
        said = {wire.STATION: pairing.station, wire.NONCE: "\u00e4", wire.MAC: "\u00e4"}
        answer = await client.get(wire.BASE + "/segments", headers=said)
        assert answer.status == 401
    assert not (folder / (NAME + names.ACKNOWLEDGED)).exists()


async def test_station_ends_its_own_pairing(folder: Path) -> None:
    stations = stations_of(folder)
    async with ask_car(folder, stations) as client:
        pairing = await paired(client)
        assert (await signed(client, pairing, "POST", "/end")).status == 204
        assert (await signed(client, pairing, "GET", "/segments")).status == 401
    assert not stations.all()


def test_grown_up_sees_and_ends_stations_among_the_people(tmp_path: Path) -> None:
    stations = stations_of(tmp_path)
    house = House(stations=stations)
    one = stations.pair("workshop", "192.0.2.7", house.now_s)
    adult = house.visitor("Ada", code="grownups")
    adult.say(up.Who())
    said = adult.session._outbox[-1]
    assert isinstance(said, down.People)
    assert ("workshop", "base station") in [(who.name, who.where) for who in said.people]
    adult.say(up.End(one.id))
    assert not stations.all()

"""Each request of a base station works once."""

from pathlib import Path

import pytest
from testkit.base_station.station import ask_car, paired, signature, signed, stations_of

from fpvcar.access.stations import RECENT, RESERVED_US, ReplayGuard
from fpvcar.wire import station as wire

NOW_US = 1_795_000_000_000_000
PATH = "/segments"


def ordered(number: int) -> str:
    return wire.ordered_nonce(number, "0123456789a")


def test_number_is_taken_once_in_any_order() -> None:
    replays = ReplayGuard(0)
    for number in (5, 3, 9, 4):
        assert replays.take(ordered(number)), number
    for number in (5, 3, 9, 4, 0):
        assert not replays.take(ordered(number)), number
    assert replays.newest == 9


def test_number_below_the_remembered_ones_is_refused() -> None:
    replays = ReplayGuard(0)
    for number in range(1, RECENT + 3):
        assert replays.take(ordered(2 * number))
    assert not replays.take(ordered(1)), "forgotten, so it may have been used"
    assert not replays.take(ordered(2)) and not replays.take(ordered(4))
    assert replays.take(ordered(7)), "it was overtaken by fewer than RECENT"
    assert len(replays._recent) == RECENT


def test_numbers_up_to_the_saved_bound_are_refused() -> None:
    replays = ReplayGuard(100)
    assert replays.newest == 100
    assert not replays.take(ordered(100)) and replays.take(ordered(101))


def test_random_nonce_of_an_older_station_is_taken_once() -> None:
    replays = ReplayGuard(0)
    nonces = [f"{number + 1:032x}"[::-1] for number in range(RECENT + 1)]
    assert all(map(replays.take, nonces))
    assert not any(map(replays.take, nonces[1:])), "the last RECENT are remembered"
    assert replays.take(ordered(7))
    assert not replays.take("f" * 32), "it has been updated since"


@pytest.mark.parametrize("nonce", [ordered(NOW_US), "f" * 32])
async def test_request_works_once(tmp_path: Path, nonce: str) -> None:
    async with ask_car(tmp_path) as client:
        pairing = await paired(client)
        headers = signature(pairing, "GET", PATH, nonce)
        assert (await client.get(wire.BASE + PATH, headers=headers)).status == 200
        again = await client.get(wire.BASE + PATH, headers=headers)
        assert again.status == 403 and "used before" in await again.text()
        newest = again.headers[wire.NEWEST].encode()
        assert int(newest) in (NOW_US, 0)
        mac = wire.answer_mac(bytes.fromhex(pairing.key), nonce, newest)
        assert again.headers[wire.MAC] == mac
        forged = {**headers, wire.MAC: "0" * 64}
        refused = await client.get(wire.BASE + PATH, headers=forged)
        assert refused.status == 401 and wire.NEWEST not in refused.headers


async def test_request_does_not_work_again_after_a_restart(tmp_path: Path) -> None:
    before = stations_of(tmp_path)
    async with ask_car(tmp_path, before) as client:
        pairing = await paired(client)
        headers = signature(pairing, "POST", "/end", ordered(NOW_US))
        first = signature(pairing, "GET", PATH, ordered(NOW_US))
        assert (await client.get(wire.BASE + PATH, headers=first)).status == 200
    await before.save(0.0)
    after = stations_of(tmp_path)
    (kept,) = after.all()
    assert kept.numbers_below == NOW_US + RESERVED_US
    async with ask_car(tmp_path, after) as client:
        again = await client.post(wire.BASE + "/end", headers=headers)
        assert again.status == 403
        above = int(again.headers[wire.NEWEST]) + 1
        said = signature(pairing, "GET", PATH, ordered(above))
        assert (await client.get(wire.BASE + PATH, headers=said)).status == 200
        assert (await signed(client, pairing, "GET", PATH)).status == 403
    assert after.all(), "the pairing was not ended"


def test_list_is_saved_once_an_hour_at_most(tmp_path: Path) -> None:
    listed = stations_of(tmp_path)
    station = listed.pair("office", "10.0.0.1", 0.0)
    saves = 0
    for second in range(0, 8000, 100):
        listed._changed.clear()
        listed._refuse_replay(station, ordered(NOW_US + second * 1_000_000))
        saves += listed._changed.is_set()
    assert saves == 3

"""Limits of a peer: connections, messages, bytes, log lines."""

import logging
import resource
from collections.abc import Callable
from functools import partial

import pytest

from fpvcar.http import limits
from fpvcar.http.limits import (
    BYTES_BURST,
    BYTES_PER_S,
    RESERVED,
    LogRateLimit,
    Places,
    Rank,
    RateLimit,
    TokenBucket,
    ViewerPlaces,
    connection_places,
)


class Door:
    """Places, and the visitors that had to give way."""

    def __init__(self, most: int, most_per_address: int, reserved: int = 0) -> None:
        self.places = Places(most, most_per_address, reserved)
        self.ended: list[str] = []

    def enter(self, owner: str, address: str, rank: Rank = Rank.SILENT) -> str | None:
        return self.places.enter(owner, address, partial(self.ended.append, owner), rank)

    def crowd(self, address: str, count: int, rank: Rank = Rank.SILENT) -> None:
        for number in range(count):
            assert self.enter(f"{address}-{number}", address, rank) is None


def test_places_are_counted_in_all_and_for_each_address() -> None:
    door = Door(3, 2)
    door.crowd("10.0.0.1", 2, Rank.DRIVES)
    assert door.enter("c", "10.0.0.1") == "2 are open from 10.0.0.1"
    assert door.enter("d", "10.0.0.2", Rank.DRIVES) is None
    assert door.enter("e", "10.0.0.3") == "3 are open"
    door.places.leave("d")
    door.places.leave("d")
    assert door.enter("e", "10.0.0.3") is None
    for owner in ("10.0.0.1-0", "10.0.0.1-1", "e"):
        door.places.leave(owner)
    assert door.places.taken == 0 and door.ended == [] and not door.places._of


def test_drivers_without_a_reserve_fill_only_the_places() -> None:
    places = Places(1, 9)
    assert places.enter("ann", "10.0.0.1", lambda: None, Rank.DRIVES) is None
    assert places.enter("bob", "10.0.0.2", lambda: None, Rank.DRIVES) == "1 are open"


def test_oldest_silent_peer_of_the_largest_crowd_gives_way() -> None:
    door = Door(6, 4)
    door.crowd("10.0.0.1", 2)
    door.crowd("10.0.0.2", 4)
    assert door.enter("new", "10.0.0.3") is None
    assert door.ended == ["10.0.0.2-0"] and door.places.taken == 6


def test_silent_peer_gives_way_before_an_identified_peer() -> None:
    door = Door(3, 3)
    door.crowd("10.0.0.1", 3)
    door.places.promote("10.0.0.1-0", Rank.WATCHES)
    door.places.promote("nobody", Rank.WATCHES)
    door.places.promote("10.0.0.1-1", Rank.DRIVES)
    assert door.enter("new", "10.0.0.2") is None
    assert door.ended == ["10.0.0.1-2"]


def test_crowd_pushes_out_neither_a_smaller_crowd_nor_itself() -> None:
    door = Door(4, 3)
    door.crowd("10.0.0.1", 2)
    door.crowd("10.0.0.2", 2)
    assert door.enter("more", "10.0.0.1") == "4 are open"
    assert door.ended == []


def test_watcher_of_a_crowd_larger_by_one_stays() -> None:
    door = Door(3, 3)
    door.crowd("10.0.0.1", 2, Rank.WATCHES)
    door.crowd("10.0.0.2", 1, Rank.WATCHES)
    assert door.enter("new", "10.0.0.2", Rank.WATCHES) == "3 are open"


def test_watchers_share_fairly_and_drivers_never_give_way() -> None:
    door = Door(4, 4, reserved=1)
    door.crowd("10.0.0.1", 3, Rank.WATCHES)
    assert door.enter("two", "10.0.0.2", Rank.WATCHES) is None
    assert door.enter("new", "10.0.0.2", Rank.WATCHES) is None, "3 > 1 + 1"
    assert door.ended == ["10.0.0.1-0"]
    assert door.enter("one", "10.0.0.3") is None, "2 > 0 + 1"
    assert door.enter("other", "10.0.0.1", Rank.WATCHES) is None, "one was silent"
    assert door.ended[2:] == ["one"]
    assert door.enter("ann", "10.0.0.9", Rank.DRIVES) is None, "a place is reserved"
    assert len(door.ended) == 3
    assert door.enter("bob", "10.0.0.9", Rank.DRIVES) is None
    assert len(door.ended) == 4, "a watcher gives way to a driver"
    for number in range(3):
        assert door.enter(f"d{number}", "10.0.0.8", Rank.DRIVES) is None
    assert door.enter("late", "10.0.0.7", Rank.DRIVES) == "4 are open"


def test_ipv6_host_has_one_share_and_its_network_two() -> None:
    door = Door(9, 2)
    door.crowd("2001:db8::1", 2, Rank.DRIVES)
    assert door.enter("c", "2001:db8::1") == "2 are open from 2001:db8::1"
    door.crowd("2001:db8::2", 2)
    assert door.enter("ann", "2001:db8::3") is None
    assert door.ended == ["2001:db8::2-0"], "the crowd of its own network"
    assert door.enter("c", "2001:db8::2").startswith("4 are open from the network of")  # type: ignore[union-attr]
    assert door.enter("d", "2001:db8:0:1::1") is None, "another network"
    full = Door(9, 1)
    assert full.enter("outside", "10.0.0.1") is None
    for host in (1, 2):
        assert full.enter(f"{host}", f"2001:db8::{host}", Rank.DRIVES) is None
    assert full.enter("3", "2001:db8::3") is not None, "drivers give way to nobody"
    assert full.ended == []


def test_driver_gets_a_place_beside_hostile_addresses() -> None:
    """Shipped limits: 256 places, a share of 64. A driver gets in at the first try."""
    door = Door(256, 64)
    for address in ("10.0.0.1", "10.0.0.2"):
        door.crowd(address, 64)
        assert door.enter("more", address) is not None
    assert door.enter("driver", "10.0.0.9") is None and door.ended == []
    door.places.promote("driver", Rank.DRIVES)
    for number in range(3, 300):
        door.enter(f"h{number}", f"10.1.{number >> 8}.{number & 255}")
    assert door.enter("again", "10.0.9.9") is None
    assert door.places.taken == 256 and "driver" not in door.ended


class Viewers:
    """Sockets at /ws/video in a house of two places, and those that were ended."""

    def __init__(self) -> None:
        self.places = ViewerPlaces(2)
        self.ended: list[str] = []
        self._ends: dict[str, Callable[[], None]] = {}

    def enter(
        self, owner: str, address: str, rank: Rank = Rank.WATCHES, driver: bool = False
    ) -> str | None:
        return self.places.enter(self.end(owner), address, rank, driver)

    def admit(self, owner: str, address: str) -> str | None:
        return self.places.admit(self.end(owner), address, Rank.DRIVES)

    def expire(self, owner: str, address: str) -> None:
        self.places.expire(self.end(owner), address)

    def end(self, owner: str) -> Callable[[], None]:
        return self._ends.setdefault(owner, partial(self.ended.append, owner))


def full_house() -> Viewers:
    viewers = Viewers()
    for owner, address in (("one", "10.1.0.1"), ("two", "10.1.0.2")):
        assert viewers.enter(owner, address) is None
    return viewers


def test_viewer_beyond_the_places_is_refused_a_driver_is_not() -> None:
    viewers = full_house()
    assert viewers.enter("three", "10.0.0.1") == "2 are open"
    for number in range(RESERVED):
        assert viewers.enter(f"driver-{number}", "10.0.0.1", Rank.DRIVES) is None
    assert viewers.ended == []
    for owner in ("ann", "bob"):
        assert viewers.enter(owner, "10.0.0.1", Rank.DRIVES) is None
    assert viewers.ended == ["one", "two"], "watchers give way"
    assert viewers.enter("late", "10.0.0.2", Rank.DRIVES) == "2 are open"


def test_viewer_that_names_a_driver_waits_until_its_hello() -> None:
    viewers = full_house()
    assert viewers.enter("ann", "10.0.0.1", driver=True) is None
    assert viewers.admit("ann", "10.0.0.1") is None
    viewers.expire("ann", "10.0.0.1")
    for number in range(2 * RESERVED):
        assert viewers.enter(f"eve-{number}", "10.0.0.1", driver=True) is None
    assert viewers.ended == [f"eve-{number}" for number in range(RESERVED)]


def test_viewer_naming_a_driver_gets_only_a_watchers_rank() -> None:
    viewers = Viewers()
    assert viewers.enter("eve-1", "10.0.0.1", driver=True) is None
    assert viewers.enter("eve-2", "10.0.0.1", driver=True) is None
    viewers.expire("eve-1", "10.0.0.1")
    assert viewers.enter("bob", "10.0.0.2") is None, "a watcher of a crowd gives way"
    assert viewers.ended == ["eve-1"]


def test_viewer_without_a_hello_is_ended_or_watches() -> None:
    viewers = full_house()
    assert viewers.enter("eve", "10.0.0.1", driver=True) is None
    viewers.expire("eve", "10.0.0.1")
    assert viewers.ended == ["eve"]
    assert viewers.enter("bob", "10.0.0.1", driver=True) is None
    viewers.places.leave(viewers.end("one"))
    viewers.expire("bob", "10.0.0.1")
    assert viewers.ended == ["eve"]
    assert viewers.enter("three", "10.0.0.1") == "2 are open", "bob has the free place"
    viewers.places.leave(viewers.end("bob"))
    assert viewers.enter("three", "10.0.0.1") is None


def test_viewer_that_leaves_while_waiting_frees_its_place() -> None:
    viewers = full_house()
    assert viewers.enter("ann", "10.0.0.1", driver=True) is None
    viewers.places.leave(viewers.end("ann"))
    viewers.expire("ann", "10.0.0.1")
    for number in range(RESERVED):
        assert viewers.enter(f"eve-{number}", "10.0.0.1", driver=True) is None
    assert viewers.ended == []


def test_waiting_viewers_of_the_largest_crowd_end_first() -> None:
    viewers = full_house()
    assert viewers.enter("ann", "10.0.0.1", driver=True) is None
    for number in range(RESERVED):
        address = f"2001:db8::{number + 1}"
        assert viewers.enter(f"eve-{number}", address, driver=True) is None
    assert viewers.ended == ["eve-0"], "one network"
    assert viewers.admit("ann", "10.0.0.1") is None


def test_rate_limit_pauses_only_beyond_the_burst() -> None:
    rate, burst = RateLimit(7.0), int(BYTES_BURST)
    assert rate.pause_s(1, 7.0) == 0.0
    assert rate.pause_s(burst - 1, 7.0) == 0.0
    assert rate.pause_s(4096, 7.0) == 4096 / BYTES_PER_S
    assert rate.pause_s(0, 7.0 + 4096 / BYTES_PER_S) == 0.0
    assert rate.pause_s(int(BYTES_PER_S), 8.0 + 4096 / BYTES_PER_S) == 0.0
    assert rate.pause_s(burst, 1000.0) == 0.0, "what was not sent is not saved up"
    assert rate.pause_s(1, 1000.0) == 1 / BYTES_PER_S


def test_rate_limit_is_64_kb_a_second_after_a_burst_of_512_kb() -> None:
    assert RateLimit(7.0).pause_s((512 + 64) * 1024, 7.0) == 1.0


def test_meter_allows_a_burst_and_limits_a_flood() -> None:
    meter = TokenBucket(rate=10.0, burst=20.0)
    assert sum(meter.allow(5.0) for _ in range(100)) == 20
    assert sum(meter.allow(6.0) for _ in range(100)) == 10
    assert sum(meter.allow(1000.0) for _ in range(100)) == 20


def test_meter_waits_for_a_whole_token() -> None:
    meter = TokenBucket(rate=1.0, burst=1.0)
    assert meter.allow(0.0)
    assert not meter.allow(0.95)
    assert meter.allow(1.0)


class Descriptors:
    """RLIMIT_NOFILE in place of the process's own, and the warnings logged."""

    def __init__(self, soft: int, hard: int, patch: pytest.MonkeyPatch) -> None:
        self.limits, self.warnings = (soft, hard), list[str]()
        patch.setattr(resource, "getrlimit", lambda _: self.limits)
        patch.setattr(resource, "setrlimit", self.set)
        patch.setattr(limits.log, "warning", lambda text, *args: self.warnings.append(text % args))

    def set(self, _: int, limits: tuple[int, int]) -> None:
        self.limits = limits


@pytest.mark.parametrize("hard", [336, 4096, resource.RLIM_INFINITY])
@pytest.mark.parametrize("soft", [200, 335, 336])
def test_connection_places_raises_a_low_limit(
    soft: int, hard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 connections, 16 in reserve, 64 descriptors of `run` itself."""
    descriptors = Descriptors(soft, hard, monkeypatch)
    assert connection_places(256, 128).most == 256
    assert descriptors.limits == (336, hard) and descriptors.warnings == []


def test_connection_places_keeps_a_limit_that_is_high_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    descriptors = Descriptors(337, 4096, monkeypatch)
    assert connection_places(256, 128).most == 256
    assert descriptors.limits == (337, 4096)


@pytest.mark.parametrize(("hard", "most"), [(335, 255), (82, 2), (80, 1), (20, 1)])
def test_connection_places_admits_what_the_hard_limit_allows(
    hard: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptors = Descriptors(10, hard, monkeypatch)
    assert connection_places(256, 128).most == most
    assert descriptors.limits == (hard, hard)
    assert descriptors.warnings == [f"room for {most} connections: RLIMIT_NOFILE is {hard}"]


def test_repeated_log_lines_are_limited_and_counted() -> None:
    now_s = 5.0
    limit = LogRateLimit(lambda: now_s)

    def said(template: str, who: str) -> str | None:
        record = logging.makeLogRecord({"msg": template, "args": (who,)})
        return record.getMessage() if limit.filter(record) else None

    lines = [said("%s: closed", f"Eve {number}") for number in range(500)]
    assert lines[:11] == [*(f"Eve {number}: closed" for number in range(10)), None]
    assert not any(lines[10:])
    assert said("%s took the wheel", "Ann") == "Ann took the wheel"
    now_s += 0.95
    assert said("%s: closed", "Eve") is None
    now_s += 0.05
    assert said("%s: closed", "Eve") == "Eve: closed (491 like it left out)"
    now_s += 1.0
    assert said("%s: closed", "Eve") == "Eve: closed"

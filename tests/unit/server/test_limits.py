"""How much a peer may have: connections, messages, bytes, log lines."""

import logging
import resource

from fpvcar.server.limits import (
    BYTES_BURST,
    BYTES_PER_S,
    KNOWN_MAX,
    ConnectionLimit,
    LogRateLimit,
    Meter,
    RateLimit,
    connection_limit,
)


def test_places_are_counted_in_all_and_for_each_address() -> None:
    limit = ConnectionLimit(3, 2, reserved=1)
    assert [limit.enter("10.0.0.1") for _ in range(2)] == [None, None]
    assert limit.enter("10.0.0.1") == "2 are open from 10.0.0.1"
    assert limit.enter("10.0.0.2") is None
    assert limit.enter("10.0.0.3") == "3 are open"
    limit.leave("10.0.0.1")
    assert limit.enter("10.0.0.3") is None
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
        limit.leave(address)
    assert limit.taken == 0


def test_who_may_drive_has_places_of_its_own() -> None:
    limit = ConnectionLimit(2, 2, reserved=1)
    limit.know("10.0.0.9")
    assert limit.enter("10.0.0.1") is None and limit.enter("10.0.0.2") is None
    assert limit.enter("10.0.0.3") is not None
    assert limit.enter("10.0.0.9") is None
    assert limit.enter("10.0.0.9") == "2 are open"


def test_an_ipv6_network_is_one_address() -> None:
    limit = ConnectionLimit(9, 1)
    assert limit.enter("2001:db8::1") is None
    assert limit.enter("2001:db8::2") is not None
    assert limit.enter("2001:db8:0:1::1") is None


def test_only_the_newest_drivers_are_remembered() -> None:
    limit = ConnectionLimit(1, 9, reserved=1)
    for number in range(KNOWN_MAX + 1):
        limit.know(f"10.0.0.{number}")
    assert limit.enter("10.0.1.1") is None
    assert limit.enter("10.0.0.0") is not None
    assert limit.enter("10.0.0.1") is None


def test_a_slip_is_free_and_a_flood_waits_until_it_is_paid() -> None:
    rate, burst = RateLimit(7.0), int(BYTES_BURST)
    assert rate.pause_s(burst, 7.0) == 0.0
    assert rate.pause_s(4096, 7.0) == 4096 / BYTES_PER_S
    assert rate.pause_s(0, 7.0 + 4096 / BYTES_PER_S) == 0.0
    assert rate.pause_s(int(BYTES_PER_S), 8.0 + 4096 / BYTES_PER_S) == 0.0
    assert rate.pause_s(burst, 1000.0) == 0.0, "what was not sent is not saved up"
    assert rate.pause_s(1, 1000.0) > 0.0


def test_the_meter_lets_bursts_pass_and_floods_not() -> None:
    meter = Meter(rate=10.0, burst=20.0)
    assert sum(meter.allow(5.0) for _ in range(100)) == 20
    assert sum(meter.allow(6.0) for _ in range(100)) == 10
    assert sum(meter.allow(1000.0) for _ in range(100)) == 20


def test_the_limit_of_descriptors_is_raised_or_obeyed() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        assert connection_limit(256, 128).most == 256
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 256
        assert connection_limit(250, 128).most == 250, "it is high enough already"
        if hard != resource.RLIM_INFINITY:
            assert connection_limit(hard, 128).most == hard - 80
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_crowd_does_not_fill_the_log() -> None:
    now_s = 5.0
    limit = LogRateLimit(lambda: now_s)

    def said(template: str, who: str) -> str | None:
        record = logging.makeLogRecord({"msg": template, "args": (who,)})
        return record.getMessage() if limit.filter(record) else None

    lines = [said("%s: closed", f"Eve {number}") for number in range(500)]
    assert lines[:11] == [*(f"Eve {number}: closed" for number in range(10)), None]
    assert not any(lines[10:])
    assert said("%s took the wheel", "Ann") == "Ann took the wheel"
    now_s += 1.0
    assert said("%s: closed", "Eve") == "Eve: closed (490 like it left out)"
    now_s += 1.0
    assert said("%s: closed", "Eve") == "Eve: closed"

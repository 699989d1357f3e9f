"""Air between two hosts: effect of the router's channel on packets."""

from testkit.network.air import Channel, Weather


def flight(weather: Weather, count: int = 10_000) -> list[float | None]:
    """Return the flight time of each of many packets, one sent each ms."""
    channel = Channel(seed=1)
    channel.set(weather, 0.0)
    sent = [number / 1000 for number in range(count)]
    return [
        None if at_s is None else at_s - now_s
        for now_s, at_s in ((now_s, channel.arrival(now_s)) for now_s in sent)
    ]


def test_still_air_carries_all_at_once() -> None:
    assert set(flight(Weather())) == {0.0}


def test_delay_and_jitter_keep_the_order() -> None:
    times = [one for one in flight(Weather(delay_s=0.02, jitter_s=0.01)) if one]
    assert len(times) == 10_000
    assert min(times) >= 0.02 and 0.029 < max(times) <= 0.0301
    arrivals = [number / 1000 + one for number, one in enumerate(times)]
    assert arrivals == sorted(arrivals)


def test_reordered_packets_overtake_others() -> None:
    times = flight(Weather(jitter_s=0.01, reordered=0.1))
    arrivals = [number / 1000 + (one or 0.0) for number, one in enumerate(times)]
    overtakers = sum(b < a for a, b in zip(arrivals, arrivals[1:], strict=False))
    assert 300 < overtakers < 1500


def test_loss_matches_its_rate_and_is_repeatable() -> None:
    lost = flight(Weather(loss=0.1)).count(None)
    assert 900 < lost < 1100
    assert flight(Weather(loss=0.1)) == flight(Weather(loss=0.1))


def test_rate_limits_throughput_and_queue_is_bounded() -> None:
    channel, size = Channel(seed=1), 1250
    channel.set(Weather(bits_per_s=1e6), 0.0)
    arrivals = [channel.arrival(number / 1000, size) for number in range(5000)]
    times = [one for one in arrivals if one is not None]
    assert times[0] == 0.01 and times == sorted(times)
    assert 500 <= len(times) <= 530, "100 a second, and what the queue holds"
    late_s = [one - at / 1000 for at, one in enumerate(arrivals) if one is not None]
    assert 0.25 < max(late_s) <= 0.25 + 0.0101
    assert channel.arrival(9.0, size) == 9.01, "it has emptied"


def test_bursts_come_at_their_time() -> None:
    weather = Weather(burst_loss=0.5, burst_s=0.3, every_s=5.0)
    times = flight(weather)
    lost = [number for number, one in enumerate(times) if one is None]
    assert all(number % 5000 <= 300 for number in lost)
    assert min(lost) < 10 and min(one for one in lost if one > 300) < 5010
    assert 240 < len(lost) < 360

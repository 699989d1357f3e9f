"""Link meter and bitrate controller, against a simulated link; lost packets, from counts."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from fpvcar.video.bitrate import LEAST_BITRATE, Bitrate, LinkMeter, LinkReport, Precedence
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.packet_loss import EVERY_S, LossMeter
from fpvcar.video.stream import Stream, Viewer

TICK_S = 0.005
MOST = 2_000_000


@dataclass
class Link:
    """Single queue: bytes leave at `carries(now_s)` bit/s and are acknowledged later.

    `queue_s` is the time in the queue, smoothed like TCP's round trip (RFC 6298, alpha).
    """

    carries: Callable[[float], float]
    rtt_s: float
    acked: int = 0
    sent: int = 0
    queue_s: float = 0.0
    _left: int = 0
    _credit: float = 0.0
    _acks: deque[tuple[float, int, float]] = field(default_factory=deque)
    _goes: deque[tuple[int, int]] = field(default_factory=deque)

    def send(self, size: int, capture_us: int) -> None:
        self.sent += size
        self._goes.append((self.sent, capture_us))

    def pass_to(self, now_s: float) -> Iterator[int]:
        """Run another tick; return the capture times of the packets that have left."""
        self._credit += self.carries(now_s) / 8 * TICK_S
        gone = min(int(self._credit), self.sent - self._left)
        self._credit = min(self._credit - gone, 1500.0)
        self._left += gone
        queue_s = (self.sent - self._left) * 8 / max(1.0, self.carries(now_s))
        self._acks.append((now_s + self.rtt_s, self._left, queue_s))
        while self._acks and self._acks[0][0] <= now_s:
            _, acked, queue_s = self._acks.popleft()
            if acked > self.acked:
                self.queue_s += (queue_s - self.queue_s) / 8
            self.acked = acked
        while self._goes and self._goes[0][0] <= self._left:
            yield self._goes.popleft()[1]


@dataclass
class Car:
    """Camera, stream, one driver, and a link.

    Key frames are five times the others; a new bitrate makes one.
    """

    carries: Callable[[float], float]
    rtt_s: float = 0.02
    most: int = MOST
    now_s: float = 0.0
    bitrate: int = MOST
    ages_s: list[tuple[float, float]] = field(default_factory=list)
    changes: list[tuple[float, int]] = field(default_factory=list)
    drops: list[float] = field(default_factory=list)

    def request_key(self) -> bool:
        self.key = True
        return True

    def set_bitrate(self, bitrate: int) -> bool:
        self.bitrate, self.key = bitrate, True
        self.changes.append((self.now_s, bitrate))
        return True

    def set_fps(self, most: int) -> bool:
        return False

    def unit(self, number: int) -> AccessUnit:
        """Return the camera's next unit."""
        key = self.key or number % 30 == 0
        self.key = False
        size = self.bitrate / 8 / 34 * (5 if key else 1)
        return AccessUnit(key, int(self.now_s * 1e6), b"x" * int(size))

    def send(self, viewer: Viewer, meter: LinkMeter, link: Link) -> bool:
        """Send all that may go now; return True if the link has room left."""
        while True:
            unacked = link.sent - link.acked
            meter.sample(self.now_s, link.acked, unacked, self.rtt_s, link.queue_s)
            room = unacked < meter.limit_bytes
            packet = viewer.next(room, self.now_s)
            if packet is None:
                return room
            meter.sent(self.now_s, unacked, len(packet.framed))
            link.send(len(packet.framed), packet.capture_us)

    def run(self, until_s: float) -> None:
        """Run from the start to `until_s`."""
        self.key, self.bitrate = True, self.most
        fanout = Stream(self, self.most, lambda: self.now_s)
        viewer = fanout.add_viewer(lambda: True)
        meter, link = LinkMeter(0.0, 0), Link(self.carries, self.rtt_s)
        dropped = frame = 0
        blocked_s: float | None = None
        reported_s = 0.0
        for tick in range(int(until_s / TICK_S)):
            self.now_s = tick * TICK_S
            for capture_us in link.pass_to(self.now_s):
                self.ages_s.append((self.now_s, self.now_s - capture_us / 1e6))
            if self.now_s >= frame / 30:
                frame += 1
                fanout.publish(self.unit(frame))
            room = self.send(viewer, meter, link)
            if room or not viewer.wants:
                blocked_s = None
            elif blocked_s is None:
                blocked_s = self.now_s
            if not meter.settled(self.now_s):
                dropped = viewer.dropped
            elif self.now_s - reported_s >= 0.1:
                reported_s = self.now_s
                since_s = 0.0 if blocked_s is None else self.now_s - blocked_s
                new = viewer.dropped - dropped
                if new:
                    self.drops.append(self.now_s)
                dropped = viewer.dropped
                fanout.report(viewer, meter.report(since_s, new))

    def bitrate_at(self, when_s: float) -> int:
        return [self.most, *(n for at, n in self.changes if at <= when_s)][-1]

    def worst_s(self, begin_s: float, end_s: float) -> float:
        return max(age for at, age in self.ages_s if begin_s <= at < end_s)


def narrow(rate: float, begin_s: float, end_s: float) -> Callable[[float], float]:
    return lambda now_s: rate if begin_s <= now_s < end_s else 20e6


def test_good_link_keeps_the_full_bitrate() -> None:
    for rtt_s in (0.002, 0.05, 0.2):
        car = Car(lambda now_s: 20e6, rtt_s=rtt_s)
        car.run(20.0)
        assert car.changes == [] and car.worst_s(1.0, 20.0) < 0.2, rtt_s


@pytest.mark.parametrize("rate", [300e3, 500e3, 1e6, 1.5e6])
@pytest.mark.parametrize("rtt_s", [0.005, 0.03, 0.1])
def test_narrow_link_lowers_the_bitrate_and_recovers(rate: float, rtt_s: float) -> None:
    car = Car(narrow(rate, 5.0, 30.0), rtt_s=rtt_s)
    car.run(40.0)
    # The rate falls quickly; a link that is only a little too narrow shows it at key frames.
    assert car.changes[0][0] < (5.6 if rate < 1e6 else 6.5)
    assert car.bitrate_at(7.0) <= rate
    held = [car.bitrate_at(7.0 + at / 10) for at in range(230)]
    assert max(held) <= 1.3 * rate  # and the rate stays there, but for small probes
    assert sum(held) / len(held) >= 0.4 * rate
    assert len([at for at in car.drops if at > 8.0]) <= 12
    late = sorted(age for at, age in car.ages_s if 8.0 <= at < 30.0)
    assert late[len(late) // 2] < 0.16
    assert car.bitrate_at(33.0) == MOST  # full quality within 3 s
    assert car.worst_s(33.5, 40.0) < 0.15


@pytest.mark.parametrize("most", [2_000_000, 25_000_000])
def test_outage_drops_to_the_least_bitrate_and_recovers(most: int) -> None:
    car = Car(lambda now_s: 0.0 if 5.0 <= now_s < 8.0 else 60e6, most=most)
    car.run(14.0)
    assert car.bitrate_at(7.0) == LEAST_BITRATE
    assert car.bitrate_at(11.0) == most
    assert min(at for at, age in car.ages_s if at > 8.0 and age < 0.15) < 8.2


def report(
    burst: float = 0.0, delivered: float = 0.0, blocked_s: float = 0.0, dropped: int = 0
) -> LinkReport:
    return LinkReport(delivered, burst, blocked_s, dropped)


@pytest.fixture
def control() -> Bitrate:
    return Bitrate(MOST)


def test_decrease_follows_the_delivered_rate_with_a_pause(control: Bitrate) -> None:
    assert control.update(1.0, report(blocked_s=0.1, delivered=5e5)) is None
    assert control.update(2.0, report(blocked_s=0.15, delivered=5e5)) == 400_000
    assert control.update(2.3, report(dropped=1, delivered=2e5)) is None
    assert control.update(2.5, report(dropped=1, delivered=2e5)) == 160_000
    assert control.update(3.0, report(dropped=1)) == LEAST_BITRATE
    assert control.update(4.0, report(dropped=1)) is None


def test_stored_burst_does_not_count_as_delivered_rate(control: Bitrate) -> None:
    assert control.update(1.0, report(dropped=1, delivered=9e6)) == 1_600_000


def test_increase_follows_burst_evidence_in_steps(control: Bitrate) -> None:
    control.update(1.0, report(dropped=1))
    assert control.update(1.4, report(burst=9e6)) is None  # not calm for long enough
    assert control.update(1.6, report(burst=9e6)) == 450_000
    assert control.update(1.9, report(burst=9e6)) is None
    assert control.update(2.1, report(burst=1e6)) == 700_000
    assert control.update(2.6, report(burst=1.1e6)) is None
    assert control.update(2.7, report(burst=9e6)) == MOST
    assert control.update(9.0, report(burst=9e6)) is None


def test_increase_without_evidence_is_small_and_late(control: Bitrate) -> None:
    control.update(1.0, report(dropped=1))
    assert control.update(8.9, report()) is None
    assert control.update(9.0, report()) == 187_500


def test_last_increase_may_be_small(control: Bitrate) -> None:
    assert control.update(1.0, report(dropped=1, delivered=2.4e6)) == 1_600_000
    assert control.update(9.5, report(burst=9e6)) == MOST
    assert control.full() is None


def test_increases_that_fail_at_once_come_less_often(control: Bitrate) -> None:
    control.update(0.0, report(dropped=1))
    now_s, raised_s = 0.0, []
    for _ in range(200):
        now_s += 0.1
        if control.update(now_s, report(burst=9e6)):
            raised_s.append(now_s)
            now_s += 0.5
            control.update(now_s, report(dropped=1))
    gaps_s = [b - a for a, b in zip(raised_s, raised_s[1:], strict=False)]
    assert 1.4 < gaps_s[0] < gaps_s[-1] <= 2.7


def test_full_returns_the_highest_bitrate_once(control: Bitrate) -> None:
    assert control.at_most
    control.update(0.0, report(dropped=1))
    assert not control.at_most
    assert control.full() == MOST and control.full() is None and control.at_most
    assert Bitrate(100_000).least == 100_000


def test_two_copies_halve_the_bitrate() -> None:
    control, twice = Bitrate(MOST), report(burst=9e6)._replace(divisor=2)
    assert control.update(1.0, twice) == MOST // 2 and control.at_most
    assert control.update(1.1, twice) is None
    assert control.update(2.0, twice._replace(dropped=1, delivered=5e5)) == 400_000
    assert control.update(5.0, twice) == MOST // 2
    assert control.update(9.0, report(burst=9e6)) == MOST and control.at_most
    assert control.update(9.1, twice) == MOST // 2
    assert control.full() == MOST and control.at_most
    assert Bitrate(200_000).update(0.0, twice) == LEAST_BITRATE


def test_meter_forgets_old_rates_and_bursts() -> None:
    meter = LinkMeter(0.0, 0)
    assert meter.limit_bytes == 8000
    meter.sample(0.0, 0, 0, 0.0)
    meter.sent(0.0, 0, 30_000)
    meter.sample(0.045, 30_000, 0, 0.02)
    assert not meter.settled(0.05)
    meter.sample(0.1, 30_000, 0, 0.02)
    assert meter.settled(0.1)
    assert meter.rate == pytest.approx(300_000)
    assert meter.limit_bytes == pytest.approx(21_000)
    assert meter.report(0.5, 2) == pytest.approx((2.4e6, 8 * (30_000 - 1448) / 0.05, 0.5, 2, 1))
    for tick in range(2, 14):
        meter.sample(tick * 0.11, 30_000, 0, 0.02)
    assert (meter.rate, meter.report(0.0, 0).burst) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("rtt_s", "queue_s", "limit"),
    [(0.02, 0.0, 7_000 * 10), (0.1, 0.0, 2 * 15_000 * 10), (0.1, 0.03, 15_000 * 10)],
)
def test_far_link_without_queue_has_twice_the_room(
    rtt_s: float, queue_s: float, limit: float
) -> None:
    meter = LinkMeter(0.0, 0)
    meter.sample(0.1, 100_000, 0, rtt_s, queue_s)
    assert meter.limit_bytes == pytest.approx(limit)


def burst(meter: LinkMeter) -> float:
    """Return the best burst in bytes/s once its window is over."""
    meter.sample(0.5, 100_000, 0, 0.02)
    return meter.report(0.0, 0).burst / 8


def test_queued_unit_is_measured_by_its_own_acknowledgements() -> None:
    meter = LinkMeter(0.0, 0)
    meter.sample(0.0, 0, 10_000, 0.02)
    meter.sent(0.0, 10_000, 10_000)
    meter.sample(0.05, 10_000, 10_000, 0.02)
    meter.sample(0.06, 12_000, 8_000, 0.02)
    meter.sample(0.10, 19_000, 1_000, 0.02)  # the last segment does not matter
    assert burst(meter) == pytest.approx((9_000 - 1448) / 0.055)


def test_meter_measures_the_larger_of_two_units() -> None:
    meter = LinkMeter(0.0, 0)
    meter.sent(0.0, 0, 2_000)
    meter.sent(0.0, 2_000, 3_000)
    meter.sample(0.0, 0, 5_000, 0.0)
    meter.sent(0.0, 5_000, 20_000)
    meter.sample(0.1, 5_000, 20_000, 0.0)
    meter.sample(0.2, 25_000, 0, 0.0)
    assert burst(meter) == pytest.approx((20_000 - 1448) / 0.105)


def test_unit_below_a_segment_gives_no_burst() -> None:
    meter = LinkMeter(0.0, 0)
    meter.sent(0.0, 0, 500)
    meter.sample(0.05, 500, 0, 0.02)
    assert burst(meter) == 0.0


def test_progress_stops_while_acknowledgements_are_due() -> None:
    meter = LinkMeter(1.0, 0)
    meter.sample(2.0, 0, 0, 0.02)
    assert meter.progress_s == 2.0  # no acknowledgement is due
    meter.sample(3.0, 0, 500, 0.02)
    assert meter.progress_s == 2.0
    meter.sample(4.0, 100, 400, 0.02)
    assert meter.progress_s == 4.0


def test_pauses_of_the_small_picture_grow_while_the_link_is_too_slow() -> None:
    precedence, pauses = Precedence(), []
    now_s = 100.0
    assert not precedence.yields(now_s, strained=False)
    for _ in range(6):
        began_s = now_s
        strained = True
        while precedence.yields(now_s, strained):
            strained, now_s = False, now_s + 0.1
        pauses.append(round(now_s - began_s))
        now_s += 0.5  # it is tried again, and the large picture suffers
    assert pauses == [2, 4, 8, 16, 20, 20]
    now_s += 60.0
    assert precedence.yields(now_s, strained=True)
    assert not precedence.yields(now_s + 2.1, strained=False), "a good minute forgives"


# --- share of lost packets ---


def test_share_covers_the_last_five_seconds() -> None:
    meter = LossMeter()
    assert meter.due_s < 0.0 and meter.share is None
    shares: list[float | None] = []
    for second in range(12):
        lost = 10 * min(second, 4)  # 4 seconds of 10 of 100, and no more
        meter.sample(float(second), 100 * second, lost)
        shares.append(meter.share)
    assert meter.due_s == 11.0 + EVERY_S
    assert shares[:6] == [None, 0.1, 0.1, 0.1, 0.1, 0.08]
    assert shares[9:] == [0.0, 0.0, 0.0]


def test_recent_share_covers_three_seconds() -> None:
    meter = LossMeter()
    assert meter.recent == 0.0
    shares: list[float] = []
    for second in range(7):
        meter.sample(float(second), 10 * second, min(second, 2))
        shares.append(meter.recent)
    assert shares == [0.0, 0.1, 0.1, 2 / 30, 1 / 30, 0.0, 0.0]


def test_share_is_none_for_few_packets() -> None:
    meter = LossMeter()
    meter.sample(0.0, 0, 0)
    meter.sample(1.0, 49, 20)
    assert meter.share is None
    meter.sample(2.0, 50, 20)
    assert meter.share == 0.4


def test_share_is_at_most_one() -> None:
    """The kernel counts a retransmission when it is sent; the two figures are not read at once."""
    meter = LossMeter()
    meter.sample(0.0, 0, 0)
    meter.sample(1.0, 60, 61)
    assert meter.share == 1.0


def test_losses_taken_back_are_no_negative_share() -> None:
    """The peer reports a duplicate a round trip after its retransmission."""
    meter = LossMeter()
    meter.sample(0.0, 0, 4)
    meter.sample(1.0, 100, 0)
    assert meter.share == meter.recent == 0.0

"""Links that are late, both ways: the car never drives by history.

A page, a link and the real car (session, hub, gate, wheels, fake pins) on one clock. The link is in
order, like TCP: a late message delays all later ones. The page sends wishes every 40 ms on any
link: its own caution is not tested here.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.hub import PROFILE
from testkit.machine import MS, WiredCar

from fpvcar.access.codes import Rights
from fpvcar.hil.stop_causes import LATE_S
from fpvcar.seat.drive_socket import Session
from fpvcar.wire import down, up
from fpvcar.wire.json_text import Down

STEP_MS = 5
DelayS = Callable[[float], float]
"""Delay of a message by the moment of its start, both in s."""
DELAYS_S = (0.2, 0.5, 1.0, 3.0)


class Way:
    """Single direction of a link. Messages stay in order."""

    def __init__(self, delay_s: DelayS) -> None:
        self._delay_s = delay_s
        self._carried: deque[tuple[float, object]] = deque()
        self._arrives_s = 0.0

    def put(self, message: object, now_s: float) -> None:
        """Start a message on its way."""
        self._arrives_s = max(self._arrives_s, now_s + self._delay_s(now_s))
        self._carried.append((self._arrives_s, message))

    def take(self, now_s: float) -> Iterable[object]:
        """Yield the messages that have arrived by now."""
        while self._carried and self._carried[0][0] <= now_s:
            yield self._carried.popleft()[1]


class LateCar(WiredCar):
    """Car with one page that drives it, and the link between them."""

    def __init__(self, upward_s: DelayS, downward_s: DelayS) -> None:
        super().__init__()
        self.start_s = self.now_ns / 1e9
        self.session = Session("10.0.0.1", Rights(drive=True), PROFILE.gate)
        self.upward = Way(lambda s: upward_s(s - self.start_s))
        self.downward = Way(lambda s: downward_s(s - self.start_s))
        self.seq = self.wish_seq = self.seen = 0
        self.held = 0.0
        self.held_s = -10.0
        self.moved_s = 0.0
        self.hub.receive(self.session, up.Hello(1, "page-of-ann", "Ann"))

    @property
    def now_s(self) -> float:
        """Return the time since the start of the drive."""
        return self.now_ns / 1e9 - self.start_s

    def whatever_moves_was_wished(self) -> None:
        """Check every 5 ms that each movement was held at most 0.7 s ago."""
        if self.held:
            self.held_s = self.now_s
        if self.moves[0]:
            self.moved_s += STEP_MS / 1000
            late_s = self.now_s - self.held_s
            assert late_s <= LATE_S, f"moves {late_s:.2f} s after the finger came up"

    def hold(self, throttle: float, for_s: float) -> None:
        """Hold the driver's stick for a while; the page runs as usual."""
        self.held = throttle
        if not throttle or self.held_s < 0.0:
            self._wish()  # from the event handler itself
        for _ in range(round(for_s * 1000 / STEP_MS)):
            self._pass_step()

    def _wish(self) -> None:
        self.wish_seq += 1
        drive = up.Drive(self.wish_seq, self.now_ns / 1e6, self.held, 0.0, self.seen)
        self.upward.put(drive, self.now_ns / 1e9)

    def _pass_step(self) -> None:
        self.pass_time(STEP_MS)
        now_s, step = self.now_ns / 1e9, self.now_ns // MS
        if step % 100 == 0 and self.session._newest is not None:
            self._send(self.session._newest, now_s)
        while self.session._outbox:
            self._send(self.session._outbox.popleft(), now_s)
        for message in self.downward.take(now_s):
            if isinstance(message, down.State | down.Pong):
                self.seen = message.nonce
        if step % 40 == 0:
            self._wish()
        if step % 100 == 50:
            self.upward.put(up.Ping(self.wish_seq, self.now_ns / 1e6), now_s)
        for message in self.upward.take(now_s):
            assert isinstance(message, up.Drive | up.Ping)
            self.hub.receive(self.session, message)

    def _send(self, message: object, now_s: float) -> None:
        assert isinstance(message, Down)
        self.session.sent(message)
        self.downward.put(message, now_s)


def after(start_s: float, delay_s: float) -> DelayS:
    """Return a delay that starts small and grows at `start_s`."""
    return lambda now_s: delay_s if now_s >= start_s else 0.005


def in_time(now_s: float) -> float:
    """Return the delay of a good Wi-Fi."""
    return 0.005


def pushes(car: LateCar, count: int = 3) -> None:
    """Let go, drive for a second; a few times, and then watch for 4 s."""
    for _ in range(count):
        car.hold(0.0, 0.5)
        car.hold(1.0, 1.0)
    car.hold(0.0, 4.0)


@pytest.mark.parametrize("ways", ["up", "down", "both"])
@pytest.mark.parametrize("from_s", [0.0, 40.0])
@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_link_late_from_some_moment_never_drives_by_history(
    delay_s: float, from_s: float, ways: str
) -> None:
    late = after(from_s, delay_s)
    car = LateCar(late if ways != "down" else in_time, late if ways != "up" else in_time)
    car.hold(0.0, from_s)
    pushes(car)
    if delay_s >= 0.5:
        assert car.moved_s == 0.0, "it drove by history"
    elif ways == "down" or (ways == "up" and from_s == 0.0):
        assert car.moved_s > 1.0, "0.2 s is late, but no history"


@pytest.mark.parametrize("ways", ["up", "down", "both"])
def test_link_drifting_10_ms_a_second_stops_driving_in_time(ways: str) -> None:
    """Drift below the one that the fastest of the last 30 s can show."""

    def creeping(now_s: float) -> float:
        return 0.01 * now_s

    car = LateCar(creeping if ways != "down" else in_time, creeping if ways != "up" else in_time)
    for _ in range(12):
        pushes(car, 2)
    before_s = car.moved_s
    assert before_s > 0.0
    pushes(car)
    assert car.moved_s == before_s, "0.9 s late, and it drives"


@pytest.mark.parametrize("stall_s", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("up_too", [True, False])
def test_wishes_held_back_by_a_stall_move_nothing_late(stall_s: float, up_too: bool) -> None:
    def stalled(now_s: float) -> float:
        return max(0.005, 2.0 + stall_s - now_s) if 2.0 <= now_s else 0.005

    car = LateCar(stalled if up_too else in_time, stalled if not up_too else in_time)
    car.hold(0.0, 1.0)
    car.hold(1.0, 2.0)
    car.hold(0.0, 5.0)
    pushes(car)
    assert car.moved_s > 1.0


def test_new_socket_that_stalls_first_moves_nothing() -> None:
    """The best speed of this link is unknown: its first wishes are the reference."""
    car = LateCar(after(0.0, 3.0), in_time)
    car.hold(0.0, 0.1)
    car.hold(1.0, 1.0)
    car.hold(0.0, 8.0)
    assert car.moved_s == 0.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ways", ["up", "down", "both"])
def test_jitter_up_to_200_ms_drives_without_a_stop(seed: int, ways: str) -> None:
    dice, most_s = random.Random(seed), 0.1 if ways == "both" else 0.2

    def jitter(now_s: float) -> float:
        return dice.uniform(0.0, most_s)

    car = LateCar(jitter if ways != "down" else in_time, jitter if ways != "up" else in_time)
    car.hold(0.0, 1.0)
    car.hold(1.0, 20.0)
    assert car.hub.stop() is None and car.moved_s > 19.0


Delays = st.lists(st.one_of(st.floats(0.0, 0.3), st.floats(0.0, 4.0)), min_size=1, max_size=12)


@given(upward=Delays, downward=Delays, held=st.lists(st.floats(0.1, 2.0), max_size=6))
def test_random_delays_never_move_the_car_by_history(
    upward: list[float], downward: list[float], held: list[float]
) -> None:
    """Another delay every half a second, each way; the stick is pushed and released."""

    def process(delays: list[float]) -> DelayS:
        return lambda now_s: delays[int(now_s * 2) % len(delays)]

    car = LateCar(process(upward), process(downward))
    for number, for_s in enumerate(held):
        car.hold(float(number % 2), for_s)
    car.hold(0.0, 5.0)
    assert car.moves[0] == 0.0

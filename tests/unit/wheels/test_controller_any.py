"""Core of the wheels: the car stops in time for any events in any order."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from testkit.pins.wheels_car import MS, PINS, Car

from fpvcar.wire.wheels import Answer, Status, WheelsReason

DUTIES = st.sampled_from([0.0, 0.0, 0.3, -0.3])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), DUTIES, st.integers(-50, 200)),
        st.tuples(st.just("wait"), st.integers(1, 120), st.just(0)),
        st.tuples(st.just("hang"), st.integers(1, 2000), st.booleans()),
        st.tuples(st.just("bad"), st.just(0), st.just(0)),
        st.tuples(st.just("close"), st.just(0), st.just(0)),
        st.tuples(st.just("cut"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


class Watched(Car):
    """Car that asserts its invariants after every change of a pin."""

    def __init__(self) -> None:
        self.zero_had = self.was_powered = False
        self.lease_ns = 0
        super().__init__()

    def watch(self) -> None:
        for forward, reverse in (PINS[:2], PINS[2:]):
            duties = self.pins.duty(forward), self.pins.duty(reverse)
            assert 0.0 in duties or duties == (1.0, 1.0), "both inputs on"
        begins = self.powered and not self.was_powered
        assert self.zero_had or not begins, "moved before a zero"
        self.was_powered = self.powered

    def note(self, answers: list[Answer], sent: dict[int, tuple[float, int]]) -> None:
        for answer in answers:
            if answer.status == Status.STOPPED:
                self.zero_had = False
            elif answer.status == Status.APPLIED:
                duty, deadline_ns = sent[answer.seq]
                assert self.now_ns < deadline_ns <= self.now_ns + 150 * MS
                self.lease_ns = deadline_ns


@settings(max_examples=300, deadline=None)
@given(ACTS)
@example([("send", 0.0, 21), ("hang", 20, True), ("hang", 100, True)])  # hung in a brake
def test_random_events_always_stop_the_car_in_time(acts: list[tuple[str, float, int]]) -> None:
    car, sent = Watched(), {}
    for kind, value, extra in acts:
        if kind == "send":
            packet = car.packet(value, extra)
            sent[car.seq] = (value, car.now_ns + extra * MS)
            car.zero_had |= value == 0.0
            car.note(car.send(packet), sent)
        elif kind == "wait":
            car.note(car.wait(value), sent)
        elif kind == "hang":  # the process stands still; a client may continue in between
            car.skip(value)
            if extra:
                packet = car.packet(0.3)
                sent[car.seq] = (0.3, car.now_ns + 100 * MS)
                car.note(car.send(packet), sent)
        elif kind == "bad":
            car.note(car.send(b"?"), sent)
        elif kind == "close":
            car.note(car.wheels.stop(WheelsReason.CLOSED, car.now_ns), sent)
        else:
            car.pins.cut()
            car.zero_had = True
            car.note(car.send(car.packet(0.0)), {car.seq: (0.0, car.now_ns + 100 * MS)})
        if car.powered and kind != "cut" and car.pins.fault is None:
            assert car.now_ns < car.lease_ns or kind == "hang"
    car.skip(300)
    assert not car.powered, "neither wheels nor dead man stopped it"

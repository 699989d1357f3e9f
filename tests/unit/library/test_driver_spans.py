"""Time of each driver at the wheel: the recorder's tally, and the one from its steps."""

import itertools

import msgspec
import pytest
from testkit.recorder.recording import CATALOGUE, PROFILE, UTC_NS, BytesSource, about, step
from testkit.world import inputs

from fpvbench.world.process import World
from fpvbench.world.scene import Layout, Ramp
from fpvcar.drive import mixing
from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.library import driver_spans
from fpvcar.recorder.encoder import Encoder, QueuedMessage
from fpvcar.recorder.writer import Writer
from fpvcar.recordings import codec, messages
from fpvcar.recordings.messages import Stint, Turn
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.units import SECOND_NS

NOBODY = {"reason": "nobody", "throttle": 0.0, "wish": None}
STOPPED = {"reason": "stopped", "throttle": 0.0}
Timed = list[tuple[float, messages.Message]]


def steps(from_s: float, to_s: float, **more: object) -> Timed:
    """Return the gate's runs in this time, 50 a second."""
    count = round((to_s - from_s) * 50)
    return [(from_s + n / 50, step(n, **more)) for n in range(count)]


def tallied(said: Timed) -> list[tuple[float, ...]]:
    """Return [from_s, to_s] of each stint."""
    return [
        tuple(round((ns - UTC_NS) / SECOND_NS, 2) for ns in (one.from_ns, one.to_ns))
        for one in stints_of(said)
    ]


def stints_of(said: Timed) -> tuple[Stint, ...]:
    tally = driver_spans.Tally(2.0)
    for at_s, message in sorted(said, key=lambda one: one[0]):
        tally.note(UTC_NS + round(at_s * SECOND_NS), message)
    return tally.stints()


def test_stint_lasts_while_a_driver_has_the_wheel() -> None:
    said = [*steps(0, 1, **NOBODY), *steps(1, 3), *steps(3, 4, **NOBODY), *steps(4, 5)]
    assert tallied(said) == [(1.0, 2.98), (4.0, 4.98)]
    assert tallied(steps(0, 2, **NOBODY)) == []
    assert tallied([*steps(0, 1), *steps(4, 5)]) == [(0.0, 0.98), (4.0, 4.98)], "a hole"


def test_first_turn_message_names_the_driver_of_a_stint() -> None:
    said = [*steps(0, 6), (2.0, Turn("Ann")), (4.0, Turn("Ann")), (5.0, Turn("Bob"))]
    assert [one.name for one in stints_of(said)] == ["Ann", "Bob"]
    said = [*steps(0, 1, **NOBODY), (0.5, Turn("Ann")), *steps(1, 2)]
    assert [one.name for one in stints_of(said)] == ["Ann"]
    assert [one.name for one in stints_of([*steps(0, 1), (0.5, Turn(None))])] == [""]


def test_distance_is_throttle_times_top_speed() -> None:
    back, ahead = mixing.Slew(-0.5, 0.0, 0.0), mixing.Slew(0.5, 0.0, 0.0)
    (one,) = stints_of(steps(0, 4, slew=back))
    assert one.metres == pytest.approx(4.0 * 0.5 * 2.0, abs=0.03)
    (one,) = stints_of([*steps(0, 1, slew=ahead), *steps(2.5, 3.5, slew=ahead)])
    assert one.metres == pytest.approx(2.1, abs=0.05), "a gap counts for a tenth"
    (one,) = stints_of(steps(0, 4, slew=mixing.Slew()))
    assert one.metres == 0.0


@pytest.mark.parametrize("plan", [[1.0] * 20, [0.3] * 40, [0.6] * 10 + [0.0] * 10 + [-0.6] * 10])
def test_distance_is_within_factor_two_of_bench_physics(plan: list[float]) -> None:
    """Comparison with the bench's world; a throttle lasts for 0.05 s."""
    world, slew = World(1, place=Layout((), Ramp(0.0, 9.0))), mixing.Slew()
    tally, real_m, tick_s = driver_spans.Tally(PROFILE.guard.top_mps), 0.0, 0.01
    world.put(-1.5, 0.0, 0.0)
    throttles = [one for one in plan for _ in range(5)] + [0.0] * 100
    for number, throttle in enumerate(throttles):
        at_s = number * tick_s
        tally.note(UTC_NS + round(at_s * SECOND_NS), step(slew=slew))
        duties, slew = mixing.mix(throttle, 0.0, PROFILE.motors, 7.4, slew, at_s)
        world.step(inputs(max(duties[0], 0.0), max(-duties[0], 0.0)))
        real_m += abs(world.speed_mps) * tick_s
    (one,) = tally.stints()
    assert real_m > 0.4 and 0.5 < one.metres / real_m < 2.0


def test_stop_is_counted_when_it_begins() -> None:
    silence = {**STOPPED, "after": Latches(Cause.SILENCE, None)}
    held = {**STOPPED, "after": Latches(None, Hold(Cause.ESTOP, "Ann"))}
    said = [
        *steps(0, 1),
        *steps(1, 2, **silence),
        *steps(2, 3),
        *steps(3, 4, **held),
        *steps(4, 5, **silence),
        *steps(5, 6, **NOBODY),
        *steps(6, 7, **STOPPED),
    ]
    first, second = stints_of(said)
    assert first.stops == {"silence": 2, "estop": 1} and second.stops == {}
    (one,) = stints_of(steps(0, 1, **held))
    assert one.stops == {}, "it began in the file before"


def test_top_speed_comes_from_the_recorded_profile() -> None:
    assert driver_spans.top_mps(about()) == 1.4
    profile = {"guard": {"top_mps": 3}}
    assert driver_spans.top_mps(msgspec.structs.replace(about(), profile=profile)) == 3.0
    for odd in ({}, {"guard": 5}, {"guard": {"top_mps": "fast"}}):
        assert driver_spans.top_mps(msgspec.structs.replace(about(), profile=odd)) == 1.4, odd
    assert driver_spans.top_mps(None) == 1.4


def written(said: Timed) -> Recording:
    """Write a file of these messages in the recorder's format."""
    writer, encoder = Writer(CATALOGUE, about()), Encoder()
    counts = {messages.DRIVER: itertools.count(), messages.STEP: itertools.count()}
    noted = [
        QueuedMessage(CATALOGUE.numbers[topic], next(counts[topic]), at_ns, at_ns, message)
        for at_s, message in sorted(said, key=lambda one: one[0])
        for at_ns in [UTC_NS + round(at_s * SECOND_NS)]
        for topic in [messages.DRIVER if isinstance(message, Turn) else messages.STEP]
    ]
    parts = [writer.begin(), *writer.chunk(encoder.items(noted)), writer.end()]
    return Recording(BytesSource(b"".join(parts)))


def test_recorder_writes_the_stints_of_its_steps() -> None:
    found = written([*steps(0, 2, throttle=0.7), (0.5, Turn("Ann")), *steps(3, 4)])
    (said,) = found.messages({messages.STINTS})
    last = codec.decode(messages.STINTS, said.data)
    assert isinstance(last, messages.Stints)
    assert found.closed and not found.damage and not found.gaps
    assert driver_spans.stints_of(found) == last.stints and last.stints[0].name == "Ann"
    assert said.log_ns == found.end_ns


def test_file_without_steps_has_no_stints() -> None:
    found = written([(0.5, Turn("Ann"))])
    assert not found.counts[messages.STINTS] and driver_spans.stints_of(found) is None

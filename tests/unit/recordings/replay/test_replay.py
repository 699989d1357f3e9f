"""Replay of recorded steps: bit for bit, with a report of each difference."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import Drive, Logged, McapFile

from fpvcar.devices.outlier_filter import NOISY
from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.drive.guard import Free
from fpvcar.drive.mixing import Slew
from fpvcar.recordings import codec, messages
from fpvcar.recordings.messages import Step, Wish, WishIn
from fpvcar.recordings.replay import replay
from fpvcar.recordings.replay.ages import AgeCheck, AgeMismatch, CapturedPicture
from fpvcar.recordings.replay.check_inputs import RecordedWish
from fpvcar.recordings.replay.replay import ReplayResult, StepGap, reachable, same
from fpvcar.runtime.texts import State


def again(drive: Drive, steps: Sequence[Step] | None = None) -> ReplayResult:
    """Replay the drive's steps, or the given ones."""
    return replay.run(drive.profile, drive.steps if steps is None else steps)


@pytest.mark.parametrize(("seed", "guard"), [(0, "limit"), (1, "limit"), (2, "warn"), (3, "off")])
def test_replay_equals_the_recorded_drive(seed: int, guard: str) -> None:
    drive = Drive(seed, guard)
    steps = drive.go(20.0)
    verdict = again(drive)
    assert verdict.differences == [] and verdict.differing == 0 and verdict.holes == []
    assert verdict.steps == len(steps) > 500


def test_drives_cover_all_gate_events() -> None:
    """The drives cover all events; otherwise the test above proves little."""
    steps = [step for seed in range(4) for step in Drive(seed).go(20.0)]
    assert {step.reason for step in steps} >= {"driving", "guarded", "neutral", "nobody", "stopped"}
    held = {step.after.hold.cause for step in steps if step.after.hold}
    assert held >= {Cause.ESTOP, Cause.ESTOP_GROWN_UP, Cause.PINS}
    assert {step.after.arm for step in steps} >= {Cause.BLIND, Cause.HANDOVER, Cause.SILENCE, None}
    assert {step.guard_mode for step in steps} == {"off", "warn", "limit"}
    assert any(0.0 < step.free.ahead < 1.0 for step in steps)
    assert any(step.wish and step.wish.received_s is None for step in steps)


@functools.cache
def driven_once() -> Drive:
    """Drive for twenty seconds; its steps are to be copied."""
    drive = Drive(7)
    drive.go(20.0)
    return drive


def up(value: float) -> float:
    """Return the next number above: one bit."""
    return math.nextafter(value, math.inf)


CHANGES: dict[str, Callable[[Step], dict[str, Any]]] = {
    "throttle": lambda step: {"throttle": up(step.throttle)},
    "steer": lambda step: {"steer": up(step.steer)},
    "reason": lambda step: {"reason": "neutral"},
    "duties": lambda step: {"duties": (step.duties[0], up(step.duties[1]))},
    "latches after": lambda step: {"after": Latches(Cause.BLIND)},
    "latches": lambda step: {"latches": Latches(Cause.PINS)},
    "slew": lambda step: {"slew": step.slew._replace(drive=up(step.slew.drive))},
    "free": lambda step: {"free": Free(up(step.free.ahead), step.free.back)},
}


def driven(steps: Sequence[Step]) -> int:
    """Return a step in the midst of driving forward, after many others."""
    return next(
        number
        for number, step in enumerate(steps)
        if number > 300 and step.throttle > 0.4 and step.guard_mode == "limit"
    )


def changed(change: Callable[[Step], dict[str, Any]]) -> tuple[Step, ReplayResult]:
    """Replay a drive with one changed step; return that step and the result."""
    drive = driven_once()
    steps = list(drive.steps)
    at = driven(steps)
    steps[at] = structs.replace(steps[at], **change(steps[at]))
    return steps[at], again(drive, steps)


@pytest.mark.parametrize("what", CHANGES)
def test_changed_output_bit_is_found_at_its_step(what: str) -> None:
    step, verdict = changed(CHANGES[what])
    first = verdict.differences[0]
    assert verdict.differing >= 1 and (first.step, first.name) == (step, what)
    assert {one.step for one in verdict.differences} == {step}, "and nowhere else"
    assert verdict.holes == []


@pytest.mark.parametrize(
    "change",
    [
        lambda step: {"wish": Wish(step.wish.throttle, up(step.wish.steer), 1e9)},
        lambda step: {"limit": step.limit / 2},
        lambda step: {"volts": 9.9},
        lambda step: {"picture_age_s": 1.0},
        lambda step: {"fault": Cause.PINS},
        lambda step: {"now_ns": step.now_ns + 1_000_000_000},
        lambda step: {"guard_mode": "off", "free": Free(0.1, 0.1)},
    ],
)
def test_changed_input_is_found_at_its_step(change: Callable[[Step], dict[str, Any]]) -> None:
    step, verdict = changed(change)
    assert verdict.differing and verdict.differences[0].step.now_ns == step.now_ns


def test_hole_is_reported_and_replay_continues_after_it() -> None:
    drive = Drive(3)
    steps = drive.go(20.0)
    verdict = again(drive, [*steps[:200], *steps[300:]])
    assert verdict.differing == 0 and verdict.steps == len(steps) - 100
    assert verdict.holes == [StepGap(steps[199].now_ns / 1e9, steps[299].now_ns / 1e9)]


@pytest.mark.parametrize("start", [1, 50, 333])
def test_recording_may_begin_within_a_drive(start: int) -> None:
    """The guard's earlier state is unknown: it needs enough readings first."""
    drive = Drive(5)
    steps = drive.go(20.0)
    verdict = again(drive, steps[start:])
    assert verdict.differing == 0 and verdict.holes == []


class Rearless(Drive):
    """Drive whose rear sensor never reported."""

    def _walls_of(self, name: str, now_s: float) -> tuple[float | None, float, State]:
        told = super()._walls_of(name, now_s)
        return (None, 99.0, mcaps.SILENT) if name == "rear" else told


class Noisy(Drive):
    """Drive whose rear sensor is noisy at times, with the nearest of its ranges."""

    def _walls_of(self, name: str, now_s: float) -> tuple[float | None, float, State]:
        range_m, age_s, state = super()._walls_of(name, now_s)
        return range_m, age_s, NOISY if name == "rear" and int(now_s) % 2 else state


def test_noisy_sensor_counts_in_the_replay_as_in_the_car() -> None:
    drive = Noisy(7)
    steps = drive.go(20.0)
    assert {str(NOISY), "ok"} <= {one.state for step in steps for one in step.ranges}
    verdict = again(drive)
    assert verdict.differing == 0 and verdict.unsure == 0


def test_unchecked_guard_direction_is_counted_other_is_checked() -> None:
    drive = Rearless(7)
    steps = drive.go(20.0)
    assert again(drive).unsure == 0, "from the very first step all is known"
    limited = [step for step in steps[1:] if step.guard_mode == "limit"]
    verdict = again(drive, steps[1:])
    assert verdict.differing == 0
    assert verdict.unsure == verdict.unsure_by["rear"] == len(limited)
    assert 0 < verdict.unsure_by["front"] < len(limited) / 3
    assert verdict.unsure_by["side"] == 0, "it looks neither way"
    at = driven(steps)
    ahead, back = steps[at].free
    steps[at] = structs.replace(steps[at], free=Free(up(ahead), back))
    first = again(drive, steps[1:]).differences[0]
    assert (first.step, first.name) == (steps[at], "free")


def test_wrong_guard_output_is_found_soon_after_a_hole() -> None:
    drive = driven_once()
    steps = list(drive.steps)
    at = driven(steps)
    steps[at] = structs.replace(steps[at], free=Free(0.0123, 0.0456))
    verdict = again(drive, steps[at - 100 :])
    assert verdict.differing and verdict.differences[0].step == steps[at]


def test_same_compares_bit_for_bit() -> None:
    assert same(1.5, 1.5) and not same(0.0, -0.0) and not same(0.1 + 0.2, 0.3)
    assert same((0.0, 1.0), (0.0, 1.0)) and not same((0.0,), (-0.0,))
    assert same(Slew(0.0, 0.1, 2.0), Slew(0.0, 0.1, 2.0))


def test_reachable_latches_between_two_steps() -> None:
    estop, by_mum = Hold(Cause.ESTOP, "Bob"), Hold(Cause.ESTOP_GROWN_UP, "Mum")
    armed = Latches(None)
    assert reachable(armed, armed)
    assert reachable(armed, Latches(Cause.HANDOVER))
    assert reachable(armed, Latches(Cause.SILENCE))
    assert not reachable(armed, Latches(Cause.BLIND))
    assert not reachable(Latches(Cause.BLIND), Latches(Cause.SILENCE))
    assert reachable(armed, Latches(None, estop))
    assert reachable(Latches(None, estop), Latches(None, by_mum))
    assert not reachable(Latches(None, by_mum), Latches(None, estop))
    assert reachable(Latches(None, by_mum), Latches(Cause.HANDOVER))
    assert not reachable(Latches(None, estop), armed), "resume waits for a neutral"


# --- the command ---


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return tmp_path / "one.mcap"


def recorded(drive: Drive, path: Path, steps: Sequence[Step] | None = None) -> McapFile:
    """Write an mcap_file of a drive to `path`."""
    messages: list[Logged] = list(mcaps.step_messages(steps or drive.steps))
    mcap_file = McapFile(messages, profile=drive.profile)
    mcap_file.to(path)
    return mcap_file


def test_command_reports_an_exact_replay(tmp_path: Path, command: Command) -> None:
    drive = Drive(1)
    steps = drive.go(12.0)
    half = len(steps) // 2
    one, two = tmp_path / "one.mcap", tmp_path / "two.mcap"
    recorded(drive, one, steps[:half])
    recorded(drive, two, steps[half:])
    said = command("replay", two, one)
    assert said.out.startswith(f"one.mcap to two.mcap: {len(steps):,} steps in 0:1")
    assert "all as recorded" in said.out and said.err == ""
    assert "not run again" not in said.out


def test_command_reports_unchecked_steps_and_exits_3(one: Path, command: Command) -> None:
    drive = Rearless(1)
    steps = drive.go(12.0)[1:]
    recorded(drive, one, steps)
    assert "some steps could not be rerun" in command("replay", one, status=3).err
    count = sum(step.guard_mode == "limit" for step in steps)
    assert (
        f"  the guard was not rerun in {count:,} of the steps, as readings are missing "
        "of: front, rear\n"
    ) in command("replay", "--partial", one).out


def test_command_reports_a_difference_with_its_time(one: Path, command: Command) -> None:
    drive = driven_once()
    steps = list(drive.steps)
    at = driven(steps)
    duties = (steps[at].duties[0], up(steps[at].duties[1]))
    steps[at] = structs.replace(steps[at], duties=duties)
    recorded(drive, one, steps)
    said = command("replay", "--check", one, status=1).out
    assert "1 DIFFERENCES" in said and " duties" in said
    assert f"recorded  {duties}" in said
    seconds = (steps[at].now_ns - 100_000_000_000) // 1_000_000_000
    assert f"2025-11-21T20:00:{seconds:02d}." in said


def test_damaged_chunk_is_reported_and_the_rest_is_checked(one: Path, command: Command) -> None:
    drive = Drive(2)
    drive.go(12.0)
    mcaps.flipped(one, recorded(drive, one).chunks(), 5)
    command("replay", "--partial", one)
    said = command("replay", one, status=3)
    assert "some steps could not be rerun; --partial accepts this" in said.err
    assert "bytes are missing" in said.err
    assert said.out.count("steps are missing from") == 1
    assert "all as recorded" in said.out


def test_command_fails_without_steps_to_replay(tmp_path: Path, command: Command) -> None:
    letter, blind = tmp_path / "letter", tmp_path / "blind.mcap"
    letter.write_text("Dear reader")
    McapFile(list(mcaps.measured(1.0))).to(blind)
    assert "letter" in command("replay", letter, status=1).err
    assert "contains no steps of the gate" in command("replay", blind, status=1).out
    assert "none.mcap" in command("replay", tmp_path / "none.mcap", status=1).err


def wished(drive: Drive) -> list[Logged]:
    """Return the steps of a drive, and before each that has a new wish its /wish."""
    made, last = list[Logged](), None
    for step in drive.steps:
        wish, log_ns = step.wish, step.now_ns + mcaps.OFFSET_NS
        if wish and wish.received_s not in (None, last):
            last = wish.received_s
            came = WishIn(len(made), 0.0, wish.throttle, wish.steer, "Ann")
            made.append(Logged(log_ns, messages.WISH, codec.encode(came)))
            late = structs.replace(came, throttle=0.123, verdict="late")
            made.append(Logged(log_ns, messages.WISH, codec.encode(late)))
        made += mcaps.step_messages([step])
    return made


def test_changed_wish_message_is_a_difference(one: Path, command: Command) -> None:
    drive = Drive(1)
    drive.go(8.0)
    said = wished(drive)
    McapFile(said, profile=drive.profile).to(one)
    command("replay", one)
    fresh = [n for n, message in enumerate(said) if b'"fresh"' in message.data]
    at = fresh[len(fresh) // 2]
    came = codec.decode(messages.WISH, said[at].data)
    assert isinstance(came, WishIn)
    for change in ({"steer": up(came.steer)}, {"verdict": "stale"}):
        data = codec.encode(structs.replace(came, **change))
        changed = [*said[:at], said[at]._replace(data=data), *said[at + 1 :]]
        McapFile(changed, profile=drive.profile).to(one)
        out = command("replay", one, status=1).out
        assert "1 DIFFERENCES" in out and "Z wish\n" in out


def test_missing_wish_message_is_no_difference() -> None:
    drive = Drive(1)
    drive.go(8.0)
    given: list[Step | RecordedWish] = []
    for number, one in enumerate(wished(drive)):
        message = codec.decode(one.topic, one.data)
        if isinstance(message, WishIn):
            given.append(RecordedWish(message, number))
        elif isinstance(message, Step):
            given.append(message)
    at = [n for n, one in enumerate(given) if isinstance(one, RecordedWish)][20]
    verdict = replay.run(drive.profile, [*given[:at], *given[at + 2 :]])
    assert verdict.differing == 0


def test_changed_picture_age_is_a_difference(one: Path, command: Command) -> None:
    drive = Drive(1)
    drive.go(8.0)
    pictures = mcaps.filmed(drive.captures, itertools.repeat((True, b"")))
    recorded = [*pictures, *mcaps.step_messages(drive.steps)]
    McapFile(recorded, profile=drive.profile).to(one)
    command("replay", one)
    at = len(drive.captures) // 2
    recorded[at] = recorded[at]._replace(publish_ns=recorded[at].log_ns - 20_001_000)
    McapFile(recorded, profile=drive.profile).to(one)
    said = command("replay", one, status=1).out
    assert "1 DIFFERENCES" in said and "Z picture_age_s\n" in said


def aged(step: Step, age_s: float | None) -> Step:
    return structs.replace(step, now_ns=2_000_000_000, picture_age_s=age_s)


def test_ages_reports_a_difference_once_the_next_picture_proves_it() -> None:
    step = driven_once().steps[0]
    ages = AgeCheck()
    ages.check(aged(step, 9.0))
    assert ages.note(CapturedPicture(1_900_000_000, 5)) is None, "older pictures are not known"
    ages.check(aged(step, 2.0 - 1.9))
    ages.check(aged(step, None))
    assert ages.note(CapturedPicture(1_950_000_000, 6)) is None
    ages.check(aged(step, 0.25))
    ages.check(aged(step, 0.5))
    assert ages.note(CapturedPicture(1_960_000_000, 8)) is None, "a picture is missing"
    ages.check(aged(step, up(2.0 - 1.96)))
    ages.check(aged(step, 0.5))
    assert ages.note(CapturedPicture(1_970_000_000, 9)) == AgeMismatch(
        aged(step, up(2.0 - 1.96)), 2.0 - 1.96
    )
    assert ages.note(CapturedPicture(2_100_000_000, 10)) is None
    ages.check(aged(step, 0.0))
    assert ages.note(CapturedPicture(2_200_000_000, 11)) is None

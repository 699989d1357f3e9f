"""Replay of recorded steps: the same wishes, latches, faults and ranges pass through the
collision guard, the gate and mixing. Every result must match bit for bit. Pure.

    Step -> guard.update -> gate.decide -> mixing.mix -> compared with the recorded Step

The wish of each step must be the last fresh one on /wish (check_inputs.py). Its picture age must be
that of the newest picture on /camera (ages.py).

Each step continues from the state after the previous one (latches, slew, the guard's last ranges),
like control.Control.step. After a gap in the recording or a difference, the replay continues from
the recorded state.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fpvcar import config
from fpvcar.config import Profile
from fpvcar.devices.outlier_filter import NOISY
from fpvcar.drive import gate, guard, mixing
from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.drive.guard import Free, Guard
from fpvcar.drive.mixing import Slew
from fpvcar.recordings import codec, messages
from fpvcar.recordings.messages import Step, WishIn
from fpvcar.recordings.reader import Message
from fpvcar.recordings.replay.ages import AgeCheck, AgeMismatch, CapturedPicture
from fpvcar.recordings.replay.check_inputs import RecordedWish, WishCheck, WishMismatch
from fpvcar.runtime.texts import VERBATIM, State
from fpvcar.wire.telemetry import Range


class Difference(NamedTuple):
    """Replayed value that differs from the recorded one."""

    step: Step
    name: str
    recorded: object
    replayed: object


class StepGap(NamedTuple):
    """Period with missing steps; times are CLOCK_MONOTONIC in s."""

    from_s: float
    to_s: float


class GuardResult(NamedTuple):
    """Free path computed by the guard, with the sensors that have too few samples.

    `ahead` and `back` name these sensors for each direction.
    """

    free: Free
    ahead: tuple[str, ...] = ()
    back: tuple[str, ...] = ()

    def with_recorded(self, recorded: Free) -> Free:
        """Return the computed value of each direction, or the recorded one if it is uncertain."""
        return Free(
            recorded.ahead if self.ahead else self.free.ahead,
            recorded.back if self.back else self.free.back,
        )


class GuardReplica:
    """Replica of the guard's memory, with a test of its agreement with the car's guard.

    `seen` counts the ranges of a sensor since it last had no target, for the closing speed. `ever`
    counts them since the last gap, for the position of an obstacle out of view and the car's speed
    there. A full start and stop makes that speed certain.
    """

    def __init__(self, settings: config.Guard) -> None:
        self.guard = Guard(settings)
        self._stale_s = settings.stale_s
        self._settles_s = 3.0 * settings.top_mps / settings.brake_mps2
        self._began_s: float | None = None
        self._seen: dict[str, int] = {}
        self._ever: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._last_s: dict[str, float] = {}
        self._whole = False

    def begins(self) -> None:
        """Mark the first step of a run: the guard's memory was empty."""
        self._whole = True

    def look(self, step: Step, throttle: float) -> GuardResult:
        """Return the free path and the uncertain sensors; `throttle` is the previous step's."""
        now_s = step.now_ns / 1e9
        if self._began_s is None:
            self._began_s = now_s
        ranges = tuple(map(_live, step.ranges))
        free = self.guard.update(ranges, now_s, throttle)
        settled = now_s - self._began_s >= self._settles_s
        unsure = [sensor for sensor in ranges if not self._sure(sensor, now_s, settled)]
        if self._whole:
            return GuardResult(free)
        ahead, back = (
            tuple(sensor.name for sensor in unsure if guard.covers(sensor, bearing_deg))
            for bearing_deg in (guard.AHEAD_DEG, guard.BACK_DEG)
        )
        return GuardResult(free, ahead, back)

    def _sure(self, sensor: Range, now_s: float, settled: bool) -> bool:
        if sensor.state != "ok" or sensor.age_s is None or sensor.age_s > self._stale_s:
            return settled and self._ever.get(sensor.name, 0) >= guard.SAMPLES
        self._note(sensor, now_s - sensor.age_s)
        if sensor.range_m is None and self._gone.get(sensor.name, 0) < guard.GONE:
            return settled and self._ever.get(sensor.name, 0) >= guard.SAMPLES
        return self._seen.get(sensor.name, 0) >= guard.SAMPLES

    def _note(self, sensor: Range, at_s: float) -> None:
        if at_s <= self._last_s.get(sensor.name, -math.inf):
            return
        self._last_s[sensor.name] = at_s
        if sensor.range_m is None:
            self._gone[sensor.name] = self._gone.get(sensor.name, 0) + 1
            if self._gone[sensor.name] >= guard.GONE:
                self._seen[sensor.name] = guard.SAMPLES  # the guard discarded the earlier ranges
            return
        self._gone[sensor.name] = 0
        for counts in (self._seen, self._ever):
            counts[sensor.name] = counts.get(sensor.name, 0) + 1


LIVE: dict[str, State] = {"ok": "ok", str(NOISY): NOISY}
"""States that the guard tells apart, by the words of a recording."""


def _live(sensor: messages.Range) -> Range:
    """Return a recorded reading as the guard takes it."""
    state = LIVE.get(sensor.state) or VERBATIM(text=sensor.state)
    return Range(sensor.name, sensor.bearing_deg, sensor.range_m, sensor.age_s, state)


class StepReplay:
    """Replay of consecutive steps of one run.

    `unsure` counts the steps with an uncertain guard result in either direction. `unsure_by` counts
    them by the sensor responsible.
    """

    def __init__(self, profile: Profile) -> None:
        self.unsure, self.unsure_by = 0, Counter[str]()
        self._profile = profile
        self._memory = GuardReplica(profile.guard)
        self._latches: Latches | None = None
        self._slew: Slew | None = None
        self._throttle = 0.0

    def replay(self, step: Step) -> Iterator[Difference | StepGap]:
        """Replay one step; yield gaps and differences."""
        if self._slew is None and step.slew == Slew():
            self._memory.begins()
        if self._slew is not None and step.slew.at_s > self._slew.at_s:
            yield StepGap(self._slew.at_s, step.slew.at_s)
            self._forget()
        differences = [*self._before(step), *self._after(step)]
        self._throttle = step.throttle
        yield from differences
        if differences:
            self._slew = self._latches = None
        if any(difference.name == "free" for difference in differences):
            self._memory = GuardReplica(self._profile.guard)

    def _forget(self) -> None:
        self._slew = self._latches = None
        self._memory = GuardReplica(self._profile.guard)

    def _before(self, step: Step) -> Iterator[Difference]:
        """Compare the recorded start of this step with the replayed end of the previous one."""
        if self._slew is not None and not same(step.slew, self._slew):
            yield Difference(step, "slew", step.slew, self._slew)
        latches = self._latches
        if latches is not None and not reachable(latches, step.latches):
            yield Difference(step, "latches", step.latches, latches)

    def _after(self, step: Step) -> Iterator[Difference]:
        now_s = step.now_ns / 1e9
        free = self._free(step)
        if not same(step.free, free):
            yield Difference(step, "free", step.free, free)
        world = gate.World(step.picture_age_s, step.fault, step.limit, free)
        decision = gate.decide(step.wished(), step.latches, world, now_s, self._profile.gate)
        supply_v = mixing.supply_v(step.volts, self._profile.battery)
        before = step.slew if self._slew is None else self._slew
        duties, self._slew = mixing.mix(
            decision.throttle, decision.steer, self._profile.motors, supply_v, before, now_s
        )
        self._latches = decision.latches
        for name, recorded, replayed in (
            ("throttle", step.throttle, decision.throttle),
            ("steer", step.steer, decision.steer),
            ("reason", step.reason, str(decision.reason)),
            ("latches after", step.after, decision.latches),
            ("duties", step.duties, duties),
        ):
            if not same(recorded, replayed):
                yield Difference(step, name, recorded, replayed)

    def _free(self, step: Step) -> Free:
        """Return the guard's free path for this mode, as used by control.Control."""
        if step.guard_mode == "off":
            return Free()
        result = self._memory.look(step, self._throttle)
        if step.guard_mode != "limit":
            return Free()
        unsure = {*result.ahead, *result.back}
        self.unsure += bool(unsure)
        self.unsure_by.update(unsure)
        return result.with_recorded(step.free)


def same(recorded: object, replayed: object) -> bool:
    """Return whether two values are equal bit for bit; 0.0 and -0.0 differ."""
    return recorded == replayed and repr(recorded) == repr(replayed)


def reachable(before: Latches, now: Latches) -> bool:
    """Return whether one push, stop or fault between two steps can turn `before` into `now`."""
    if now == before:
        return True
    if now.hold == before.hold:  # a handover, or the driver disconnected during a wish
        return now.arm == Cause.HANDOVER or (now.arm == Cause.SILENCE and before.arm is None)
    if now.hold is not None:
        return now == gate.hold(before, Hold(now.hold.cause, now.hold.by))
    return now in (gate.resume(before, True), gate.resume(before, False))


class ReplayResult(NamedTuple):
    """Outcome of a replay; `unsure` and `unsure_by` are defined in StepReplay."""

    steps: int
    first_ns: int
    last_ns: int
    differences: list[Difference]
    differing: int
    holes: list[StepGap]
    unsure: int
    unsure_by: Counter[str]


DIFFERENCES_MAX = 5
"""Maximum number of differences reported in full."""


def run(
    profile: Profile,
    recorded: Iterable[Step | RecordedWish | CapturedPicture],
    most: int = DIFFERENCES_MAX,
) -> ReplayResult:
    """Replay all steps of one run in recorded order; keep the first `most` differences."""
    step_replay, first, holes = StepReplay(profile), list[Difference](), list[StepGap]()
    total = count = first_ns = last_ns = 0
    for item in _differences(recorded, step_replay):
        if isinstance(item, Step):
            first_ns, last_ns = first_ns or item.now_ns, item.now_ns
            total += 1
        elif isinstance(item, StepGap):
            holes.append(item)
        else:
            count += 1
            if len(first) < most:
                first.append(item)
    return ReplayResult(
        total, first_ns, last_ns, first, count, holes, step_replay.unsure, step_replay.unsure_by
    )


def _differences(
    recorded: Iterable[Step | RecordedWish | CapturedPicture], step_replay: StepReplay
) -> Iterator[Step | Difference | StepGap]:
    """Yield each step, followed by its differences."""
    wishes, ages = WishCheck(), AgeCheck()
    for message in recorded:
        if isinstance(message, RecordedWish):
            yield from _unlike(wishes.note(message))
        elif isinstance(message, CapturedPicture):
            yield from _aged(ages.note(message))
        else:
            yield message
            wishes.check(message)
            ages.check(message)
            yield from step_replay.replay(message)
    yield from _unlike(wishes.end())


def _aged(mismatch: AgeMismatch | None) -> Iterator[Difference]:
    if mismatch is not None:
        step = mismatch.step
        yield Difference(step, "picture_age_s", step.picture_age_s, mismatch.age_s)


def _unlike(mismatch: WishMismatch | None) -> Iterator[Difference]:
    if mismatch is not None:
        yield Difference(mismatch.step, "wish", mismatch.step.wish, mismatch.wish)


TOPICS = frozenset({messages.STEP, messages.WISH, messages.CAMERA})
"""Topics needed for a replay."""


def inputs_of(
    recorded: Iterable[Message], utc_offset_ns: int
) -> Iterator[Step | RecordedWish | CapturedPicture]:
    """Yield the steps, wishes and pictures among messages of TOPICS.

    Raises messages.FormatError.
    """
    for raw in recorded:
        if raw.topic == messages.CAMERA:
            yield CapturedPicture(raw.publish_ns - utc_offset_ns, raw.sequence)
            continue
        message = codec.decode(raw.topic, raw.data)
        if isinstance(message, Step):
            yield message
        elif isinstance(message, WishIn):
            yield RecordedWish(message, raw.sequence)

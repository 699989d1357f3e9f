"""Runs recorded steps again: the same wishes, latches, faults and ranges through the
collision guard, the gate and mixing. Every figure has to come out bit for bit. Pure.

    Step -> guard.look -> gate.decide -> mixing.mix -> compared with what the Step says

The wish of each step has to be the last fresh one on /wish (wishes.py), and its age of
the picture that of the newest one on /camera (ages.py).

Each step continues what the one before it left - the latches, mixing's memory, the
guard's last ranges - as control.Control.step does. Behind a hole in the recording, and
behind a difference, it goes on with what was recorded there.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fpvcar import config
from fpvcar.config import Profile
from fpvcar.drive import gate, guard, mixing
from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.drive.guard import Free, Guard
from fpvcar.drive.mixing import Slew
from fpvcar.recordings import messages
from fpvcar.recordings.messages import Step, WishIn
from fpvcar.recordings.reader import Message
from fpvcar.recordings.replay.ages import Aged, Ages, Seen
from fpvcar.recordings.replay.check_inputs import Given, Unlike, Wishes
from fpvcar.wire.telemetry import Range


class Difference(NamedTuple):
    """A figure that did not come out as it was recorded."""

    step: Step
    what: str
    recorded: object
    again: object


class Hole(NamedTuple):
    """Steps are missing between these times, CLOCK_MONOTONIC in s."""

    from_s: float
    to_s: float


class Known(NamedTuple):
    """What the guard leaves free; `ahead` and `back` name the sensors that look that
    way and of which too little is known for that."""

    free: Free
    ahead: tuple[str, ...] = ()
    back: tuple[str, ...] = ()

    def with_recorded(self, recorded: Free) -> Free:
        """Each way as it came out, or as it was recorded where that is not sure."""
        return Free(
            recorded.ahead if self.ahead else self.free.ahead,
            recorded.back if self.back else self.free.back,
        )


class Memory:
    """What the guard remembers: does it by now know the same as the car's did?

    `seen` counts ranges of a sensor since nothing was there, for its closing speed;
    `ever` counts them since the hole: for where something is that is seen no more, and
    how fast the car came there, which a full start and stop makes certain.
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
        """This is the very first step of a car: there was nothing to remember."""
        self._whole = True

    def look(self, step: Step, throttle: float) -> Known:
        """Says what is free, and how sure that is. `throttle` is the last step's."""
        now_s = step.now_ns / 1e9
        if self._began_s is None:
            self._began_s = now_s
        free = self.guard.look(step.ranges, now_s, throttle)
        settled = now_s - self._began_s >= self._settles_s
        unsure = [one for one in step.ranges if not self._sure(one, now_s, settled)]
        if self._whole:
            return Known(free)
        ahead, back = (
            tuple(one.name for one in unsure if guard.looks(one, bearing_deg))
            for bearing_deg in (guard.AHEAD_DEG, guard.BACK_DEG)
        )
        return Known(free, ahead, back)

    def _sure(self, one: Range, now_s: float, settled: bool) -> bool:
        if one.state != "ok" or one.age_s is None or one.age_s > self._stale_s:
            return settled and self._ever.get(one.name, 0) >= guard.SAMPLES
        self._note(one, now_s - one.age_s)
        if one.range_m is None and self._gone.get(one.name, 0) < guard.GONE:
            return settled and self._ever.get(one.name, 0) >= guard.SAMPLES
        return self._seen.get(one.name, 0) >= guard.SAMPLES

    def _note(self, one: Range, at_s: float) -> None:
        if at_s <= self._last_s.get(one.name, -math.inf):
            return
        self._last_s[one.name] = at_s
        if one.range_m is None:
            self._gone[one.name] = self._gone.get(one.name, 0) + 1
            if self._gone[one.name] >= guard.GONE:
                self._seen[one.name] = guard.SAMPLES  # it forgot the ranges before
            return
        self._gone[one.name] = 0
        for counts in (self._seen, self._ever):
            counts[one.name] = counts.get(one.name, 0) + 1


class Chain:
    """Runs step after step of one run of a car again.

    `unsure` counts the steps where the guard was not run again one way or the other,
    `unsure_by` those of each sensor that was to blame.
    """

    def __init__(self, profile: Profile) -> None:
        self.unsure, self.unsure_by = 0, Counter[str]()
        self._profile = profile
        self._memory = Memory(profile.guard)
        self._latches: Latches | None = None
        self._slew: Slew | None = None
        self._throttle = 0.0

    def again(self, step: Step) -> Iterator[Difference | Hole]:
        """Runs one step again; yields what did not come out."""
        if self._slew is None and step.slew == Slew():
            self._memory.begins()
        if self._slew is not None and step.slew.at_s > self._slew.at_s:
            yield Hole(self._slew.at_s, step.slew.at_s)
            self._forget()
        found = [*self._before(step), *self._after(step)]
        self._throttle = step.throttle
        yield from found
        if found:
            self._slew = self._latches = None
        if any(one.what == "free" for one in found):
            self._memory = Memory(self._profile.guard)

    def _forget(self) -> None:
        self._slew = self._latches = None
        self._memory = Memory(self._profile.guard)

    def _before(self, step: Step) -> Iterator[Difference]:
        """What the step before left must be what this one began with."""
        if self._slew is not None and not same(step.slew, self._slew):
            yield Difference(step, "slew", step.slew, self._slew)
        held = self._latches
        if held is not None and not reachable(held, step.latches):
            yield Difference(step, "latches", step.latches, held)

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
        for what, recorded, again in (
            ("throttle", step.throttle, decision.throttle),
            ("steer", step.steer, decision.steer),
            ("reason", step.reason, str(decision.reason)),
            ("latches after", step.after, decision.latches),
            ("duties", step.duties, duties),
        ):
            if not same(recorded, again):
                yield Difference(step, what, recorded, again)

    def _free(self, step: Step) -> Free:
        """What the guard leaves in this mode, as control.Control uses it."""
        if step.guard_mode == "off":
            return Free()
        known = self._memory.look(step, self._throttle)
        if step.guard_mode != "limit":
            return Free()
        unsure = {*known.ahead, *known.back}
        self.unsure += bool(unsure)
        self.unsure_by.update(unsure)
        return known.with_recorded(step.free)


def same(recorded: object, again: object) -> bool:
    """Are they equal bit for bit? 0.0 is not -0.0, and no float is near enough."""
    return recorded == again and repr(recorded) == repr(again)


def reachable(before: Latches, now: Latches) -> bool:
    """Could one push, stop or fault between two steps have made `now` of `before`?"""
    if now == before:
        return True
    if now.hold == before.hold:  # a handover, the driver gone in the middle of a wish
        return now.arm == Cause.HANDOVER or (now.arm == Cause.SILENCE and before.arm is None)
    if now.hold is not None:
        return now == gate.hold(before, Hold(now.hold.cause, now.hold.by))
    return now in (gate.resume(before, True), gate.resume(before, False))


class Verdict(NamedTuple):
    """The outcome of a replay; `unsure` and `unsure_by` are those of Chain."""

    steps: int
    first_ns: int
    last_ns: int
    differences: list[Difference]
    differing: int
    holes: list[Hole]
    unsure: int
    unsure_by: Counter[str]


DIFFERENCES_MAX = 5
"""Differences that are reported in full."""


def run(profile: Profile, recorded: Iterable[Step | Given | Seen]) -> Verdict:
    """Runs all steps of one run of a car again, in the order of the recording."""
    chain, first, holes = Chain(profile), list[Difference](), list[Hole]()
    total = count = first_ns = last_ns = 0
    for found in _differences(recorded, chain):
        if isinstance(found, Step):
            first_ns, last_ns = first_ns or found.now_ns, found.now_ns
            total += 1
        elif isinstance(found, Hole):
            holes.append(found)
        else:
            count += 1
            if len(first) < DIFFERENCES_MAX:
                first.append(found)
    return Verdict(total, first_ns, last_ns, first, count, holes, chain.unsure, chain.unsure_by)


def _differences(
    recorded: Iterable[Step | Given | Seen], chain: Chain
) -> Iterator[Step | Difference | Hole]:
    """Yield each step, and then its differences."""
    wishes, ages = Wishes(), Ages()
    for message in recorded:
        if isinstance(message, Given):
            yield from _unlike(wishes.note(message))
        elif isinstance(message, Seen):
            yield from _aged(ages.note(message))
        else:
            yield message
            wishes.check(message)
            ages.check(message)
            yield from chain.again(message)
    yield from _unlike(wishes.end())


def _aged(found: Aged | None) -> Iterator[Difference]:
    if found is not None:
        step = found.step
        yield Difference(step, "picture_age_s", step.picture_age_s, found.age_s)


def _unlike(found: Unlike | None) -> Iterator[Difference]:
    if found is not None:
        yield Difference(found.step, "wish", found.step.wish, found.wish)


TOPICS = frozenset({messages.STEP, messages.WISH, messages.CAMERA})
"""Topics that a replay reads."""


def given_of(recorded: Iterable[Message], utc_offset_ns: int) -> Iterator[Step | Given | Seen]:
    """Yield the steps, wishes and pictures among messages of TOPICS. Raises
    messages.FormatError."""
    for one in recorded:
        if one.topic == messages.CAMERA:
            yield Seen(one.publish_ns - utc_offset_ns, one.sequence)
            continue
        message = messages.decode(one.topic, one.data)
        if isinstance(message, Step):
            yield message
        elif isinstance(message, WishIn):
            yield Given(message, one.sequence)

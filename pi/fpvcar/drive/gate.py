"""The only gate to the motors: wish, world and time in, setpoint and reason out. Pure.

A command is a wish with an age. Unknown means stop. Two kinds of latch hold the car after a stop,
so that it does not move again unexpectedly:

    arm   needs one fresh neutral wish: after silence, a blind moment, a handover
    hold  needs `resume`, a deliberate push: after an e-stop or a fault; only a
          grown-up can clear a grown-up's hold
"""

import enum
import math
from collections import OrderedDict, deque
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from fpvcar import config
from fpvcar.drive.guard import Free


class Cause(enum.StrEnum):
    """Cause of a stop that latches the car."""

    HANDOVER = "handover"
    SILENCE = "silence"
    BLIND = "blind"
    ESTOP = "estop"
    ESTOP_GROWN_UP = "estop_grown_up"
    WHEELS_LOST = "wheels_lost"
    WHEELS_STOPPED = "wheels_stopped"
    PINS = "pins"
    DIRECTION = "direction"
    RESISTOR = "resistor"
    SETTINGS_LOST = "settings_lost"


Reason = Literal["driving", "limited", "guarded", "neutral", "nobody", "stopped"]
GROWN_UPS = (Cause.ESTOP_GROWN_UP, Cause.SETTINGS_LOST)
"""Causes of the holds that only a grown-up can clear."""
_RANK = {**dict.fromkeys(GROWN_UPS, 2), Cause.ESTOP: 1}


class Wish(Struct, frozen=True):
    """Requested throttle and steering, -1..1 each. `received_s` is the time of receipt."""

    throttle: float
    steer: float
    received_s: float

    @property
    def neutral(self) -> bool:
        """Whether both throttle and steering are zero."""
        return self.throttle == 0.0 and self.steer == 0.0


class World(Struct, frozen=True):
    """State of the car that the gate needs besides the wish.

    `fault` is a present fault; `free` is the throttle that the collision guard allows.
    """

    picture_age_s: float | None
    fault: Cause | None
    limit: float
    free: Free = Free()


class Hold(Struct, frozen=True):
    """Stop that only `resume` clears; `by` names the person or part that caused it."""

    cause: Cause
    by: str = ""


class Latches(Struct, frozen=True):
    """Latches that hold the car. At the start the car waits for a neutral wish (HANDOVER)."""

    arm: Cause | None = Cause.HANDOVER
    hold: Hold | None = None

    @property
    def stopped(self) -> bool:
        """True after a stop; False if the car only waits for a neutral wish."""
        return self.hold is not None or self.arm not in (None, Cause.HANDOVER)


class Decision(Struct, frozen=True):
    """Setpoint (-1..1, speed limit applied), its reason, and the latches."""

    throttle: float
    steer: float
    reason: Reason
    latches: Latches

    @property
    def neutral(self) -> bool:
        """Whether the motors are to stand still."""
        return self.throttle == 0.0 and self.steer == 0.0

    @property
    def words(self) -> str:
        """Description for the log and the recording."""
        if self.latches.hold is not None:
            return f"stopped: {self.latches.hold.cause} {self.latches.hold.by}".rstrip()
        if self.latches.arm not in (None, Cause.HANDOVER):  # the driver may be gone
            return f"stopped: {self.latches.arm}"
        return self.reason


def decide(
    wish: Wish | None, latches: Latches, world: World, now_s: float, limits: config.Gate
) -> Decision:
    """Return the setpoint that is allowed now. `wish` is the driver's last fresh one, or None."""
    if world.fault is not None:
        latches = hold(latches, Hold(world.fault))
    if wish is None:
        waiting = replace(latches, arm=latches.arm or Cause.HANDOVER)
        return Decision(0.0, 0.0, "nobody", waiting)
    neutral = wish.neutral
    if now_s - wish.received_s >= limits.silence_s:
        if not neutral and latches.arm is None:
            latches = replace(latches, arm=Cause.SILENCE)
        return _still(latches)
    if neutral:
        return _still(replace(latches, arm=None))
    blind = _blind(world, limits)
    if blind and limits.blind == "stop" and latches.arm is None:
        latches = replace(latches, arm=Cause.BLIND)
    if latches.arm is not None or latches.hold is not None:
        return _still(latches)
    limit, reason = world.limit, _DRIVING
    if blind and limits.blind == "limit":
        limit, reason = min(limit, limits.blind_limit), _LIMITED
    free = world.free.ahead if wish.throttle > 0.0 else world.free.back
    if free < abs(wish.throttle) * limit:
        throttle = math.copysign(free, wish.throttle) if free else 0.0
        return Decision(throttle, wish.steer, _GUARDED, latches)
    return Decision(wish.throttle * limit, wish.steer, reason, latches)


_DRIVING: Reason = "driving"
_LIMITED: Reason = "limited"
_GUARDED: Reason = "guarded"


def _still(latches: Latches) -> Decision:
    return Decision(0.0, 0.0, "stopped" if latches.stopped else "neutral", latches)


def _blind(world: World, limits: config.Gate) -> bool:
    return world.picture_age_s is None or world.picture_age_s >= limits.blind_s


def holds_s(wish: Wish, world: World, now_s: float, limits: config.Gate) -> float:
    """Return the time in s for which a decision by this wish remains valid without new input:
    until the wish counts as silence, or the picture is so old that the car is blind."""
    silent_s = wish.received_s + limits.silence_s - now_s
    if world.picture_age_s is None or limits.blind == "ignore":
        return silent_s
    blind_s = limits.blind_s - world.picture_age_s
    return min(silent_s, blind_s) if blind_s > 0.0 else silent_s


def may_aim(wished_s: float, latches: Latches, now_s: float, limits: config.Gate) -> bool:
    """Return whether servos that do not steer may turn on a wish received at `wished_s`: it is
    fresh, and nothing holds the car. A stop that only needs a neutral wish lets its driver look."""
    return latches.hold is None and now_s - wished_s < limits.silence_s


def hold(latches: Latches, stop: Hold) -> Latches:
    """Add a hold; of two holds the one that is harder to clear remains."""
    if latches.hold is None or _RANK.get(latches.hold.cause, 0) < _RANK.get(stop.cause, 0):
        return replace(latches, hold=stop)
    return latches


def resume(latches: Latches, grown_up: bool) -> Latches:
    """Return the latches after a deliberate push. The car then waits for a neutral wish."""
    if latches.hold is None:
        return latches
    if latches.hold.cause in GROWN_UPS and not grown_up:
        return latches
    return Latches(arm=Cause.HANDOVER, hold=None)


Staleness = Literal["old", "late", "stale"]


class Freshness:
    """Age check for the wishes of one socket; time is passed in.

    Every State and Pong carries an unpredictable nonce, and a wish returns the newest one as
    `seen`. It must have been sent to this page at most `late_s` ago: wishes prepared in advance
    are rejected, regardless of the clock that the page claims.

    Honest pages get a finer measure: the transit time of a wish (receipt minus its own time) above
    the fastest transit of the last 30 s. The browser's clock has another origin and may stop. A
    wish is never older than the nonce it returns, so a larger transit re-bases the measure.
    """

    WINDOW_S = 30.0
    NONCES_MOST = 256
    """Limit above the number sent in `late_s`: 50 states and twice 250 pongs a second at most."""

    def __init__(self, stale_s: float, late_s: float) -> None:
        self._stale_s, self._late_s = stale_s, late_s
        self._seq = -1
        self._fastest: deque[tuple[float, float]] = deque()  # (second, transit), ascending
        self._sent: OrderedDict[int, int] = OrderedDict()  # nonce: send time in us

    def sent(self, nonce: int, clock_us: int) -> None:
        """Store a sent nonce with the creation time of its message."""
        self._sent[nonce] = clock_us
        if len(self._sent) > self.NONCES_MOST:
            self._sent.popitem(last=False)

    def forget(self) -> None:
        """Void every nonce sent so far, and with them every queued wish."""
        self._sent.clear()

    def sent_us(self, nonce: int) -> int:
        """Return the CLOCK_MONOTONIC time of the message with this nonce; 0 if it is unknown."""
        return self._sent.get(nonce, 0)

    def late(self, seen: int, now_s: float) -> bool:
        """Return whether a wish returns no nonce of the last `late_s`."""
        seen_us = self._sent.get(seen)
        return seen_us is None or now_s - seen_us / 1e6 > self._late_s

    def accept(self, seq: int, sent_ms: float, seen: int, now_s: float) -> Staleness | None:
        """Return None for a fresh wish; otherwise "old" (doubled, reordered), "late" or "stale".

        `sent_ms` is the browser's clock. `seen` is the nonce that the wish returns.
        """
        if seq <= self._seq:
            return "old"
        self._seq = seq
        if self.late(seen, now_s):
            return "late"
        most_s = now_s - self._sent[seen] / 1e6
        age_s = self._age_s(now_s - sent_ms / 1000.0, most_s, now_s)
        return "stale" if age_s > self._stale_s else None

    def _age_s(self, transit_s: float, most_s: float, now_s: float) -> float:
        while self._fastest and self._fastest[0][0] < now_s - self.WINDOW_S:
            self._fastest.popleft()
        while self._fastest and self._fastest[-1][1] >= transit_s:
            self._fastest.pop()
        second = float(int(now_s))  # one entry a second bounds the memory
        if not self._fastest or self._fastest[-1][0] != second:
            self._fastest.append((second, transit_s))
        age_s = transit_s - self._fastest[0][1]
        if age_s <= most_s:
            return age_s
        self._fastest.clear()  # the browser's clock had stopped
        self._fastest.append((second, transit_s - most_s))
        return most_s

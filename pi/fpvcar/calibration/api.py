"""/api/calibration: calibration of the car, on the car, for grown-ups.

This module never moves the car: the page sends the step's wish like any other wish, while a finger
is down, through seat, gate and wheels.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from fpvcar.access.rights import RecordingRights
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.calibration.export import written
from fpvcar.calibration.steps import CarState
from fpvcar.calibration.store import History, write
from fpvcar.calibration.values import Value, differing
from fpvcar.drive import mixing
from fpvcar.drive.control import Control
from fpvcar.drive.gate import Decision
from fpvcar.http.responses import CAR_MOVES, PRIVATE, failed, quoted, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers, query_of
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Refusal, Text
from fpvcar.sensors.suite import SensorSuite
from fpvcar.wire.telemetry import Guarding, Range

NOT_SAVED = Phrase(
    "not_saved", "The value is used until the car restarts, but was not saved: {reason}"
)

BASE = "/api/calibration"
TOML = "application/toml"
SEE_S = 0.02
WORDS_MOST = 8
LIMITED = {"guarded": "guard", "limited": "blind_limit"}


class StepQuery(Struct):
    """Kind of a step, and its motor or sensor."""

    step: str
    of: str = ""


class AnswerQuery(Struct):
    """Person's answer for a step, with up to WORDS_MOST figures."""

    word: str
    figure: tuple[str, ...] = ()


class ValueQuery(Struct):
    """Key of the profile, and its value as JSON: a number, true, false, or a list of numbers."""

    key: str
    value: str


class CalibrationApi:
    """Routes of the calibration. `file` stores the values; `profile` is the file of the car's
    profile."""

    def __init__(
        self,
        tuner: Calibrator,
        control: Control,
        senses: SensorSuite,
        rights: RecordingRights,
        file: Path,
        profile: Path | None = None,
        clock_s: Clock = time.monotonic,
        utc_s: Clock = time.time,
    ) -> None:
        self._tuner, self._control, self._senses = tuner, control, senses
        self._rights, self._file, self._profile = rights, file, profile
        self._clock_s, self._utc_s = clock_s, utc_s
        self._watching: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        app.router.add_get(BASE, self._all)
        app.router.add_get("/api/motion", self._motion)
        app.router.add_get(f"{BASE}/step", self._step)
        app.router.add_get(f"{BASE}/profile", self._written)
        for name, act in (
            ("begin", self._begin),
            ("say", self._say),
            ("keep", self._keep),
            ("end", self._end),
            ("undo", self._undo),
            ("set", self._set),
        ):
            app.router.add_post(f"{BASE}/{name}", act)
        app.on_cleanup.append(self._stop)

    async def _stop(self, _: web.Application) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    # --- reading ---

    @answers(Right.GROWN_UP)
    async def _all(self, _: web.Request) -> dict[str, Any]:
        """Return values, steps and changes of the calibration."""
        return self._tuner.as_json()

    @answers()
    async def _motion(self, _: web.Request) -> dict[str, Any]:
        """Return the figures for a page's estimate of the car's path."""
        profile = self._tuner.profile
        motors = profile.motors
        turn = motors.turn if motors.differential else None
        ways = {"turn": turn, "circle_m": motors.circle_m}
        return {"guard": profile.guard, "speeds": profile.speeds, **ways}

    @answers(Right.GROWN_UP)
    async def _step(self, _: web.Request) -> dict[str, Any] | None:
        """Return the running step, or null."""
        return self._now()

    def _now(self) -> dict[str, Any] | None:
        now_s = self._clock_s()
        battery = self._tuner.profile.battery
        volts = mixing.supply_v(self._volts(now_s), battery)
        control = self._control
        limit = control.limit_now(now_s)
        step = self._tuner.status(limit, volts, now_s)
        if step is None:
            return None
        throttle = step["wish"]["throttle"]
        back = held_back(control.decision, throttle, limit, limit < control.limit)
        if back is not None and back["cause"] == "guard":
            back |= obstacle(control.guarding(), self._senses.ranges(now_s), throttle)
        return {**step, "moves": any(control.duties), "held_back": back}

    @answers(Right.GROWN_UP, TOML)
    async def _written(self, _: web.Request) -> web.Response:
        """Return the profile with the results of calibration."""
        if self._profile is None:
            raise refused(
                web.HTTPNotFound, Text("no_file", "This car was started without a profile file.")
            )
        try:
            toml = await asyncio.to_thread(self._profile.read_text, "utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise failed(web.HTTPServiceUnavailable, fault) from None
        values = differing(self._tuner.own, self._tuner.profile)
        headers = {
            **PRIVATE,
            "Content-Type": f"{TOML}; charset=utf-8",
            "Content-Disposition": 'attachment; filename="car.toml"',
        }
        return web.Response(body=written(toml, values).encode(), headers=headers)

    # --- changing ---

    @answers(Right.GROWN_UP, query=StepQuery)
    async def _begin(self, request: web.Request) -> dict[str, Any] | None:
        """Begin a step, and return it."""
        self._refuse_moving()
        query = query_of(request, StepQuery)
        with _refusals():
            self._tuner.begin(query.step, query.of, self._clock_s())
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return self._now()

    @answers(Right.GROWN_UP, query=AnswerQuery)
    async def _say(self, request: web.Request) -> dict[str, Any] | None:
        """Take a person's answer for the step, also while the car moves."""
        query = query_of(request, AnswerQuery)
        texts = query.figure
        if len(texts) > WORDS_MOST:
            raise web.HTTPBadRequest(text=f"{len(texts)} figures refused.\n")
        with _refusals():
            self._tuner.answer(query.word, [_number(text) for text in texts])
        return self._now()

    @answers(Right.GROWN_UP)
    async def _keep(self, _: web.Request) -> dict[str, Any]:
        """Save the results of the step."""
        self._refuse_moving()
        with _refusals():
            self._tuner.keep(self._utc_s())
        return await self._wrote()

    @answers(Right.GROWN_UP, query=ValueQuery)
    async def _set(self, request: web.Request) -> dict[str, Any]:
        """Save a value of the profile."""
        self._refuse_moving()
        query = query_of(request, ValueQuery)
        key, text = query.key, query.value
        try:
            value: Value = msgspec.json.decode(text, type=bool | float | tuple[float, ...])
        except msgspec.DecodeError:
            raise web.HTTPBadRequest(
                text=f'"{quoted(text)}" refused: expected a number, true or false.\n'
            ) from None
        with _refusals():
            self._tuner.set(key, value, self._utc_s())
        return await self._wrote()

    @answers(Right.GROWN_UP)
    async def _undo(self, _: web.Request) -> dict[str, Any]:
        """Revert the last change."""
        self._refuse_moving()
        self._tuner.undo()
        return await self._wrote()

    @answers(Right.GROWN_UP)
    async def _end(self, _: web.Request) -> dict[str, Any] | None:
        """End the step without a result."""
        self._refuse_moving()
        self._tuner.end()
        return self._now()

    def _refuse_moving(self) -> None:
        """Raise HTTPConflict while the car moves."""
        if any(self._control.duties):
            raise refused(web.HTTPConflict, CAR_MOVES)

    async def _wrote(self) -> dict[str, Any]:
        """Write the current values. Raises HTTPInsufficientStorage."""
        try:
            await self._save()
        except Refusal as refusal:
            raise refused(web.HTTPInsufficientStorage, refusal.text) from None
        return self._tuner.as_json()

    async def _save(self) -> None:
        """Write the current values. Raises Refusal."""
        async with self._writing:  # an older state never overwrites a newer one
            kept: History = self._tuner.history
            try:
                await asyncio.to_thread(write, self._file, kept)
            except OSError as fault:
                raise Refusal(NOT_SAVED(reason=fault)) from None

    # --- input of the step ---

    async def _watch(self) -> None:
        """Pass the car's readings to the step while one runs; a step that raises fails."""
        while (step := self._tuner.step) is not None:
            try:
                self._tuner.update(self._car_state())
                if self._tuner.record(self._utc_s()):
                    await self._save()
            except Exception as fault:
                self._tuner.fail(fault, step)
            await asyncio.sleep(SEE_S)

    def _car_state(self) -> CarState:
        now_s, control = self._clock_s(), self._control
        decision = control.decision
        return CarState(
            now_s,
            decision.throttle,
            decision.steer,
            control.duties,
            self._senses.ranges(now_s),
            self._volts(now_s),
            self._senses.battery(now_s),
            decision.latches.hold is not None,
        )

    def _volts(self, now_s: float) -> float | None:
        battery = self._senses.battery(now_s)
        return battery.volts if battery is not None and battery.state == "ok" else None


def _number(text: str) -> float:
    """Parse a number. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'"{quoted(text)}" refused: expected a number') from None


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn refusals of the calibrator into HTTPBadRequest."""
    try:
        yield
    except Refusal as refusal:
        raise refused(web.HTTPBadRequest, refusal.text) from None
    except ValueError as fault:  # also ConfigError
        raise web.HTTPBadRequest(text=f"{fault}\n") from None


def held_back(
    decision: Decision, throttle: float, limit: float, weak: bool
) -> dict[str, Any] | None:
    """Return the cause that keeps the car from a step's wish for `throttle`; None if it follows.

    A cause of the gate, with `by` as in its stop, or one of handover, guard, blind_limit, and, for
    a wish above the speed limit, weak or limit.
    """
    hold, arm = decision.latches.hold, decision.latches.arm
    if hold is not None:
        return {"cause": hold.cause, "by": hold.by}
    if arm is not None:
        return {"cause": arm, "by": ""}
    if decision.reason in LIMITED:
        return {"cause": LIMITED[decision.reason], "by": ""}
    if abs(throttle) >= 1.0 and limit < 1.0:
        return {"cause": "weak" if weak else "limit", "by": ""}
    return None


def obstacle(guarding: Guarding, ranges: Sequence[Range], throttle: float) -> dict[str, Any]:
    """Return the direction and the range of the obstacle by which the guard holds the car back;
    the range is None while no sensor sees it."""
    name = guarding.ahead_by if throttle > 0.0 else guarding.back_by
    range_m = next((sensor.range_m for sensor in ranges if sensor.name == name), None)
    return {"ahead": throttle > 0.0, "range_m": range_m}

"""Makes messages for the recorder of what the parts of `run` do. Called on the loop.

    control -> step     hub -> wish, turn, latency     camera -> picture
    panel -> panel

Nothing here may disturb its caller: a fault is logged once, and the car drives on. What
is given here must not change afterwards: the recorder's thread encodes it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Concatenate, NamedTuple, ParamSpec

from fpvcar.buttons.game import View
from fpvcar.drive import gate
from fpvcar.drive.control import Stepped
from fpvcar.mcap.cloud import Point
from fpvcar.recorder.recorder import Recorder
from fpvcar.recordings import messages
from fpvcar.recordings.export.point_cloud import ORIGIN, points_of
from fpvcar.runtime.aligned_timer import aligned_sleep
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire import up
from fpvcar.wire.telemetry import Battery, Measured, Range, Recording

SECOND_S = 1.0
NEWER_S = 0.0005
"""Two voltages measured within this are one."""
BATTERY_S = 0.04
"""How often the battery is looked at, which is measured 12 times a second."""
RANGES_S = 0.2
"""How often measured ranges are taken: in one go, as the first of them finds the
processor's caches cold."""
AGAIN_S = 10
"""Seconds after which what lasts is said again: each file of a drive has it."""
STILL_S = 15.0
"""Without a throttle for so long, a drive is over: its file ends."""
MOVES = {"driving", "guarded"}
"""Reasons that change many times a second at a wall: a Step has them, no event."""
WELL = {"ok", "none", "starting"}
"""States of camera, wheels and pins that are no fault."""
MARK_MOST = 64
log = logging.getLogger("fpvcar.recorder")
_Given = ParamSpec("_Given")


def harmless(
    act: "Callable[Concatenate[Feed, _Given], None]",
) -> "Callable[Concatenate[Feed, _Given], None]":
    """Wraps a method of Feed: logs the first fault in it, and raises none."""
    name = getattr(act, "__name__", "")

    def tried(self: "Feed", /, *given: _Given.args, **named: _Given.kwargs) -> None:
        try:
            act(self, *given, **named)
        except Exception:
            if name not in self.broken:
                self.broken.add(name)
                log.exception("not recorded: %s", name)

    tried.__doc__ = act.__doc__
    return tried


class Sources(NamedTuple):
    """What the feed reads, or asks, by itself.

    `ranges` is how each sensor is now, `measured` takes out what they measured since
    it was called last. `request_key` asks the camera for a key frame; `buttons` are
    their names, in the order of a View's bits.
    """

    ranges: Callable[[float], Sequence[Range]]
    measured: Callable[[], Sequence[Measured]]
    battery: Callable[[float], Battery | None]
    request_key: Callable[[], bool]
    buttons: Sequence[str] = ()


def step_of(stepped: Stepped) -> messages.Step:
    """Converts a run of the gate into what is recorded of it."""
    decision, world = stepped.decision, stepped.world
    return messages.Step(
        now_ns=stepped.now_ns,
        limit=world.limit,
        latches=stepped.latches,
        slew=stepped.slew,
        throttle=decision.throttle,
        steer=decision.steer,
        reason=decision.reason,
        after=decision.latches,
        duties=stepped.duties,
        wish=messages.wish_of(stepped.wish),
        picture_age_s=world.picture_age_s,
        fault=world.fault,
        volts=stepped.volts,
        free=world.free,
        ranges=tuple(stepped.ranges),
        guard_mode=stepped.guard_mode,
    )


class Feed:
    """The feed of one car; server.recorder.Recorder is how the server sees it."""

    def __init__(
        self,
        recorder: Recorder,
        sources: Sources,
        positions: Mapping[str, Point] = MappingProxyType({}),
    ) -> None:
        """`positions`: of range sensors on the car, by name."""
        self.broken: set[str] = set()
        self._recorder, self._sources = recorder, sources
        self._positions = positions
        self._last_event: gate.Decision | None = None
        self._parts: dict[str, str] = {}
        """Last state of camera, wheels and pins."""
        self._battery, self._battery_due_s = (-1.0, ""), 0.0
        self._ranges_due_s = 0.0
        self._states: dict[str, str] = {}
        self._lasting: dict[str, messages.Message] = {}
        self._begun, self._seconds = recorder.begun, 0
        self._driven = False
        self._moved_s: float | None = None
        """When the car was last given throttle; None: its file has ended since."""
        recorder.attend(False)

    # --- what is recorded ---

    @harmless
    def picture(self, unit: AccessUnit) -> None:
        """Records an access unit, as the camera gave it."""
        self._recorder.picture(unit.key, unit.capture_us * 1000, unit.data)

    @harmless
    def step(self, stepped: Stepped) -> None:
        """Records a run of the gate, and what else has changed since the last one."""
        recorder, now_s = self._recorder, stepped.now_ns / 1e9
        if recorder.idle:
            return
        decision = stepped.decision
        recorder.put(messages.STEP, partial(step_of, stepped), stepped.now_ns)
        self._event(decision)
        if decision.throttle:
            self._moved_s = now_s
        elif self._moved_s is not None and now_s - self._moved_s >= STILL_S:
            self._moved_s = None
            recorder.rest()
            self._sources.request_key()  # there it ends
        for sensor in stepped.ranges or self._sources.ranges(now_s):
            if sensor.state != self._states.get(sensor.name):
                self._read_state(sensor, now_s)
        if now_s >= self._ranges_due_s:
            self._ranges_due_s = now_s + RANGES_S
            self._read_measured()
        if now_s >= self._battery_due_s:
            self._battery_due_s = now_s + BATTERY_S
            self._read_battery(now_s)

    @harmless
    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        """Records a `drive` of a browser."""
        wish = messages.WishIn(
            drive.seq, drive.t, drive.throttle, drive.steer, name, verdict, seen_us
        )
        self._recorder.put(messages.WISH, wish)

    @harmless
    def turn(self, name: str | None, why: str) -> None:
        """Records who is at the wheel now."""
        self._driven = name is not None
        self._recorder.attend()
        self._put_lasting(messages.DRIVER, messages.Turn(name, why))
        self._recorder.note(why, messages.INFO, messages.SEAT)

    @harmless
    def panel(self, view: View, lamps: tuple[bool, bool, bool, bool]) -> None:
        """Records what is lit and played; `lamps` are head, reversing, left and right
        indicator."""
        names = self._sources.buttons
        lit = tuple(one for n, one in enumerate(names) if view.lit >> n & 1)
        buttons = messages.Buttons(lit, view.mode, view.length, view.done, view.best)
        for topic, said in (
            (messages.BUTTONS, buttons),
            (messages.LIGHTS, messages.Lights(*lamps)),
        ):
            if self._lasting.get(topic) != said:
                self._put_lasting(topic, said)

    @harmless
    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        """Records what a page measured."""
        latency = messages.Latency(
            name,
            drives,
            report.path,
            report.picture_ms,
            report.link_ms,
            report.fps,
            report.dropped,
            lost,
        )
        self._recorder.put(messages.LATENCY, latency)

    # --- what people do with the recorder ---

    @harmless
    def switch(self, on: bool, name: str) -> None:
        """Turns recording on or off."""
        self._read_measured()
        if not on:
            self._recorder.note(f"{name} turned recording off")
        self._recorder.switch(on)
        self._repeat_lasting()
        if on:
            self._recorder.note(f"{name} turned recording on")

    @harmless
    def keep(self, name: str) -> None:
        """Keeps the last minute."""
        self._recorder.note(f"{name} keeps the last minute")
        self._recorder.keep()
        self._sources.request_key()  # there it ends

    @harmless
    def mark(self, text: str, name: str) -> None:
        """Marks this moment."""
        words = f"{name}: {text[:MARK_MOST]}" if text else name
        self._recorder.attend()
        self._recorder.note(words, messages.INFO, name, messages.MARK)

    def stop(self) -> None:
        """Records what was measured last, and ends the recorder."""
        self._read_measured()
        self._recorder.stop()

    def status(self) -> Recording:
        """What pages show of the recorder."""
        return self._recorder.status()

    async def run(self, health: Callable[[], messages.Health]) -> None:
        """Records the health once a second; the recorder has its second then, too."""
        while True:
            self._second(health)
            await aligned_sleep(SECOND_S)

    # --- the rest ---

    @harmless
    def _second(self, health: Callable[[], messages.Health]) -> None:
        self._read_measured()  # before `second` may begin another recording
        self._recorder.second()  # early: it looks after the recorder's thread
        if self._driven:
            self._recorder.attend()
        self._seconds += 1
        self._repeat_lasting()
        measured = health()
        self._note_parts(measured)
        self._recorder.put(messages.HEALTH, measured)

    def _put_lasting(self, topic: str, message: messages.Message) -> None:
        self._lasting[topic] = message
        self._recorder.put(topic, message)

    def _repeat_lasting(self) -> None:
        """Says again what lasts: a recording that has begun has to know who drives,
        what is lit and how the gate is."""
        begun = self._recorder.begun
        if begun == self._begun and self._seconds < AGAIN_S:
            return
        if begun != self._begun:
            self._last_event, self._parts = None, {}
            self._sources.request_key()  # it begins with a whole picture
        self._begun, self._seconds = begun, 0
        for topic, message in self._lasting.items():
            self._recorder.put(topic, message)

    def _event(self, decision: gate.Decision) -> None:
        """Notes what the gate does now, if that has changed.

        A stop is a warning while its latch lasts, whether somebody drives or not.
        """
        before, self._last_event = self._last_event, decision
        if before is not None:
            if before.reason == decision.reason and before.latches == decision.latches:
                return  # as at nearly every step
            if before.words == decision.words or _moves(before, decision):
                return
        level = messages.WARNING if decision.latches.stopped else messages.INFO
        self._recorder.note(decision.words, level, messages.GATE)

    def _note_parts(self, health: messages.Health) -> None:
        """Notes each part that fails or works again, also while the car stands."""
        states = dict(camera=health.camera, wheels=health.wheels, pins=health.board)
        for part, state in states.items():
            before = self._parts.get(part, "ok")
            if state != before and not {state, before} <= WELL:
                level = messages.INFO if state in WELL else messages.WARNING
                self._recorder.note(f"{part}: {state}", level, part)
        self._parts = states

    def _read_state(self, one: Range, now_s: float) -> None:
        """Records what a sensor says that cannot measure any more."""
        self._states[one.name] = one.state
        if one.state != "ok":
            self._read_measured()  # it is older
            now_ns = round(now_s * 1e9)
            self._put_range(one.name, now_ns, one.bearing_deg, None, one.state)

    @harmless
    def _read_measured(self) -> None:
        """Records all that was measured since this recording began."""
        began_ns = self._recorder.began_ns
        for one in self._sources.measured():
            when_ns = round(one.at_s * 1e9)
            if when_ns >= began_ns:
                self._put_range(one.name, when_ns, one.bearing_deg, one.range_m, "ok")

    def _put_range(
        self, name: str, when_ns: int, bearing_deg: float, range_m: float | None, state: str
    ) -> None:
        reading = messages.Reading(bearing_deg, range_m, state)
        self._recorder.put(messages.RANGE + name, reading, when_ns)
        arc = partial(
            points_of,
            when_ns + self._recorder.offset_ns,
            reading,
            self._positions.get(name, ORIGIN),
        )
        self._recorder.put(messages.POINTS + name, arc, when_ns)

    def _read_battery(self, now_s: float) -> None:
        battery = self._sources.battery(now_s)
        if battery is None:
            return
        at_s = -1.0 if battery.age_s is None else now_s - battery.age_s
        before_s, state = self._battery
        if at_s - before_s >= NEWER_S or battery.state != state:
            self._battery = (at_s, battery.state)
            when_ns = round(at_s * 1e9) if at_s > 0.0 else None
            self._recorder.put(messages.BATTERY, battery, when_ns)


def _moves(before: gate.Decision, now: gate.Decision) -> bool:
    """Return True if only the way of moving has changed, as at a wall."""
    return {before.reason, now.reason} <= MOVES and before.latches == now.latches

"""Conversion of the events of `run` to messages for the recorder. Called on the loop.

    control -> step     hub -> wish, turn, latency     camera -> picture
    panel -> panel

No failure here may disturb the caller: it is logged once, and the car drives on. Values passed in
must not change afterwards, as the recorder's thread encodes them later.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Concatenate, NamedTuple, ParamSpec

from fpvcar.drive import gate
from fpvcar.drive.control import GateRun
from fpvcar.recorder.gate_runs import plot_of, step_of
from fpvcar.recorder.live import Tap
from fpvcar.recorder.recorder import Recorder
from fpvcar.recordings import messages
from fpvcar.recordings.export.point_cloud import ORIGIN, points_of
from fpvcar.recordings.mcap.cloud import Point
from fpvcar.runtime.service import aligned_sleep
from fpvcar.runtime.texts import State
from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.ranges import Ranges
from fpvcar.video.camera import Camera
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire import up
from fpvcar.wire.buttons import View
from fpvcar.wire.telemetry import Range, Recording

SECOND_S = 1.0
NEWER_S = 0.0005
"""Maximum difference in s between two reports of the same voltage sample."""
BATTERY_S = 0.04
"""Interval of battery reads; it is measured 12 times a second."""
RANGES_S = 0.2
"""Interval of range reads in s. Ranges are read in batches, as the first read of a batch finds
the processor's caches cold."""
PLOT_S = 0.1
"""Interval in s of the figures for viewers of other programs."""
AGAIN_S = 10
"""Interval in s at which lasting states are repeated, so that each file of a drive has them."""
STILL_S = 15.0
"""Time without throttle in s after which a drive is over and its file ends."""
MOVES = {"driving", "guarded"}
"""Reasons that change many times a second at a wall: recorded as Step, but not as event."""
WELL = {"ok", "none", "starting"}
"""States of camera, wheels and pins that are not faults."""
MARK_MOST = 64
log = logging.getLogger("fpvcar.recorder")
_Arguments = ParamSpec("_Arguments")


def harmless(
    act: "Callable[Concatenate[Feed, _Arguments], None]",
) -> "Callable[Concatenate[Feed, _Arguments], None]":
    """Wrap a method of Feed: log its first exception and suppress all exceptions."""
    name = getattr(act, "__name__", "")

    def wrapper(self: "Feed", /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
        try:
            act(self, *args, **kwargs)
        except Exception:
            if name not in self.broken:
                self.broken.add(name)
                log.exception("not recorded: %s", name)

    wrapper.__doc__ = act.__doc__
    return wrapper


class Sources(NamedTuple):
    """Data sources that the feed polls. `buttons` are the button names in the order of a View's
    bits."""

    ranges: Ranges
    battery: BatterySensor
    camera: Camera
    buttons: Sequence[str] = ()


class Feed:
    """Feed of one car; the server uses it as seat.vehicle.Recorder."""

    def __init__(
        self,
        recorder: Recorder,
        sources: Sources,
        positions: Mapping[str, Point] = MappingProxyType({}),
    ) -> None:
        """Take the `positions` of the range sensors on the car, by name."""
        self.broken: set[str] = set()
        self._recorder, self._sources = recorder, sources
        self._positions = positions
        self._last_event: gate.Decision | None = None
        self._parts: dict[str, str] = {}
        """Last state of camera, wheels and pins."""
        self._battery: tuple[float, State] = (-1.0, "none")
        self._battery_due_s = 0.0
        self._ranges_due_s = self._plot_due_s = 0.0
        self._states: dict[str, State] = {}
        self._lasting: dict[str, messages.Message] = {}
        self._begun, self._seconds = recorder.begun, 0
        self._driven = False
        self._moved_s: float | None = None
        """Time of the last throttle; None after the file was ended."""
        recorder.attend(False)

    # --- recorded events ---

    @harmless
    def picture(self, unit: AccessUnit) -> None:
        """Record an access unit unchanged."""
        self._recorder.picture(unit.key, unit.capture_us * 1000, unit.data)

    @harmless
    def step(self, stepped: GateRun) -> None:
        """Record a gate run, and other changes since the previous one."""
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
            self._sources.camera.request_key()  # the file ends at this key frame
        ranges = stepped.ranges or self._sources.ranges.status(now_s)
        if now_s >= self._plot_due_s:
            self._plot_due_s = now_s + PLOT_S
            figures = partial(plot_of, stepped, tuple(ranges), recorder.offset_ns)
            recorder.put(messages.PLOT, figures, stepped.now_ns)
        for sensor in ranges:
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
        """Record a `drive` of a browser."""
        wish = messages.WishIn(
            drive.seq, drive.t, drive.throttle, drive.steer, name, verdict, seen_us
        )
        self._recorder.put(messages.WISH, wish)

    @harmless
    def turn(self, name: str | None, why: str) -> None:
        """Record the current driver; None if the wheel is free."""
        self._driven = name is not None
        self._recorder.attend()
        self._put_lasting(messages.DRIVER, messages.Turn(name, why))
        self._recorder.note(why, messages.INFO, messages.SEAT)

    @harmless
    def panel(self, view: View, lamps: tuple[bool, bool, bool, bool]) -> None:
        """Record lit buttons, game state and lights.

        `lamps` are head, reversing, left and right indicator.
        """
        names = self._sources.buttons
        lit = tuple(name for n, name in enumerate(names) if view.lit >> n & 1)
        buttons = messages.Buttons(lit, view.mode, view.length, view.done, view.best)
        for topic, message in (
            (messages.BUTTONS, buttons),
            (messages.LIGHTS, messages.Lights(*lamps)),
        ):
            if self._lasting.get(topic) != message:
                self._put_lasting(topic, message)

    @harmless
    def servos(self, angles: Mapping[str, float]) -> None:
        """Record the angles of the servos that do not steer."""
        for name, deg in angles.items():
            self._put_lasting(messages.SERVO + name, messages.Servo(round(deg, 2)))

    @harmless
    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        """Record the measurements of a page."""
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

    # --- recorder controls ---

    @harmless
    def switch(self, on: bool, name: str) -> None:
        """Turn recording on or off."""
        self._read_measured()
        if not on:
            self._recorder.note(f"{name} turned recording off")
        self._recorder.switch(on)
        self._repeat_lasting()
        if on:
            self._recorder.note(f"{name} turned recording on")

    @harmless
    def keep(self, name: str) -> None:
        """Keep the last minute, and log the user's name."""
        self._recorder.note(f"{name} keeps the last minute")
        self._recorder.keep()
        self._sources.camera.request_key()  # the file ends at this key frame

    @harmless
    def mark(self, text: str, name: str) -> None:
        """Record a bookmark at this moment."""
        label = f"{name}: {text[:MARK_MOST]}" if text else name
        self._recorder.attend()
        self._recorder.note(label, messages.INFO, name, messages.MARK)

    @contextlib.contextmanager
    def tapped(self) -> Iterator[Tap]:
        """Copy all messages to a new tap, which begins with the lasting states."""
        with self._recorder.tapped() as tap:
            self._seconds = AGAIN_S
            self._repeat_lasting()
            self._sources.camera.request_key()
            yield tap

    def stop(self) -> None:
        """Record the last measurements and stop the recorder."""
        self._read_measured()
        self._recorder.stop()

    def status(self) -> Recording:
        """Return the recorder's status for pages."""
        return self._recorder.status()

    async def run(self, health: Callable[[], messages.Health]) -> None:
        """Record the health and call `Recorder.second`, once a second."""
        while True:
            self._second(health)
            await aligned_sleep(SECOND_S)

    # --- helpers ---

    @harmless
    def _second(self, health: Callable[[], messages.Health]) -> None:
        self._read_measured()  # before `second` may begin another recording
        self._recorder.second()  # early, as it monitors the recorder's thread
        if self._driven:
            self._recorder.attend()
        self._seconds += 1
        self._repeat_lasting()
        state = health()
        self._note_parts(state)
        self._recorder.put(messages.HEALTH, state)

    def _put_lasting(self, topic: str, message: messages.Message) -> None:
        self._lasting[topic] = message
        self._recorder.put(topic, message)

    def _repeat_lasting(self) -> None:
        """Repeat lasting states: a new recording needs the driver, the lit lamps and the gate's
        state."""
        begun = self._recorder.begun
        if begun == self._begun and self._seconds < AGAIN_S:
            return
        if begun != self._begun:
            self._last_event, self._parts = None, {}
            self._sources.camera.request_key()  # the recording begins with a key frame
        self._begun, self._seconds = begun, 0
        self._recorder.introduce()
        for topic, message in self._lasting.items():
            self._recorder.put(topic, message)

    def _event(self, decision: gate.Decision) -> None:
        """Record the gate's state if it has changed.

        A stop is a warning while its latch lasts, with or without a driver.
        """
        before, self._last_event = self._last_event, decision
        if before is not None:
            if before.reason == decision.reason and before.latches == decision.latches:
                return  # true for nearly every step
            if before.words == decision.words or _moves(before, decision):
                return
        level = messages.WARNING if decision.latches.stopped else messages.INFO
        self._recorder.note(decision.words, level, messages.GATE)

    def _note_parts(self, health: messages.Health) -> None:
        """Record each part that fails or recovers, also while the car stands."""
        states = dict(camera=health.camera, wheels=health.wheels, pins=health.board)
        for part, state in states.items():
            before = self._parts.get(part, "ok")
            if state != before and not {state, before} <= WELL:
                level = messages.INFO if state in WELL else messages.WARNING
                self._recorder.note(f"{part}: {state}", level, part)
        self._parts = states

    def _read_state(self, sensor: Range, now_s: float) -> None:
        """Record the state of a sensor that can no longer measure."""
        self._states[sensor.name] = sensor.state
        if sensor.state != "ok":
            self._read_measured()  # earlier than the change of state
            now_ns = round(now_s * 1e9)
            self._put_range(sensor.name, now_ns, sensor.bearing_deg, None, sensor.state)

    @harmless
    def _read_measured(self) -> None:
        """Record all measurements since the start of this recording."""
        began_ns = self._recorder.began_ns
        for measurement in self._sources.ranges.measured():
            when_ns = round(measurement.at_s * 1e9)
            if when_ns >= began_ns:
                self._put_range(
                    measurement.name, when_ns, measurement.bearing_deg, measurement.range_m, "ok"
                )

    def _put_range(
        self, name: str, when_ns: int, bearing_deg: float, range_m: float | None, state: State
    ) -> None:
        reading = messages.Reading(bearing_deg, range_m, str(state))
        self._recorder.put(messages.RANGE + name, reading, when_ns)
        arc = partial(
            points_of,
            when_ns + self._recorder.offset_ns,
            reading,
            self._positions.get(name, ORIGIN),
        )
        self._recorder.put(messages.POINTS + name, arc, when_ns)

    def _read_battery(self, now_s: float) -> None:
        battery = self._sources.battery.status(now_s)
        if battery is None:
            return
        at_s = -1.0 if battery.age_s is None else now_s - battery.age_s
        before_s, state = self._battery
        if at_s - before_s >= NEWER_S or battery.state != state:
            self._battery = (at_s, battery.state)
            when_ns = round(at_s * 1e9) if at_s > 0.0 else None
            reading = messages.Battery(
                battery.volts,
                battery.amps,
                battery.share,
                battery.low,
                battery.age_s,
                str(battery.state),
            )
            self._recorder.put(messages.BATTERY, reading, when_ns)


def _moves(before: gate.Decision, now: gate.Decision) -> bool:
    """Return whether only the kind of motion changed, as at a wall."""
    return {before.reason, now.reason} <= MOVES and before.latches == now.latches

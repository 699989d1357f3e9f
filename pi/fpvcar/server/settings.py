"""What may be set while the car runs, and by whom: lights, limit, guard, recording.

Each method is one message of one browser, for hub.Hub, which knows who sent it.
"""

from collections.abc import Callable
from typing import Protocol

from fpvcar import status
from fpvcar.config import Profile
from fpvcar.drive.control import Control
from fpvcar.server.drive_socket import Session
from fpvcar.server.limits import Meter
from fpvcar.server.recorder import Recorder
from fpvcar.wire import up
from fpvcar.wire.down import Error

PUSHES_PER_S, PUSHES_BURST = 2.0, 10.0
"""Of the recorder's buttons, all pages together: each begins a file or is an event."""


class Lights(Protocol):
    """What is asked of panel.Panel."""

    def set_head(self, on: bool) -> None:
        """Switches the head lights."""

    def follow(self, throttle: float, steer: float, stopped: bool) -> None:
        """Rear lights and indicators follow what the car does."""

    def record(self, told: status.Recording | None) -> None:
        """An LED follows the recorder."""


class Settings:
    """The switches; `changed()` is called when the pages are to see it."""

    def __init__(
        self, profile: Profile, control: Control, lamps: Lights, recorder: Recorder,
        changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self.head_lights = False
        self._profile, self._control, self._lamps = profile, control, lamps
        self._recorder, self._changed = recorder, changed
        self._pushes = Meter(PUSHES_PER_S, PUSHES_BURST)

    def lights(self, session: Session, lights: up.Lights, now_s: float) -> None:
        """Head lights, for whoever may drive."""
        if not session.rights.drive:
            session.deny(
                Error("you may only watch", "lights", "", "enter the drive code"),
                now_s,
            )
            return
        on = (not self.head_lights) if lights.head is None else lights.head
        self.head_lights = on
        self._lamps.set_head(on)
        self._changed()

    def horn(self, session: Session, _: up.Horn, now_s: float) -> None:
        """No car has one yet."""
        session.deny(Error("this car has no horn", "horn"), now_s)

    def limit(self, session: Session, limit: up.Limit, now_s: float) -> None:
        """The speed limit: a grown-up's, below the profile's."""
        if not session.rights.grown_up:
            session.deny(
                Error("only a grown-up sets the speed limit", "limit", "",
                      "enter the grown-up code"), now_s,
            )  # fmt: skip
            return
        most = self._profile.gate.limit
        if limit.throttle > most:
            session.deny(
                Error("speed limit refused", f"{limit.throttle:g}", f"<= {most:g}",
                      "gate.limit of the profile is higher up"), now_s,
            )  # fmt: skip
            return
        self._control.limit = limit.throttle
        self._control.step()
        self._changed()

    def guard(self, session: Session, guard: up.Guard, now_s: float) -> None:
        """The collision guard: a grown-up's."""
        if session.rights.grown_up:
            self._control.guard(guard.mode)
        else:
            session.deny(
                Error("only a grown-up sets the guard", "guard", "",
                      "enter the grown-up code"), now_s,
            )  # fmt: skip

    def record(
        self, session: Session, said: up.SetRecording | up.Keep | up.Mark,
        now_s: float,
    ) -> None:  # fmt: skip
        """Keeping the last minute and marks: for whoever may drive. On and off: a
        grown-up's, as a child that stops the recorder loses what it drives."""
        if not session.rights.drive:
            session.deny(
                Error("you may only watch", "record", "", "enter the drive code"),
                now_s,
            )
        elif not self._pushes.allow(now_s):
            most = f"{PUSHES_PER_S:g} a second"
            session.deny(Error("too many pushes", "record", most, "wait"), now_s)
        elif isinstance(said, up.SetRecording):
            self._switch(session, said.on, now_s)
        elif isinstance(said, up.Keep):
            self._recorder.keep(session.name)
        else:
            self._recorder.mark(said.text, session.name)
        self._changed()

    def _switch(self, session: Session, on: bool, now_s: float) -> None:
        if session.rights.grown_up:
            self._recorder.switch(on, session.name)
        else:
            session.deny(
                Error("only a grown-up turns recording on or off", "record", "",
                      "enter the grown-up code"), now_s,
            )  # fmt: skip

    def handlers(self) -> dict[type, Callable[..., None]]:
        """Who answers which message."""
        return {
            up.Lights: self.lights, up.Horn: self.horn, up.Limit: self.limit,
            up.Guard: self.guard, up.SetRecording: self.record,
            up.Keep: self.record, up.Mark: self.record,
        }  # fmt: skip

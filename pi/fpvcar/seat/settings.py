"""Settings that browsers may change while the car runs, with the rights they need: lights,
limit, guard, picture, recording, the car's name, the page's large camera.

Each method handles one message of one browser. hub.Hub calls it with the sender's session.
"""

import logging
import re
from collections.abc import Callable

from fpvcar.config import PLAIN, Profile
from fpvcar.drive.saved import CAR_NAME_MOST
from fpvcar.http.limits import TokenBucket
from fpvcar.http.responses import quoted
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.vehicle import Vehicle
from fpvcar.wire import up
from fpvcar.wire.down import CarName, Error

PUSHES_PER_S, PUSHES_BURST = 2.0, 10.0
"""Rate limit on the recorder's buttons, for all pages together: each push creates a file or an
event."""
log = logging.getLogger("fpvcar.seat")


class Settings:
    """Settings switched by pages; `changed()` is called to send the pages a new state."""

    def __init__(self, profile: Profile, vehicle: Vehicle, changed: Callable[[], None]) -> None:
        self.head_lights = False
        self._profile, self._changed, self._sessions = profile, changed, vehicle.sessions
        self._control, self._lights = vehicle.control, vehicle.lights
        self._recorder, self._picture = vehicle.recorder, vehicle.picture
        self._name, self._cameras = vehicle.name, vehicle.cameras
        self._pushes = TokenBucket(PUSHES_PER_S, PUSHES_BURST)

    def lights(self, session: Session, lights: up.Lights, now_s: float) -> None:
        """Switch the head lights, for any driver."""
        if not session.may_drive("lights", now_s):
            return
        on = (not self.head_lights) if lights.head is None else lights.head
        self.head_lights = on
        self._lights.head.publish(on)
        self._changed()

    def limit(self, session: Session, limit: up.Limit, now_s: float) -> None:
        """Set the speed limit, up to the profile's, for a grown-up."""
        if not session.is_grown_up("limit", "sets the speed limit", now_s):
            return
        most = self._profile.gate.limit
        if limit.throttle > most:
            session.deny(
                Error(
                    "speed limit refused",
                    f"{limit.throttle:g}",
                    f"<= {most:g}",
                    "gate.limit of the profile is higher up",
                    "limit",
                ),
                now_s,
            )
            return
        self._control.limit = limit.throttle
        self._control.step()
        self._changed()

    def guard(self, session: Session, guard: up.Guard, now_s: float) -> None:
        """Set the collision guard, for a grown-up."""
        if session.is_grown_up("guard", "sets the guard", now_s):
            self._control.guard(guard.mode)

    def car_name(self, session: Session, message: up.NameCar, now_s: float) -> None:
        """Name the car: any driver the first time, then a grown-up."""
        if self._name.chosen:
            allowed = session.is_grown_up("car_name", "renames the car", now_s)
        else:
            allowed = session.may_drive("car_name", now_s)
        if not allowed:
            return
        name = " ".join(message.name.split())
        if not (0 < len(name) <= CAR_NAME_MOST and re.match(PLAIN, name)):
            session.deny(
                Error(
                    "car name refused",
                    quoted(message.name),
                    f"1 to {CAR_NAME_MOST} visible characters",
                    "choose another name",
                    "car_name",
                ),
                now_s,
            )
            return
        self._name.choose(name)
        log.info("%s named the car %s", session.name, name)
        self._sessions.send(CarName(name))

    def picture(self, session: Session, change: up.SetPicture, now_s: float) -> None:
        """Set size, rate, flip, exposure, brightness and night, for a grown-up."""
        if not session.is_grown_up("picture", "sets the picture", now_s):
            return
        if not self._pushes.allow(now_s):
            most = f"{PUSHES_PER_S:g} a second"
            error = Error("too many pushes", "picture", most, "wait", "too_often")
            session.deny(error, now_s)
            return
        unknown = self._picture.change(change.to)
        if unknown is not None:
            session.deny(
                Error(
                    "this camera lacks the setting",
                    unknown,
                    "",
                    "GET /api/picture lists its settings",
                    "no_picture",
                ),
                now_s,
            )
        self._changed()

    def view(self, session: Session, message: up.View, now_s: float) -> None:
        """Note the camera of the page's large picture: the gate also needs its pictures."""
        names = self._cameras.further
        if message.camera in ("", *names):
            session.preferred = message.camera
            if message.shown:
                session.large = message.camera
            self._changed()
            return
        known = "one of " + ", ".join(names) if names else "no name: this car has one camera"
        error = Error("unknown camera", quoted(message.camera), known, "", "unknown_camera")
        session.deny(error, now_s)

    def record(
        self, session: Session, command: up.SetRecording | up.Keep | up.Mark, now_s: float
    ) -> None:
        """Keep the last minute or mark a moment, for any driver; switch recording, for a grown-up.

        A child that turned recording off would lose its drive.
        """
        if not session.may_drive("record", now_s):
            pass
        elif not self._pushes.allow(now_s):
            most = f"{PUSHES_PER_S:g} a second"
            error = Error("too many pushes", "record", most, "wait", "too_often")
            session.deny(error, now_s)
        elif isinstance(command, up.SetRecording):
            self._switch(session, command.on, now_s)
        elif isinstance(command, up.Keep):
            self._recorder.keep(session.name)
        else:
            self._recorder.mark(command.text, session.name)
        self._changed()

    def _switch(self, session: Session, on: bool, now_s: float) -> None:
        if session.is_grown_up("record", "turns recording on or off", now_s):
            self._recorder.switch(on, session.name)

    def handlers(self) -> dict[type, Callable[..., None]]:
        """Return the handler of each kind of message."""
        return {
            up.Lights: self.lights,
            up.Limit: self.limit,
            up.Guard: self.guard,
            up.NameCar: self.car_name,
            up.SetPicture: self.picture,
            up.View: self.view,
            up.SetRecording: self.record,
            up.Keep: self.record,
            up.Mark: self.record,
        }

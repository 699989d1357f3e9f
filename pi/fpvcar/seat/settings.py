"""Settings that browsers may change while the car runs, with the rights they need: lights,
limit, guard, picture, recording, the car's name, the page's large camera."""

import logging
import re
from collections.abc import Callable

from msgspec.structs import replace

from fpvcar.config import PLAIN, Profile
from fpvcar.drive.saved import CAR_NAME_MOST
from fpvcar.http.responses import quoted
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.handlers import Right, handles
from fpvcar.seat.vehicle import Vehicle
from fpvcar.wire import up
from fpvcar.wire.down import CarName, Error
from fpvcar.wire.settings import Guard, Lights, Limit, SetPicture, SetRecording, SettingsState

PUSHES = (2.0, 10.0)
"""Rate limit on the recorder's buttons and the picture: each push creates a file or an event."""
log = logging.getLogger("fpvcar.seat")


class Settings:
    """Settings switched by pages; `changed()` is called to send the pages a new state."""

    def __init__(self, profile: Profile, vehicle: Vehicle, changed: Callable[[], None]) -> None:
        self.state = SettingsState()
        """Values on all pages."""
        self._profile, self._changed, self._sessions = profile, changed, vehicle.sessions
        self._control, self._lights = vehicle.control, vehicle.lights
        self._recorder, self._picture = vehicle.recorder, vehicle.picture
        self._name, self._cameras = vehicle.name, vehicle.cameras

    @handles(Lights, right=Right.DRIVER)
    def lights(self, session: Session, lights: Lights, now_s: float) -> None:
        """Switch the head lights, or toggle them."""
        on = (not self.state.head_lights) if lights.head is None else lights.head
        self.state = replace(self.state, head_lights=on)
        self._lights.head.publish(on)
        self._changed()

    @handles(Limit, right=Right.GROWN_UP, act="sets the speed limit")
    def limit(self, session: Session, limit: Limit, now_s: float) -> None:
        """Set the speed limit, up to the profile's."""
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

    @handles(Guard, right=Right.GROWN_UP, act="sets the guard")
    def guard(self, session: Session, guard: Guard, now_s: float) -> None:
        """Set the mode of the collision guard."""
        self._control.guard(guard.mode)

    @handles(up.NameCar, right=Right.NAMES_CAR, act="renames the car")
    def car_name(self, session: Session, message: up.NameCar, now_s: float) -> None:
        """Name the car on all pages."""
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

    @handles(SetPicture, right=Right.GROWN_UP, act="sets the picture", limit=PUSHES)
    def picture(self, session: Session, change: SetPicture, now_s: float) -> None:
        """Set size, rate, flip, exposure, brightness and night."""
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

    @handles(up.View, right=Right.ANYONE)
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

    @handles(SetRecording, right=Right.GROWN_UP, act="turns recording on or off", limit=PUSHES)
    def record(self, session: Session, command: SetRecording, now_s: float) -> None:
        """Turn recording on or off. A child that turned it off would lose its drive."""
        self._recorder.switch(command.on, session.name)
        self._changed()

    @handles(up.Keep, right=Right.DRIVER, limit=PUSHES)
    def keep(self, session: Session, _: up.Keep, now_s: float) -> None:
        """Keep the last minute of the recording."""
        self._recorder.keep(session.name)
        self._changed()

    @handles(up.Mark, right=Right.DRIVER, limit=PUSHES)
    def mark(self, session: Session, mark: up.Mark, now_s: float) -> None:
        """Mark this moment in the recording."""
        self._recorder.mark(mark.text, session.name)
        self._changed()

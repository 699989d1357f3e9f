"""Hub with everything real but sockets, time and metal, and its visitors."""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from fpvcar import config
from fpvcar.access.codes import CodeCheck, Codes, Rights
from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import DeviceRights
from fpvcar.config import profiles
from fpvcar.drive.control import Control, GateRun
from fpvcar.drive.saved import DisplayName, LaterSettings, SavedName, SavedSettings, Saver
from fpvcar.http.admission import Admission
from fpvcar.http.embedding import Embedding
from fpvcar.http.limits import Places
from fpvcar.recorder.feed import Feed
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.seat.authorization import Access
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.hub import Hub
from fpvcar.seat.metrics import Metrics
from fpvcar.seat.routes import Server
from fpvcar.seat.sessions import Sessions
from fpvcar.seat.vehicle import Cameras, LightEvents
from fpvcar.sensors.ranges import Ranges
from fpvcar.sensors.suite import SensorSuite
from fpvcar.video.camera import Camera
from fpvcar.video.picture import PictureSettings
from fpvcar.video.stream import Stream
from fpvcar.wire import down, telemetry, up
from fpvcar.wire.buttons import View
from fpvcar.wire.down import Error
from fpvcar.wire.wheels import Answer, Status, WheelsReason
from testkit.control import PlayedInputs, PlayedWheels

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")


@dataclass
class FakeLights:
    """Lights that record their settings."""

    told: list[tuple[str, bool]] = field(default_factory=list)
    steer: float = 0.0
    stopped: bool = False
    recorder: telemetry.Recording | None = None
    codes_told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.events = LightEvents()
        self.events.code.subscribe(self.codes_told.append)
        self.events.head.subscribe(lambda on: self.told.append(("head", on)))
        self.events.motion.subscribe(self._follow)
        self.events.recording.subscribe(self._record)

    def _follow(self, throttle: float, steer: float, stopped: bool) -> None:
        self.told.append(("reversing", throttle < 0.0))
        self.steer, self.stopped = steer, stopped

    def _record(self, told: telemetry.Recording) -> None:
        self.recorder = told


class NoRecorder(Feed):
    """Recorder of a car without a card, that notes turns and marks."""

    def __init__(self) -> None:
        self.recording = telemetry.Recording(False, "ok", 0.0)
        self.turns, self.marks = list[tuple[str | None, str]](), list[str]()

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        pass

    def turn(self, name: str | None, why: str) -> None:
        self.turns.append((name, why))

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        pass

    def switch(self, on: bool, name: str) -> None:
        pass

    def keep(self, name: str) -> None:
        pass

    def mark(self, text: str, name: str) -> None:
        self.marks.append(text)

    def panel(self, view: View, lamps: tuple[bool, bool, bool, bool]) -> None:
        pass

    def servos(self, angles: Mapping[str, float]) -> None:
        self.angles = dict(angles)

    def status(self) -> telemetry.Recording:
        return self.recording


class FakeCamera(Camera):
    """Camera without a program that is "ok", and records its requests and ends."""

    def __init__(self) -> None:
        super().__init__([], True)
        self.state, self.lines, self.ends = "ok", list[str](), list[str]()

    def write_line(self, line: str) -> bool:
        self.lines.append(line)
        return True

    def fail(self, reason: Text) -> None:
        self.ends.append(reason.key)


class FakeSenses(SensorSuite):
    """Sensors chosen by a test: at first a wall ahead, a good battery, a computer without
    figures."""

    def __init__(self) -> None:
        self.here, self.faults = True, tuple[Text, ...]()
        self.seen: tuple[telemetry.Range, ...] = (telemetry.Range("front", 0.0, 0.5, 0.01),)
        self.cell: telemetry.Battery | None = telemetry.Battery(7.4, 0.5, 0.6, False, 0.01)
        self.computer, self.sd_card = telemetry.Health(), telemetry.Card()
        self.calibration = lambda: self.faults

    def ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        return self.seen

    def battery(self, now_s: float) -> telemetry.Battery | None:
        return self.cell

    def health(self, now_s: float) -> telemetry.Health:
        return self.computer

    def attend(self, here: bool) -> None:
        self.here = here

    def card(self) -> telemetry.Card:
        return self.sd_card

    def readings(self) -> dict[str, int]:
        return {"front": 31, "battery": 12}


NEW = SavedSettings()
CODES = Codes("123456", "grownups")


class NoFigures(Metrics):
    """Source of figures that is empty."""

    def __init__(self) -> None:
        pass

    def text(self) -> str:
        return ""

    def faults(self) -> list[str]:
        return []

    def status(self) -> dict[str, object]:
        return {}


def cameras_of(stream: Any, sessions: Sessions, camera: Camera | None = None) -> Cameras:
    """Return the cameras of a car with this stream."""
    return Cameras(camera or FakeCamera(), stream, sessions, PROFILE.gate.blind_s)


def no_picture(profile: config.Profile) -> PictureSettings:
    """Return the picture of a camera without settings."""
    camera = msgspec.structs.replace(profile.camera, source="none", command=())
    bare = msgspec.structs.replace(profile, camera=camera)
    return PictureSettings(bare, None, None, FakeCamera())


def server_of(profile: config.Profile, hub: Any, stream: Any, **more: Any) -> Server:
    """Return the routes of one car, without limits below them; `apis`, `bodies` and `hosts` are
    those of a feature."""
    bodies, hosts = more.pop("bodies", ()), more.pop("hosts", tuple)
    apis = [Feature(name="api", routes=api.add_to) for api in more.pop("apis", ())]
    apis.append(Feature(name="api", bodies=bodies, hosts=hosts))
    core, places = House(profile).vehicle, more.pop("connections", None) or Places(999, 999)
    sessions = getattr(hub, "sessions", core.sessions)
    core = dataclasses.replace(
        core,
        sessions=sessions,
        picture=more.pop("picture", None) or core.picture,
        cameras=more.pop("cameras", None) or cameras_of(stream, sessions),
        admission=Admission(places, profile.server.max_viewers),
    )
    given = {
        "figures": NoFigures(),
        "web_root": paths.WEB,
        "devices": Devices(bytes(32), CODES, Path("/nowhere/devices.json")),
        **more,
    }
    given["features"] = (*apis, *given.get("features", ()))
    return Server(core=core, hub=hub, **given)


class FakeSaver(Saver):
    """Saved settings without a card; records two switches."""

    def __init__(self, before: SavedSettings) -> None:
        self.before, self.intercom = before, list[bool]()
        self.later, self.viewers_look = LaterSettings(), list[bool]()

    def put_viewers_look(self, on: bool) -> None:
        self.viewers_look.append(on)

    def put_intercom(self, on: bool) -> None:
        self.intercom.append(on)


class House:
    """Hub with everything real but sockets, time and metal."""

    def __init__(
        self,
        profile: config.Profile = PROFILE,
        recorder: Feed | None = None,
        watcher: Callable[[GateRun], None] | None = None,
        utc_s: Callable[[], float] = time.time,
        stations: Devices | None = None,
        feature: Callable[[Core], Feature] | None = None,
        before: SavedSettings = NEW,
        folder: Path = Path("/nowhere"),
        control: Control | None = None,
        clock_s: Callable[[], float] | None = None,
    ) -> None:
        """Build the core of a car; `feature` constructs one of its features, `folder` has its
        list of drivers. A given `control` has its own wheels, inputs and clock."""
        self.now_s = 100.0
        self.profile = profile
        self.duties: tuple[float, ...] = (0.0, 0.0)
        self.lights = FakeLights()
        server = profile.server
        self.embedding = Embedding(server.base_path, server.frame_ancestors)
        self.devices = Devices(bytes(32), CODES, folder / "devices.json", self.embedding)
        self.control = control or Control(
            profile,
            PlayedWheels(self.send),
            PlayedInputs(lambda _: 0.03, lambda _: 7.5, lambda _: ()),
            asyncio.Event(),
            clock_ns=lambda: round(self.now_s * 1e9),
            watcher=watcher,
        )
        if control is None:
            self.control.wheels_answer(Answer(Status.APPLIED, WheelsReason.NONE, 1, 0))
        self.senses, self.recorder, self.camera = FakeSenses(), NoRecorder(), FakeCamera()
        self.saved_names: list[SavedName] = []
        self.name = DisplayName(profile.car.name, None, self.saved_names.append, shipped=True)
        self.saver = FakeSaver(before)
        sessions, changed = Sessions(), asyncio.Event()
        codes = CodeCheck(CODES)
        self.vehicle = Core(
            control=self.control,
            lights=self.lights.events,
            cameras=cameras_of(Stream(self.camera), sessions, self.camera),
            senses=self.senses,
            name=self.name,
            recorder=recorder or self.recorder,
            sessions=sessions,
            picture=no_picture(profile),
            profile=profile,
            soc=None,
            runtime=Path("/nowhere"),
            doctor=(),
            saver=self.saver,
            ranges=Ranges(profile),
            rights=DeviceRights(codes, self.devices, utc_s=utc_s),
            code=CODES.drive,
            admission=Admission(Places(999, 999), profile.server.max_viewers),
            changed=changed,
        )
        self.features = [] if feature is None else [feature(self.vehicle)]
        self.hub = Hub(
            profile=profile,
            vehicle=self.vehicle,
            access=Access(codes, self.devices, stations),
            changed=changed,
            features=self.features,
            clock_s=clock_s or (lambda: self.now_s),
            utc_s=utc_s,
        )

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        self.duties = duties
        return True

    def visitor(
        self,
        name: str,
        *,
        code: str = "",
        address: str = "10.0.0.1",
        drive: bool = True,
        client: str = "",
    ) -> "Visitor":
        session = Session(address, Rights(drive=drive), PROFILE.gate)
        visitor = Visitor(self, session)
        visitor.say(up.Hello(1, client or f"client-{name}", name, code))
        return visitor


@dataclass
class Visitor:
    """Browser with its received messages."""

    house: House
    session: Session
    seq: int = 0

    def say(self, message: up.Upward) -> None:
        self.house.hub.receive(self.session, message)

    def drive(self, throttle: float, steer: float = 0.0, late_s: float = 0.0) -> None:
        self.seq += 1
        sent_ms = (self.house.now_s - late_s) * 1000.0
        seen_us = int((self.house.now_s - late_s) * 1e6)
        self.session.fresh.sent(seen_us, seen_us)
        self.say(up.Drive(self.seq, sent_ms, throttle, steer, seen_us))

    def drive_off(self, throttle: float = 1.0) -> None:
        """Let go, and push the stick."""
        self.drive(0.0)
        self.drive(throttle)

    @property
    def state(self) -> down.State:
        self.house.hub.broadcast()
        state = self.session._newest
        assert isinstance(state, down.State)
        return state

    def errors(self) -> list[Error]:
        return [one for one in self.session._outbox if isinstance(one, Error)]


async def until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Wait for a condition that another task or thread is about to meet."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.005)

"""Hub with everything real but sockets, time and metal, and its visitors."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fpvcar import config
from fpvcar.access.codes import CodeCheck, Codes, Rights
from fpvcar.access.remembered_browsers import Devices
from fpvcar.config import profiles
from fpvcar.drive.control import Control, GateRun, Inputs
from fpvcar.drive.saved import DisplayName, SavedName
from fpvcar.http.limits import Places
from fpvcar.runtime import paths
from fpvcar.runtime.texts import State, Text
from fpvcar.seat.authorization import Access
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.hub import Hub
from fpvcar.seat.routes import Media, Server
from fpvcar.seat.vehicle import Intercom, NoRecorder, Recorder, Vehicle
from fpvcar.wire import down, telemetry, up
from fpvcar.wire.down import Error
from fpvcar.wire.wheels import Answer, Status, WheelsReason

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")


@dataclass
class FakeLights:
    """Lights that record their settings."""

    told: list[tuple[str, bool]] = field(default_factory=list)
    steer: float = 0.0
    stopped: bool = False
    recorder: telemetry.Recording | None = None
    codes_told: list[str] = field(default_factory=list)

    def blink_code(self, network: str) -> None:
        self.codes_told.append(network)

    def set_head(self, on: bool) -> None:
        self.told.append(("head", on))

    def follow(self, throttle: float, steer: float, stopped: bool) -> None:
        self.told.append(("reversing", throttle < 0.0))
        self.steer, self.stopped = steer, stopped

    def record(self, told: telemetry.Recording | None) -> None:
        self.recorder = told


class FakeCamera:
    """Camera that is always "ok"."""

    state: State = "ok"
    status = "ok"
    encoder_hangs = False
    warning: Text | None = None
    lowered_rate: Text | None = None


class FakeSenses:
    """Sensors with one wall ahead, a good battery, a computer without figures."""

    here = True

    def ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        return (telemetry.Range("front", 0.0, 0.5, 0.01),)

    def battery(self, now_s: float) -> telemetry.Battery | None:
        return telemetry.Battery(7.4, 0.5, 0.6, False, 0.01)

    def health(self, now_s: float) -> telemetry.Health:
        return telemetry.Health()

    def attend(self, here: bool) -> None:
        self.here = here

    def card(self) -> telemetry.Card:
        return telemetry.Card()


CODES = Codes("123456", "grownups")


class NoFigures:
    """Source of figures that is empty."""

    def text(self) -> str:
        return ""

    def faults(self) -> list[str]:
        return []

    def status(self) -> dict[str, object]:
        return {}


def server_of(profile: config.Profile, hub: Any, stream: Any, **more: Any) -> Server:
    """Return the routes of one car, without limits below them."""
    given = {
        "figures": NoFigures(),
        "web_root": paths.WEB,
        "connections": Places(999, 999),
        "devices": Devices(bytes(32), CODES, Path("/nowhere/devices.json")),
        **more,
    }
    media = Media(stream, second=given.pop("second", None))
    return Server(profile=profile, hub=hub, media=media, **given)


class House:
    """Hub with everything real but sockets, time and metal."""

    def __init__(
        self,
        profile: config.Profile = PROFILE,
        recorder: Recorder | None = None,
        watcher: Callable[[GateRun], None] | None = None,
        utc_s: Callable[[], float] = time.time,
        stations: Devices | None = None,
        second: Any = None,
        intercom: Intercom | None = None,
    ) -> None:
        self.now_s = 100.0
        self.profile = profile
        self.duties: tuple[float, ...] = (0.0, 0.0)
        self.lights = FakeLights()
        self.devices = Devices(bytes(32), CODES, Path("/nowhere/devices.json"))
        self.control = Control(
            profile,
            self.send,
            Inputs(lambda _: 0.03, lambda _: 7.5, lambda _: ()),
            lambda: None,
            lambda: round(self.now_s * 1e9),
            watcher=watcher,
        )
        self.control.wheels_answer(Answer(Status.APPLIED, WheelsReason.NONE, 1, 0))
        self.senses = FakeSenses()
        self.saved_names: list[SavedName] = []
        self.name = DisplayName(profile.car.name, None, self.saved_names.append, shipped=True)
        self.vehicle = Vehicle(
            control=self.control,
            lights=self.lights,
            camera=FakeCamera(),
            second=second,
            senses=self.senses,
            name=self.name,
            recorder=recorder or NoRecorder(),
            intercom=intercom,
        )
        self.hub = Hub(
            profile=profile,
            vehicle=self.vehicle,
            access=Access(CodeCheck(CODES), self.devices, stations),
            changed=asyncio.Event(),
            clock_s=lambda: self.now_s,
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

    @property
    def state(self) -> down.State:
        self.house.hub.broadcast()
        state = self.session._newest
        assert isinstance(state, down.State)
        return state

    def errors(self) -> list[Error]:
        return [one for one in self.session._outbox if isinstance(one, Error)]

"""Wiring only: build every part of `run`, pass each its collaborators, and list them.

If two parts need each other, one publishes events (service.Event) and the other subscribes, or the
source of events receives its listeners as arguments of its run method: wheels client and recorder's
feed. FEATURES lists the parts that only some cars have.
"""

import asyncio
import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fpvcar.access.banner import greeting
from fpvcar.access.codes import CodeCheck, load_codes, load_key
from fpvcar.access.invitations_api import InvitationsApi
from fpvcar.access.remembered_browsers import FILE, Devices
from fpvcar.access.rights import DeviceRights
from fpvcar.access.stations import FILE as STATIONS
from fpvcar.access.stations import Stations
from fpvcar.buttons.panel import buttons_of
from fpvcar.calibration import store
from fpvcar.calibration.api import CalibrationApi
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.config import Profile
from fpvcar.datasets.api import DATASETS, DatasetsApi
from fpvcar.devices import backends
from fpvcar.drive.control import Control
from fpvcar.drive.saved import DisplayName, Saver, ships
from fpvcar.http import certificates, endpoints
from fpvcar.http.addresses import machine_names
from fpvcar.http.admission import Admission
from fpvcar.http.embedding import Embedding
from fpvcar.http.endpoints import Address, Site
from fpvcar.http.limits import connection_places
from fpvcar.http.trust_api import TrustApi
from fpvcar.library.api.exports import EXPORTS
from fpvcar.library.api.recordings_api import ListContext, RecordingsApi
from fpvcar.library.api.station_api import StationApi
from fpvcar.library.recording_index import files_in
from fpvcar.recorder.feed import Feed, Sources
from fpvcar.recorder.setup import CarRecorder
from fpvcar.runtime import gc_policy, paths, service, watchdog
from fpvcar.runtime.service import Part, threaded
from fpvcar.runtime.units import MB
from fpvcar.seat.authorization import Access
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.hub import Hub
from fpvcar.seat.live_api import LiveApi
from fpvcar.seat.metrics import Metrics
from fpvcar.seat.routes import Server
from fpvcar.seat.sessions import Sessions
from fpvcar.seat.vehicle import Cameras, LightEvents
from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.ranges import Ranges
from fpvcar.sensors.suite import SensorSuite
from fpvcar.video.camera import Camera, argv_of, firmware_encoder
from fpvcar.video.frame_rate import FrameRate
from fpvcar.video.picture import PictureSettings, with_picture
from fpvcar.video.stream import Stream
from fpvcar.wheels.client import Rescue, WheelsClient
from fpvcar.wheels.pins_off_client import SOCKET

SWITCH_S = 0.001
"""Longest wait of a woken thread, or of the loop, for another thread to release the interpreter."""


FEATURES: dict[str, Callable[[Profile], bool]] = {
    "buttons.socket": lambda profile: True,  # without wired buttons its page has four
    "depth.camera": lambda profile: profile.depth.source != "none",
    "second_camera.feature": lambda profile: bool(profile.cameras),
    "servos.feature": lambda profile: bool(profile.servos),
    "intercom.socket": lambda profile: profile.intercom.present,
    "wifi.api": lambda profile: True,
    "doctor.api": lambda profile: True,
}
"""Module of each feature, and whether a car of this profile has it."""


@dataclass(frozen=True)
class Options:
    """Options of `run`: the address to listen at, and settings of the bench.

    `soc` is the emulated chip. `doctor` is the command line that lists this car's faults. `profile`
    is the file of its profile.
    """

    host: str
    port: int
    runtime: Path
    soc: Path | None = None
    doctor: tuple[str, ...] = ()
    profile: Path | None = None


class Settings:
    """Saved settings, and the car's profile: as written in its file, and with them applied."""

    def __init__(self, profile: Profile) -> None:
        self.folder, self.car = paths.state_directory(), profile.car.name
        self.saver = Saver(self.folder)
        before = self.saver.before
        self.name = DisplayName(self.car, before.car, self.saver.put_name, ships(self.car))
        self.written, pictured = profile, with_picture(profile, before.picture)
        self.calibration = self.folder / store.FILE
        kept = store.load(self.calibration, pictured.motors.names)
        most_hz = backends.most_hz(backends.pins_backend(profile))
        self.tuner = Calibrator(pictured, kept, most_hz)
        self.profile = self.tuner.profile


class Sensors:
    """Sensors of the car, each with its thread; `suite` has the values of all."""

    def __init__(self, settings: Settings, recordings: Path) -> None:
        profile, tuner = settings.profile, settings.tuner
        self.ranges, self.battery = Ranges(profile), BatterySensor(profile)
        self.computer = HealthThread(backends.open_computer(recordings))
        unreadable = settings.saver.unreadable
        self.suite = SensorSuite(
            self.ranges, self.battery, self.computer, lambda: tuner.faults, unreadable
        )


class GateInputs:
    """State of the car, as the gate reads it."""

    def __init__(self, cameras: Cameras, sensors: Sensors, tuner: Calibrator) -> None:
        self.picture_age_s, self.ranges = cameras.picture_age_s, sensors.ranges.status
        self.volts, self.weak = sensors.battery.volts, sensors.suite.weak
        self.in_doubt = tuner.in_doubt


class Driving:
    """Gate of the car, and its client of `wheels`."""

    def __init__(
        self, settings: Settings, cameras: Cameras, sensors: Sensors, feed: Feed, runtime: Path
    ) -> None:
        profile, self.changed = settings.profile, asyncio.Event()
        rescue = Rescue(profile, helper=runtime / SOCKET)
        self.wheels = WheelsClient(runtime / "wheels.sock", rescue, settings.written)
        self.wheels.tune(profile)
        self.control = Control(
            profile,
            wheels=self.wheels,
            inputs=GateInputs(cameras, sensors, settings.tuner),
            changed=self.changed,
            saver=settings.saver,
            watcher=feed.step,
            wheels_profile=settings.written,
        )


class Car:
    """Core of the car; all but its pages and features."""

    def __init__(self, profile: Profile, options: Options) -> None:
        self.settings = settings = Settings(profile)
        profile, saver = settings.profile, settings.saver
        self.recordings = paths.recordings_directory(profile.recording.directory)
        self.sensors = sensors = Sensors(settings, self.recordings)
        self.codes, self.key = load_codes(settings.folder), load_key(settings.folder)
        self.sessions = Sessions(self.key)
        camera = Camera(*argv_of(profile, options.soc), encoder=firmware_encoder(profile.camera))
        sources = Sources(
            ranges=sensors.ranges,
            battery=sensors.battery,
            camera=camera,
            buttons=tuple(buttons_of(profile)),
        )
        car_recorder = CarRecorder(profile, self.recordings, sources)
        self.recorder, self.feed = car_recorder.recorder, car_recorder.feed
        self.picture = PictureSettings(settings.written, saver.before.picture, options.soc, camera)
        self.picture.kept.subscribe(saver.put_picture)
        self.picture.changed.subscribe(self.recorder.reframe)
        stream = Stream(camera, profile.camera.bitrate)
        self.rate = FrameRate(stream, camera, self.picture.within_limits, sensors.computer.hot)
        # The stream first, so that viewers do not wait for the recorder.
        camera.units.subscribe(stream.publish, self.feed.picture, self.rate.take)
        self.cameras = Cameras(camera, stream, self.sessions, profile.gate.blind_s)
        self.driving = Driving(settings, self.cameras, sensors, self.feed, options.runtime)
        settings.tuner.tuned.subscribe(
            self.driving.wheels.tune,  # first: the next tick of the gate sends both
            self.driving.control.tune,
            sensors.ranges.tune,
            sensors.battery.tune,
            self.recorder.tune,
        )


class Pages:
    """Features, pages and interfaces of the car, and the site that serves them."""

    def __init__(self, car: Car, options: Options) -> None:
        settings, profile, driving = car.settings, car.settings.profile, car.driving
        around = Embedding(profile.server.base_path, profile.server.frame_ancestors)
        self.devices = Devices(car.key, car.codes, settings.folder / FILE, around)
        self.stations = Stations(car.key, car.codes, settings.folder / STATIONS)
        access = Access(CodeCheck(car.codes), self.devices, self.stations)
        further = profile.server.allowed_hosts
        address = endpoints.address(
            options.host, options.port, settings.folder, settings.car, further
        )
        places = connection_places(profile.server.max_connections, profile.server.max_per_address)
        core = Core(
            control=driving.control,
            lights=LightEvents(),
            cameras=car.cameras,
            senses=car.sensors.suite,
            name=settings.name,
            recorder=car.feed,
            sessions=car.sessions,
            picture=car.picture,
            profile=profile,
            soc=options.soc,
            runtime=options.runtime,
            doctor=options.doctor,
            saver=settings.saver,
            ranges=car.sensors.ranges,
            rights=DeviceRights(access.codes, self.devices),
            code=car.codes.drive,
            admission=Admission(places, profile.server.max_viewers),
            changed=driving.changed,
        )
        self.features = (
            *(load(module, core) for module, has in FEATURES.items() if has(profile)),
            *_shared(car, core, access, self.stations, address, options, around),
        )
        self.hub = Hub(
            profile=profile,
            vehicle=core,
            access=access,
            changed=core.changed,
            features=self.features,
            https_port=address.https_port,
        )
        self.metrics = Metrics(core=core, hub=self.hub, features=self.features)
        server = Server(
            core=core,
            hub=self.hub,
            devices=self.devices,
            figures=self.metrics,
            web_root=paths.WEB,
            features=self.features,
            names=machine_names(options.runtime),
        )
        self.site = Site(
            server.application,
            places=places,
            address=address,
            listening=functools.partial(_greet, profile, options),
            embedding=around,
        )


def load(module: str, core: Core) -> Feature:
    """Import a feature and construct it; a car imports only those of its profile."""
    feature: Feature = importlib.import_module(f"fpvcar.{module}").feature(core)
    return feature


def _shared(
    car: Car,
    core: Core,
    access: Access,
    stations: Stations,
    address: Address,
    options: Options,
    around: Embedding,
) -> tuple[Feature, ...]:
    """Return the interfaces that every car has, or shares with a station."""
    settings = car.settings
    recordings = RecordingsApi(
        functools.partial(files_in, car.recordings),
        context=ListContext(settings.car, seat=True, shown=settings.name),
        rights=core.rights,
        driven=core.control.driven,
        folder=car.recordings,
    )
    datasets = DatasetsApi(
        recordings.repository,
        recordings.downloads,
        core.rights,
        folder=car.recordings / "datasets",
        driven=core.control.driven,
        reserve=round(settings.profile.recording.keep_free_mb * MB),
    )
    certificate = settings.folder / certificates.CERTIFICATE
    station = StationApi(
        car=settings.car,
        folder=car.recordings,
        stations=stations,
        codes=access.codes,
        downloads=recordings.downloads,
        driven=core.control.driven,
        certificate=certificates.fingerprint(certificate.read_bytes()) if address.tls else "",
    )
    calibration = CalibrationApi(
        tuner=settings.tuner,
        control=core.control,
        senses=core.senses,
        rights=core.rights,
        file=settings.calibration,
        profile=options.profile,
    )
    invitations = InvitationsApi(access.devices, core.rights, address, embedding=around)
    trust = TrustApi(paths.WEB, settings.folder, address, settings.car)
    return (
        Feature(
            name="recordings",
            routes=recordings.add_to,
            pages={"recordings": "recordings.html"},
            bodies=(EXPORTS,),
        ),
        Feature(name="datasets", routes=datasets.add_to, bodies=(DATASETS,)),
        Feature(name="station", routes=station.add_to),
        Feature(name="live", routes=LiveApi(core, stations).add_to),
        Feature(name="calibration", routes=calibration.add_to),
        Feature(name="invitations", routes=invitations.add_to),
        Feature(name="trust", routes=trust.add_to),
    )


def build(profile: Profile, options: Options) -> tuple[Part, ...]:
    """Build all parts of `run`, in the order of their dependencies.

    They start in the order of the list and stop in reverse order.
    """
    backends.load(profile)
    car = Car(profile, options)
    pages = Pages(car, options)
    cameras, sensors, feed = car.cameras, car.sensors, car.feed
    control, wheels = car.driving.control, car.driving.wheels
    return (
        Part(
            name="recorder",
            loops=(functools.partial(feed.run, pages.metrics.health),),
            start=car.recorder.start,
            stop=feed.stop,
        ),
        threaded("saved settings", car.settings.saver),
        threaded("ranges", sensors.ranges),
        threaded("battery", sensors.battery),
        threaded("computer", sensors.computer),
        Part("control", (control.run,)),
        Part("wheels", (functools.partial(wheels.run, control),)),
        Part(
            "camera",
            (
                functools.partial(
                    cameras.first.film,
                    watched=lambda: bool(cameras.stream.viewers) or control.driven(),
                ),
            ),
        ),
        *(part for feature in pages.features for part in feature.parts),
        Part("hub", (pages.hub.run, pages.devices.run, pages.stations.run)),
        Part("site", (pages.site.run,)),
        Part(
            "garbage",
            (functools.partial(gc_policy.collect_while, lambda: not any(control.duties)),),
        ),
        Part("watchdog", (functools.partial(watchdog.run, watchdog.Watchdog()),)),
    )


def _greet(profile: Profile, options: Options) -> None:
    """Print the car's address, except on the bench (it prints its own) and in the journal."""
    if options.soc is None and "JOURNAL_STREAM" not in os.environ:
        car, recordings = profile.car.name, profile.recording.directory
        proxied = profile.server.base_path != "/"
        print(greeting(options.host, options.port, car, recordings, proxied), flush=True)


async def run(profile: Profile, options: Options) -> int:
    """Run the car until SIGTERM or SIGINT, or until a part of it ends."""
    built = build(profile, options)
    sys.setswitchinterval(SWITCH_S)
    gc_policy.hold_back()
    return await service.run(built)

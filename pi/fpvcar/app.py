"""Wiring only: build every part of `run`, pass each its collaborators, and list them.

If two parts need each other, the source of events receives its listeners as arguments of its run
method: camera, wheels client and recorder's feed.
"""

import asyncio
import functools
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
from fpvcar.buttons.panel import Panel, buttons_of
from fpvcar.calibration import store
from fpvcar.calibration.api import CalibrationApi, apply_to
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.doctor.api import DoctorApi
from fpvcar.drive.control import Control, Inputs
from fpvcar.drive.saved import DisplayName, Saver, ships
from fpvcar.drive.servo_correction import CalibratedServo
from fpvcar.http import certificates, endpoints
from fpvcar.http.addresses import machine_names
from fpvcar.http.endpoints import Address, Site
from fpvcar.http.limits import connection_places
from fpvcar.http.trust_api import TrustApi
from fpvcar.library.api.recordings_api import ListContext, RecordingsApi
from fpvcar.library.api.station_api import StationApi
from fpvcar.library.recording_index import files_in
from fpvcar.recorder.feed import Feed, Sources
from fpvcar.recorder.setup import CarRecorder
from fpvcar.runtime import gc_policy, paths, service, watchdog
from fpvcar.runtime.service import Part, threaded
from fpvcar.seat.authorization import Access
from fpvcar.seat.hub import Hub
from fpvcar.seat.metrics import Metrics
from fpvcar.seat.routes import Api, Media, Server
from fpvcar.seat.vehicle import Vehicle
from fpvcar.sensors import depth_camera
from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.depth_camera import DepthCamera
from fpvcar.sensors.ranges import Ranges
from fpvcar.sensors.suite import SensorSuite
from fpvcar.video.camera import Camera, argv_of, firmware_encoder
from fpvcar.video.frame_rate import FrameRate
from fpvcar.video.picture import PictureSettings, with_picture
from fpvcar.video.stream import Stream
from fpvcar.wheels.client import WheelsClient
from fpvcar.wheels.pins_off_client import SOCKET, ask_helper
from fpvcar.wheels.rescue import Rescue
from fpvcar.wifi.api import NetworkApi
from fpvcar.wifi.client import NetworkClient
from fpvcar.wifi.radio import in_own_network
from fpvcar.wire.network import SOCKET as NETWORK

SWITCH_S = 0.001
"""Longest wait of a woken thread, or of the loop, for another thread to release the interpreter."""


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


class Cameras:
    """Cameras whose pictures people see, and their streams."""

    def __init__(self, settings: Settings, soc: Path | None, hot: Callable[[], bool]) -> None:
        profile, saver = settings.profile, settings.saver
        self.first = Camera(*argv_of(profile, soc), encoder=firmware_encoder(profile.camera))
        self.picture = PictureSettings(
            settings.written, saver.before.picture, soc, self.first, saver.put_picture
        )
        self.stream = Stream(self.first, profile.camera.bitrate)
        self.rate = FrameRate(self.stream, self.first, self.picture.within_limits, hot)
        self.second = None
        if profile.cameras:
            from fpvcar.video.second_camera import second_camera  # not above: most cars have none

            self.second = second_camera(profile, soc)
        self._blind_s = profile.gate.blind_s

    def picture_age_s(self, now_s: float) -> float | None:
        """Return the age of the picture for the gate."""
        age_s = self.first.age_s(now_s)
        if self.second is None:
            return age_s
        return self.second.picture_age_s(age_s, now_s, self._blind_s)


class Sensors:
    """Sensors of the car, each with its thread; `suite` has the values of all."""

    def __init__(self, settings: Settings, soc: Path | None, recordings: Path) -> None:
        profile, tuner = settings.profile, settings.tuner
        self.ranges, self.battery = Ranges(profile), BatterySensor(profile)
        self.computer = HealthThread(backends.open_computer(recordings))
        self.depth = DepthCamera(depth_camera.argv_of(profile.depth, soc), self.ranges.depth)
        unreadable = settings.saver.unreadable
        self.suite = SensorSuite(
            self.ranges, self.battery, self.computer, lambda: tuner.faults, unreadable
        )


class Driving:
    """Gate of the car, and its client of `wheels`."""

    def __init__(
        self, settings: Settings, cameras: Cameras, sensors: Sensors, feed: Feed, runtime: Path
    ) -> None:
        profile, saver, tuner = settings.profile, settings.saver, settings.tuner
        self.changed = asyncio.Event()
        rescue = Rescue(
            backends.rest_check(profile),
            call_helper=functools.partial(ask_helper, runtime / SOCKET),
        )
        self.wheels = WheelsClient(runtime / "wheels.sock", rescue)
        self.servo = CalibratedServo(settings.written, profile, self.wheels.send)
        self.control = Control(
            profile,
            self.servo.send,
            Inputs(
                cameras.picture_age_s,
                sensors.battery.volts,
                sensors.ranges.status,
                sensors.suite.weak,
                lambda: tuner.in_doubt,
            ),
            self.changed.set,
            saved=saver.before,
            save=saver.put,
            watcher=feed.step,
            read_answers=self.wheels.read_answers,
        )


class Car:
    """Parts of the car; all but its pages."""

    def __init__(self, profile: Profile, options: Options) -> None:
        self.settings = Settings(profile)
        profile = self.settings.profile
        self.recordings = paths.recordings_directory(profile.recording.directory)
        self.sensors = Sensors(self.settings, options.soc, self.recordings)
        self.cameras = Cameras(self.settings, options.soc, self.sensors.computer.hot)
        sources = Sources(
            ranges=self.sensors.ranges.status,
            measured=self.sensors.ranges.measured,
            battery=self.sensors.suite.battery,
            request_key=self.cameras.first.request_key,
            buttons=tuple(buttons_of(profile)),
        )
        car_recorder = CarRecorder(profile, self.recordings, sources)
        self.recorder, self.feed = car_recorder.recorder, car_recorder.feed
        folder = self.settings.folder
        self.codes, self.key = load_codes(folder), load_key(folder)
        name = self.settings.name
        self.panel = Panel(profile, self.feed.panel, code=self.codes.drive, car=lambda: name.text)
        self.driving = Driving(
            self.settings, self.cameras, self.sensors, self.feed, options.runtime
        )
        self.cameras.picture.changed = self.recorder.reframe
        self.settings.tuner.apply = apply_to(
            self.driving.control.tune,
            self.driving.servo.tune,
            self.sensors.ranges.tune,
            self.sensors.battery.tune,
            self.recorder.tune,
        )


class Pages:
    """Pages and interfaces of the car, and the site that serves them."""

    def __init__(self, car: Car, options: Options) -> None:
        settings, cameras, profile = car.settings, car.cameras, car.settings.profile
        intercom = None
        if profile.intercom.present:
            # Not above: other cars never load it.
            from fpvcar.intercom.socket import Intercom

            saver = settings.saver
            intercom = Intercom(profile.intercom, saver.before.intercom, saver.put_intercom)
        self.devices = Devices(car.key, car.codes, settings.folder / FILE)
        self.stations = Stations(car.key, car.codes, settings.folder / STATIONS)
        access = Access(CodeCheck(car.codes), self.devices, self.stations, car.key)
        address = endpoints.address(options.host, options.port, settings.folder, settings.car)
        vehicle = Vehicle(
            control=car.driving.control,
            lights=car.panel,
            camera=cameras.first,
            second=cameras.second,
            senses=car.sensors.suite,
            name=settings.name,
            recorder=car.feed,
            picture=cameras.picture,
            intercom=intercom,
        )
        self.hub = hub = Hub(
            profile=profile,
            vehicle=vehicle,
            access=access,
            changed=car.driving.changed,
            https_port=address.https_port,
        )
        if cameras.second is not None:
            cameras.second.is_large = lambda: hub.large() != ""
        self.metrics = Metrics(
            car=settings.car,
            control=car.driving.control,
            senses=car.sensors.suite,
            stream=cameras.stream,
            camera=cameras.first,
            hub=hub,
            recorder=car.feed,
            panel=car.panel,
            mode=cameras.picture.mode,
        )
        self.network = network = NetworkClient(
            options.runtime / NETWORK,
            lambda: any(in_own_network(page.address) for page in hub.sessions),
        )
        names = machine_names(options.runtime)
        places = connection_places(profile.server.max_connections, profile.server.max_per_address)
        server = Server(
            profile=profile,
            hub=hub,
            devices=self.devices,
            media=Media(cameras.stream, car.sensors.depth, cameras.picture, cameras.second),
            figures=self.metrics,
            connections=places,
            web_root=paths.WEB,
            panel=car.panel,
            intercom=intercom,
            apis=_apis(car, access, self.stations, network, address, options),
            hosts=lambda: (*names, *network.hosts()),
        )
        self.site = Site(
            server.application,
            places=places,
            address=address,
            listening=functools.partial(_greet, profile, options),
        )


def _apis(
    car: Car,
    access: Access,
    stations: Stations,
    network: NetworkClient,
    address: Address,
    options: Options,
) -> tuple[Api, ...]:
    settings, control = car.settings, car.driving.control
    rights = DeviceRights(access.codes, access.devices)
    recordings = RecordingsApi(
        functools.partial(files_in, car.recordings),
        context=ListContext(settings.car, seat=True, shown=lambda: settings.name.text),
        rights=rights,
        driven=control.driven,
        folder=car.recordings,
    )
    certificate = settings.folder / certificates.CERTIFICATE
    station = StationApi(
        car=settings.car,
        folder=car.recordings,
        stations=stations,
        codes=access.codes,
        downloads=recordings.downloads,
        driven=control.driven,
        certificate=certificates.fingerprint(certificate.read_bytes()) if address.tls else "",
    )
    calibration = CalibrationApi(
        tuner=settings.tuner,
        control=control,
        senses=car.sensors.suite,
        rights=rights,
        file=settings.calibration,
        profile=options.profile,
    )
    return (
        recordings,
        station,
        NetworkApi(network, rights, control.driven),
        DoctorApi(options.doctor, rights, moves=lambda: any(control.duties)),
        calibration,
        InvitationsApi(access.devices, rights, address),
        TrustApi(paths.WEB, settings.folder, address, settings.car),
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
        threaded("panel", car.panel, car.panel.run),
        threaded("ranges", sensors.ranges),
        threaded("battery", sensors.battery),
        threaded("computer", sensors.computer),
        Part("control", (functools.partial(service.by_timer, control.tick, control.timed),)),
        Part(
            "wheels",
            (
                functools.partial(
                    wheels.run, control.wheels_answer, control.wheels_state, control.wheels_fault
                ),
            ),
        ),
        Part(
            "camera",
            (
                functools.partial(
                    cameras.first.film,
                    cameras.stream.publish,
                    feed.picture,  # after publish, so that viewers do not wait for the recorder
                    cameras.rate.take,
                    watched=lambda: bool(cameras.stream.viewers) or control.driven(),
                ),
            ),
        ),
        *(() if cameras.second is None else (Part("second camera", (cameras.second.run,)),)),
        Part("depth camera", (sensors.depth.run,)),
        Part("hub", (pages.hub.run, pages.devices.run, pages.stations.run)),
        Part("network", (pages.network.run,)),
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
        print(greeting(options.host, options.port, car, recordings), flush=True)


async def run(profile: Profile, options: Options) -> int:
    """Run the car until SIGTERM or SIGINT, or until a part of it ends."""
    built = build(profile, options)
    sys.setswitchinterval(SWITCH_S)
    gc_policy.hold_back()
    return await service.run(built)

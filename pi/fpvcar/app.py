"""Wiring only: build every part of `run`, pass each its collaborators, and list them.

If two parts need each other, the source of events receives its listeners as arguments of its run
method: camera, wheels client and recorder's feed.
"""

import asyncio
import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from fpvcar.buttons.panel import Panel, buttons_of
from fpvcar.calibration import store
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.drive.control import Control, Inputs
from fpvcar.drive.saved import DisplayName, Saver, ships
from fpvcar.drive.servo_correction import CalibratedServo
from fpvcar.recorder.feed import Sources
from fpvcar.recorder.setup import CarRecorder
from fpvcar.recordings.library.recording_index import files_in
from fpvcar.runtime import gc_policy, paths, service, watchdog
from fpvcar.runtime.service import Part, threaded
from fpvcar.sensors import depth_camera
from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.depth_camera import DepthCamera
from fpvcar.sensors.ranges import Ranges
from fpvcar.sensors.suite import SensorSuite
from fpvcar.server.api.calibration_api import CalibrationApi, apply_to
from fpvcar.server.api.doctor_api import DoctorApi
from fpvcar.server.api.invitations_api import InvitationsApi
from fpvcar.server.api.metrics import Metrics
from fpvcar.server.api.network_api import NetworkApi
from fpvcar.server.api.recordings_api import ListContext, RecordingsApi
from fpvcar.server.api.recordings_rights import DeviceRights
from fpvcar.server.api.station_api import StationApi
from fpvcar.server.api.trust_api import TrustApi
from fpvcar.server.auth import credentials
from fpvcar.server.auth.access import CodeCheck, machine_names
from fpvcar.server.auth.authorization import Access
from fpvcar.server.auth.remembered_browsers import FILE, Devices
from fpvcar.server.auth.stations import FILE as STATIONS
from fpvcar.server.auth.stations import Stations
from fpvcar.server.http import endpoints
from fpvcar.server.http.banner import greeting
from fpvcar.server.http.endpoints import Site
from fpvcar.server.http.limits import connection_places
from fpvcar.server.hub import Hub
from fpvcar.server.routes import Media, Server
from fpvcar.server.vehicle import Vehicle
from fpvcar.video.camera import Camera, argv_of, firmware_encoder
from fpvcar.video.picture import PictureSettings, with_picture
from fpvcar.video.stream import Stream
from fpvcar.wheels.client import WheelsClient
from fpvcar.wheels.pins_off_client import SOCKET, ask_helper
from fpvcar.wheels.rescue import Rescue
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


def build(profile: Profile, options: Options) -> tuple[Part, ...]:
    """Build all parts of `run`, in the order of their dependencies.

    They start in the order of the list and stop in reverse order.
    """
    backends.load(profile)
    state, car = paths.state_directory(), profile.car.name
    directory = paths.recordings_directory(profile.recording.directory)

    saver, changed = Saver(state), asyncio.Event()
    name = DisplayName(car, saver.before.car, saver.put_name, ships(car))
    own, profile = profile, with_picture(profile, saver.before.picture)
    tuner = Calibrator(profile, store.load(state / store.FILE, profile.motors.names))
    profile = tuner.profile
    camera = Camera(*argv_of(profile, options.soc), encoder=firmware_encoder(profile.camera))
    picture = PictureSettings(own, saver.before.picture, options.soc, camera, saver.put_picture)
    stream = Stream(camera, profile.camera.bitrate)
    second = None
    if profile.cameras:
        from fpvcar.video.second_camera import second_camera  # not above: most cars have none

        second = second_camera(profile, options.soc)
    ranges, battery = Ranges(profile), BatterySensor(profile)
    computer = HealthThread(backends.open_computer(directory))
    depth = DepthCamera(depth_camera.argv_of(profile.depth, options.soc), ranges.depth)
    senses = SensorSuite(ranges, battery, computer, lambda: tuner.faults)
    sources = Sources(
        ranges=ranges.status,
        measured=ranges.measured,
        battery=senses.battery,
        request_key=camera.request_key,
        buttons=tuple(buttons_of(profile)),
    )
    car_recorder = CarRecorder(profile, directory, sources)
    recorder, feed = car_recorder.recorder, car_recorder.feed
    codes, key = credentials.load_codes(state), credentials.load_key(state)
    panel = Panel(profile, feed.panel, code=codes.drive, car=lambda: name.text)

    def picture_age_s(now_s: float) -> float | None:
        age_s = camera.age_s(now_s)
        if second is None:
            return age_s
        return second.picture_age_s(age_s, now_s, profile.gate.blind_s)

    rescue = Rescue(
        backends.rest_check(profile),
        call_helper=functools.partial(ask_helper, options.runtime / SOCKET),
    )
    wheels = WheelsClient(options.runtime / "wheels.sock", rescue)
    servo = CalibratedServo(own, profile, wheels.send)
    control = Control(
        profile,
        servo.send,
        Inputs(picture_age_s, battery.volts, ranges.status, senses.weak, lambda: tuner.in_doubt),
        changed.set,
        saved=saver.before,
        save=saver.put,
        watcher=feed.step,
        read_answers=wheels.read_answers,
    )

    intercom = None
    if profile.intercom.present:
        # Not above: other cars never load it.
        from fpvcar.server.sockets.intercom_socket import Intercom

        intercom = Intercom(profile.intercom, saver.before.intercom, saver.put_intercom)
    check, devices = CodeCheck(codes), Devices(key, codes, state / FILE)
    stations = Stations(key, codes, state / STATIONS)
    address = endpoints.address(options.host, options.port, state, car)
    certificate = state / credentials.CERTIFICATE
    hub = Hub(
        profile=profile,
        vehicle=Vehicle(
            control=control,
            lights=panel,
            camera=camera,
            second=second,
            senses=senses,
            name=name,
            recorder=feed,
            picture=picture,
            intercom=intercom,
        ),
        access=Access(codes=check, devices=devices, stations=stations, key=key),
        changed=changed,
        https_port=address.https_port,
    )
    if second is not None:
        second.is_large = lambda: hub.large() != ""
    metrics = Metrics(
        car=car,
        control=control,
        senses=senses,
        stream=stream,
        camera=camera,
        hub=hub,
        recorder=feed,
        panel=panel,
    )
    rights = DeviceRights(check, devices)
    recordings = RecordingsApi(
        functools.partial(files_in, directory),
        context=ListContext(car, seat=True, shown=lambda: name.text),
        rights=rights,
        driven=control.driven,
        folder=directory,
    )
    station = StationApi(
        car=car,
        folder=directory,
        stations=stations,
        codes=check,
        downloads=recordings.downloads,
        driven=control.driven,
        certificate=credentials.fingerprint(certificate.read_bytes()) if address.tls else "",
    )
    picture.changed = recorder.reframe
    tuner.apply = apply_to(control.tune, servo.tune, ranges.tune, battery.tune, recorder.tune)
    calibration = CalibrationApi(
        tuner=tuner,
        control=control,
        senses=senses,
        rights=rights,
        file=state / store.FILE,
        profile=options.profile,
    )
    network = NetworkClient(
        options.runtime / NETWORK,
        lambda: any(in_own_network(page.address) for page in hub.sessions),
    )
    names = machine_names(options.runtime)
    connections = connection_places(profile.server.max_connections, profile.server.max_per_address)
    server = Server(
        profile=profile,
        hub=hub,
        devices=devices,
        media=Media(stream=stream, depth=depth, settings=picture, second=second),
        figures=metrics,
        connections=connections,
        web_root=paths.WEB,
        panel=panel,
        intercom=intercom,
        apis=(
            recordings,
            station,
            NetworkApi(network, rights, control.driven),
            DoctorApi(options.doctor, rights, moves=lambda: any(control.duties)),
            calibration,
            InvitationsApi(devices, rights, address),
            TrustApi(paths.WEB, state, address, car),
        ),
        hosts=lambda: (*names, *network.hosts()),
    )
    site = Site(
        server.application,
        places=connections,
        address=address,
        listening=functools.partial(_greet, profile, options),
    )
    return (
        Part(
            name="recorder",
            loops=(functools.partial(feed.run, metrics.health),),
            start=recorder.start,
            stop=feed.stop,
        ),
        threaded("saved settings", saver),
        threaded("panel", panel, panel.run),
        threaded("ranges", ranges),
        threaded("battery", battery),
        threaded("computer", computer),
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
                    camera.film,
                    stream.publish,
                    feed.picture,  # after publish, so that viewers do not wait for the recorder
                    watched=lambda: bool(stream.viewers) or control.driven(),
                ),
            ),
        ),
        *(() if second is None else (Part("second camera", (second.run,)),)),
        Part("depth camera", (depth.run,)),
        Part("hub", (hub.run, devices.run, stations.run)),
        Part("network", (network.run,)),
        Part("site", (site.run,)),
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

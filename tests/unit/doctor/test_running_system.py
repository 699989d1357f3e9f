"""Doctor's checks of a running machine: an emulated pin daemon, real processes."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from testkit.cameras.video_source import encode
from testkit.harness import PinWatch
from testkit.pins.wheels import BENCH, Chip, Client, Rig

from fpvbench.world.bridge import Wiring
from fpvcar.config import Camera, Profile, profiles
from fpvcar.devices import sensor_modes
from fpvcar.doctor.facts import DeadManTest, MotorTest, Running
from fpvcar.doctor.report import Unasked, Works
from fpvcar.doctor.running_system import RunningSystem
from fpvcar.video import h264
from fpvcar.wire.camera import pack_record
from tests.unit.wheels.test_hat import HAT

HAT_CHIP = "--i2c=1:0x60:pca9685"
FAKE = str(Path(__file__).parents[3] / "testkit" / "cameras" / "fake_camera.py")
SOON_S = 0.15
"""The dead man's time-out is 0.2 s; a loaded machine has no limit."""


def overrides(chip: Chip) -> list[str]:
    return [f"pins.port = {chip.port}", 'i2c.backend = "pigpio"']


def live(chip: Chip, profile: Path) -> RunningSystem:
    words = [f"--profile={profile}", *(f"--set={one}" for one in overrides(chip))]
    return RunningSystem(words, [chip.runtime], 1)


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    with Chip(tmp_path, HAT_CHIP) as chip:
        yield chip


def on(chip: Chip, profile: Path = BENCH) -> Profile:
    return profiles.load(profile, overrides(chip))


def tripped(trip: DeadManTest | Unasked, whole: bool) -> None:
    assert isinstance(trip, DeadManTest) and trip.whole is whole and trip.fault == ""
    assert trip.after_s is not None and trip.after_s > SOON_S


def test_dead_man_trips_and_no_pin_ever_drives(chip: Chip) -> None:
    pins = on(chip).motor_pins()
    (chip.runtime / "wheels.lock").touch()  # a `wheels` ran here once
    with PinWatch(chip.soc, pins) as watch:
        tripped(live(chip, BENCH).trip(), whole=True)
    assert {sample.duties for sample in watch.samples} == {(0.0,) * len(pins)}


def test_guardian_of_a_hat_stops_the_motors_on_silence(chip: Chip) -> None:
    (chip.runtime / "wheels.lock").touch()
    tripped(live(chip, HAT).trip(), whole=True)
    drive, steer, *_ = Wiring(on(chip, HAT).motors, None).bridges(chip.soc)
    assert not drive.drive and not steer.drive


def test_trip_does_not_touch_a_running_wheels(tmp_path: Path) -> None:
    with Rig(tmp_path) as rig:
        client = Client(rig.runtime)
        client.send(0.0)
        tripped(live(rig, BENCH).trip(), whole=False)
        answer = client.send(0.0)
        assert answer is not None and client.why is None
        client.close()


def test_trip_does_not_touch_a_wheels_with_its_lock_elsewhere(tmp_path: Path) -> None:
    """The lock of the bench, for example, when `fpvcar doctor` is typed beside it."""
    with Rig(tmp_path) as rig:
        client, nobodys = Client(rig.runtime), tmp_path / "nobodys"
        nobodys.mkdir()
        client.send(0.0)
        words = [f"--profile={BENCH}", *(f"--set={one}" for one in overrides(rig))]
        for _ in range(2):  # the first leaves no lock that looks like a car's
            tripped(RunningSystem(words, [nobodys], 1).trip(), whole=False)
        answer = client.send(0.0)
        assert answer is not None and client.why is None
        client.close()


def test_trip_does_not_take_the_lock_of_another_process(chip: Chip, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Rig(other) as rig:
        Client(rig.runtime).close()
        words = [f"--profile={BENCH}", f"--set=pins.port = {chip.port}"]
        tripped(RunningSystem(words, [chip.runtime, other], 1).trip(), whole=False)


def test_hanging_pin_daemon_is_reported(chip: Chip) -> None:
    chip.stop_pigpiod()
    trip = live(chip, BENCH).trip()
    assert isinstance(trip, DeadManTest) and trip.after_s is None and trip.fault
    assert "does not answer" in str(live(chip, BENCH).pins(on(chip)))
    chip.continue_pigpiod()
    assert live(chip, BENCH).pins(on(chip)) == Works()


def test_hanging_trip_is_ended(chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpvcar.doctor.running_system.TRIP_S", 0.0)
    trip = live(chip, BENCH).trip()
    assert isinstance(trip, DeadManTest) and trip.after_s is None
    assert trip.fault == "no answer within 0 s"


def test_motors_turn_both_ways_on_request(chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpvcar.doctor.running_system.TURN_S", 0.3)
    profile = on(chip)
    with PinWatch(chip.soc, profile.motor_pins()) as watch:
        turned = live(chip, BENCH).turn(profile)
    assert turned == (MotorTest("drive", Works()), MotorTest("steer", Works()))
    driven = {
        pin
        for sample in watch.samples
        for pin, duty in enumerate(sample.duties)
        if 0.0 < duty < 1.0 and sample.driving
    }
    assert driven == {0, 1, 2, 3} and not watch.now.driving


def test_motors_in_use_are_not_turned(tmp_path: Path) -> None:
    with Rig(tmp_path) as rig:
        Client(rig.runtime).close()
        turned = live(rig, BENCH).turn(rig.profile)
    assert isinstance(turned, Unasked) and "stop fpvcar-wheels" in turned.why


def test_i2c_scan_finds_only_the_present_device(chip: Chip) -> None:
    places = {(1, 0x60), (1, 0x40)}
    found = live(chip, HAT).answering(on(chip, HAT), places)
    assert found == frozenset({(1, 0x60)})


def test_camera_check_passes_only_with_a_picture(tmp_path: Path) -> None:
    units = encode(frames=10, slices=4)
    film = tmp_path / "film"
    film.write_bytes(b"".join(pack_record(h264.is_key(u), 0, u) for u in units))
    argv = [sys.executable, "-I", "-S", FAKE, str(film), "plain"]
    profile = profiles.load(BENCH, [f"camera.command = {argv}".replace("'", '"')])
    asked = RunningSystem([], [tmp_path], 1)
    assert asked.camera(profile) == Works()
    broken = profiles.load(BENCH, ['camera.command = ["false"]'])
    assert "ended with status 1" in str(asked.camera(broken))


class Status(BaseHTTPRequestHandler):
    """Car that answers with its state."""

    status: ClassVar[dict[str, object]] = {}

    def do_GET(self) -> None:
        body = b"ok\n" if self.path == "/healthz" else msgspec.json.encode(self.status)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_running_car_reports_the_mode_of_its_sensor(tmp_path: Path) -> None:
    mode = sensor_modes.report("imx708", Camera(fps=60))
    with HTTPServer(("127.0.0.1", 0), Status) as car:
        threading.Thread(target=car.serve_forever, daemon=True).start()
        asked = RunningSystem([], [tmp_path], car.server_port)
        Status.status = {"version": "1", "camera": "ok"}
        assert asked.running() == Running("1", "ok"), "an earlier version"
        Status.status["mode"] = mode
        assert asked.running() == Running("1", "ok", (), mode)
        car.shutdown()


def test_bench_camera_or_no_camera_is_not_checked(tmp_path: Path) -> None:
    asked = RunningSystem([], [tmp_path], 1)
    assert isinstance(asked.camera(profiles.load(BENCH)), Unasked)
    none = ['camera.source = "none"', 'gate.blind = "ignore"']
    assert isinstance(asked.camera(profiles.load(BENCH, none)), Unasked)


def test_card_speed_check_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = RunningSystem([], [tmp_path], 1)
    speed = asked.speed(tmp_path)
    assert not isinstance(speed, Unasked) and speed.mb_per_s > 0.0 < speed.longest_s
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("fpvcar.doctor.running_system.LEAST_FREE_B", 1 << 62)
    assert isinstance(asked.speed(tmp_path), Unasked)
    assert isinstance(asked.speed(tmp_path / "gone"), Unasked)


def test_missing_or_failing_program_gives_unasked(tmp_path: Path) -> None:
    asked = RunningSystem([], [tmp_path], 1)
    assert asked.command("echo", "so") == "so\n"
    assert asked.command("no-such-program") == Unasked("no-such-program is not installed")
    failed = asked.command("sh", "-c", "echo why >&2; exit 3")
    assert failed == Unasked("sh: why")


def test_closed_port_is_not_reported_as_running(tmp_path: Path) -> None:
    assert not isinstance(RunningSystem([], [tmp_path], 1).running(), Running)

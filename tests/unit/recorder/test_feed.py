"""Events of the car's parts become messages; recording does not disturb them."""

import asyncio
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from msgspec.structs import replace
from testkit.recorder.fed_car import Car
from testkit.recorder.recording import DELTA, KEY, PROFILE

from fpvcar.buttons.panel import Panel
from fpvcar.drive import gate
from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.recorder.encoder import Message
from fpvcar.recorder.feed import AGAIN_S, RANGES_S, STILL_S, Feed
from fpvcar.recordings import codec, messages
from fpvcar.runtime.texts import Text
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire import buttons, telemetry
from fpvcar.wire.buttons import View

SILENT = Text("silent", "silent")


@pytest.fixture
def car() -> Car:
    return Car()


def test_step_is_recorded_unchanged(car: Car) -> None:
    stepped = car.step()
    (one,) = car.said(messages.STEP)
    assert one.wished() == stepped.wish and one.world() == stepped.world
    assert one.now_ns == stepped.now_ns and one.duties == stepped.duties
    assert one.decision() == (0.5, 0.0, "driving", Latches(None))
    assert one.volts == 7.4 and one.guard_mode == "off"


def test_stops_and_their_reasons_are_events(car: Car) -> None:
    car.step()
    car.step()
    car.step(0.0, "stopped", Latches(Cause.SILENCE))
    car.step(0.0, "stopped", Latches(None, Hold(Cause.ESTOP, "Ann")))
    car.step(0.0, "neutral", Latches(None))
    assert car.events() == [
        ("driving", messages.INFO, messages.GATE),
        ("stopped: silence", messages.WARNING, messages.GATE),
        ("stopped: estop Ann", messages.WARNING, messages.GATE),
        ("neutral", messages.INFO, messages.GATE),
    ]


@pytest.mark.parametrize("reason", get_args(gate.Reason))
def test_stop_level_does_not_depend_on_the_driver(reason: gate.Reason, car: Car) -> None:
    car.step(0.0, reason, Latches(None, Hold(Cause.WHEELS_LOST, "closed")))
    words = "stopped: wheels_lost closed"
    assert car.events() == [(words, messages.WARNING, messages.GATE)]


def test_stop_is_noted_once_when_its_driver_leaves() -> None:
    car, held = Car(), Latches(None, Hold(Cause.ESTOP, "Ann"))
    car.step(0.0, "stopped", held)
    car.step(0.0, "nobody", replace(held, arm=Cause.HANDOVER))
    assert [text for text, _, _ in car.events()] == ["stopped: estop Ann"]


def test_car_that_waits_for_its_driver_is_no_warning(car: Car) -> None:
    car.step(0.0, "stopped", Latches(Cause.HANDOVER))
    assert car.events() == [("stopped", messages.INFO, messages.GATE)]


def test_lost_part_is_noted_without_a_driver(car: Car) -> None:
    for camera, wheels, board in (
        ("starting", "starting", "ok"),
        ("ok", "ok", "ok"),
        ("lost: exited", "ok", "ok"),
        ("lost: exited", "closed", "ok"),
        ("ok", "ok", "no pigpiod"),
        ("none", "ok", "ok"),
    ):
        health = messages.Health(camera, wheels, board, 0)
        car.feed._second(lambda health=health: health)  # type: ignore[misc]
    assert car.events() == [
        ("camera: lost: exited", messages.WARNING, "camera"),
        ("wheels: closed", messages.WARNING, "wheels"),
        ("camera: ok", messages.INFO, "camera"),
        ("wheels: ok", messages.INFO, "wheels"),
        ("pins: no pigpiod", messages.WARNING, "pins"),
        ("pins: ok", messages.INFO, "pins"),
    ]


def test_lost_part_is_noted_in_each_recording(car: Car) -> None:
    health = messages.Health("ok", "closed", "ok", 0)
    car.feed._second(lambda: health)
    car.feed.switch(False, "Mum")
    car.feed.switch(True, "Mum")
    for _ in range(2):
        car.feed._second(lambda: health)
    noted = [text for text, _, _ in car.events()]
    assert noted.count("wheels: closed") == 2


def test_guarded_driving_makes_no_events(car: Car) -> None:
    for _ in range(10):
        car.step(0.5, "driving")
        car.step(0.1, "guarded")
    assert len(car.said(messages.EVENT)) == 1
    car.step(0.0, "stopped", Latches(Cause.SILENCE))
    car.step(0.1, "guarded")
    assert len(car.said(messages.EVENT)) == 3


def test_driver_is_repeated_in_all_files_of_a_drive(car: Car) -> None:
    car.feed.turn("Ann", "Ann took the wheel")
    for _ in range(21):
        car.second()
    assert car.said(messages.DRIVER) == [messages.Turn("Ann", "Ann took the wheel")] * 3
    assert len(car.said(messages.EVENT)) == 1, "it happened once"


def test_range_measurement_is_recorded_once(car: Car) -> None:
    """Recorded once even if the gate runs rarely; a sensor's fault is recorded once, too."""
    car.measure(0.6)  # before this recording began
    car.step()
    car.measure(0.5)
    car.step(seconds=2 * RANGES_S)
    car.step()
    car.measure(0.4, 0.02)
    car.measure(None)
    car.step()
    car.ranges = (telemetry.Range("front", 0.0, None, 0.03, SILENT),)
    car.step()
    car.step()
    assert car.said("/range/front") == [
        messages.Reading(0.0, 0.5),
        messages.Reading(0.0, 0.4),
        messages.Reading(0.0, None),
        messages.Reading(0.0, None, "silent"),
    ]
    began_ns = car.rig.recorder.began_ns + car.rig.recorder.offset_ns
    times = [
        (one.log_ns - began_ns, one.publish_ns - one.log_ns)
        for one in car.rig.messages()
        if one.topic == "/range/front"
    ]
    assert times == [(10e6, 0), (420e6, 0), (430e6, 0), (480e6, 0)]


@pytest.mark.parametrize(
    "end", [lambda feed: feed.switch(False, "Ann"), Feed.stop], ids=["off", "stop"]
)
def test_last_measurement_is_recorded_at_off_and_stop(
    end: Callable[[Feed], None], car: Car
) -> None:
    car.step()
    car.measure(0.5)
    end(car.feed)
    car.rig.thread.turn()
    (reading,) = [one for one in car.rig.messages() if one.topic == "/range/front"]
    assert codec.decode(reading.topic, reading.data) == messages.Reading(0.0, 0.5)


def test_sensor_that_fails_again_is_recorded_again() -> None:
    car, silent = Car(), (telemetry.Range("front", 0.0, None, 0.5, SILENT),)
    for _ in range(2):
        car.ranges = silent
        car.step()
        car.measure(0.5)
        car.step(seconds=2 * RANGES_S)
    states = [one.state for one in car.said("/range/front")]
    assert states == ["silent", "ok", "silent", "ok"]


def test_battery_is_recorded_once_per_measurement(car: Car) -> None:
    car.step()
    car.battery = telemetry.Battery(None, None, None, False, None, SILENT)
    car.step()
    car.step()
    car.battery = telemetry.Battery(7.4, 1.0, 0.5, False, 0.01)
    car.step()
    car.battery = telemetry.Battery(7.4, 1.0, 0.5, False, 0.03)
    car.step()
    assert len(car.said(messages.BATTERY)) == 2


def test_servos_are_recorded_and_repeated_in_a_new_file(car: Car) -> None:
    car.feed.servos({"pan": 12.345, "tilt": -3.0})
    for _ in range(AGAIN_S + 1):
        car.rig.wait(1.0)
        car.second()
    assert car.said("/servo/pan") == [messages.Servo(12.35)] * 2
    assert car.said("/servo/tilt") == [messages.Servo(-3.0)] * 2


def test_buttons_and_lights_are_recorded_when_they_change() -> None:
    car, dark = Car(), (False, False, False, False)
    car.feed.panel(View(), dark)
    car.feed.panel(View(), dark)
    car.feed.panel(View(0b101, "turn", 3, 1, 7), (True, False, False, True))
    car.feed.panel(View(0b101, "turn", 3, 1, 7), (True, False, False, False))
    assert car.said(messages.BUTTONS) == [
        messages.Buttons(),
        messages.Buttons(("red", "blue"), "turn", 3, 1, 7),
    ]
    assert car.said(messages.LIGHTS) == [
        messages.Lights(False),
        messages.Lights(True, right=True),
        messages.Lights(True),
    ]


def test_panel_changes_reach_the_feed(car: Car) -> None:
    panel = Panel(PROFILE, car.feed.panel, lambda: 5.0)
    page = SimpleNamespace(source="page", send_newest=lambda text: None)
    panel.join(page)
    panel.receive(page, buttons.Hold(0b10))
    panel.set_head(True)
    panel.step()
    last = car.said(messages.BUTTONS)[-1]
    assert last.lit == ("green",)
    assert car.said(messages.LIGHTS)[-1] == messages.Lights(True)


def test_new_recording_repeats_the_current_state(car: Car) -> None:
    car.feed.turn("Ann", "Ann took the wheel")
    car.feed.panel(View(1), (True, False, False, False))
    car.step()
    car.rig.thread.turn()
    car.feed.switch(False, "Ann")
    car.rig.wait(5.0)
    car.feed.switch(True, "Ann")
    car.step()
    car.rig.thread.turn()
    last = max(car.rig.disk.names)
    again = car.rig.disk.recording(last)
    said: dict[str, Any] = {
        one.topic: codec.decode(one.topic, one.data) for one in again.messages()
    }
    assert said[messages.DRIVER] == messages.Turn("Ann", "Ann took the wheel")
    assert said[messages.BUTTONS] == messages.Buttons(("red",))
    assert said[messages.LIGHTS] == messages.Lights(True)
    assert isinstance(said[messages.STEP], messages.Step)
    event = said[messages.EVENT]
    assert event.text == "driving"
    car.rig.utc_ns += 3600 * 10**9  # the clock is set
    keys = car.keys
    car.second()
    assert car.keys == keys + 1, "the next recording begins with a whole picture"
    car.rig.thread.turn()
    assert [one for one in car.said(messages.DRIVER)] == [said[messages.DRIVER]] * 4


def test_idle_recorder_reads_and_queues_no_data() -> None:
    car = Car(on=False, minute=False)
    looked: list[float] = []
    battery: Any = SimpleNamespace(status=looked.append)
    car.feed._sources = car.feed._sources._replace(battery=battery)
    car.step()
    car.feed.mark("here", "Ann")
    assert looked == [] and not car.rig.handover.waiting_bytes


def test_pictures_and_health_are_recorded(car: Car) -> None:
    now_us = car.rig.now_ns // 1000
    car.feed.picture(AccessUnit(True, now_us, KEY))
    car.feed.picture(AccessUnit(False, now_us + 33_000, DELTA))
    car.second()
    shots = car.said(messages.CAMERA)
    assert [one.unit for one in shots] == [KEY, DELTA]
    assert car.said(messages.HEALTH) == [messages.Health("ok", "ok", "ok", 1)]


def test_file_ends_at_a_key_frame_soon_after_a_drive() -> None:
    """A station takes closed files: its page has a drive within a minute."""
    car = Car(segment_s=60.0)
    car.feed.picture(AccessUnit(True, car.rig.now_ns // 1000, KEY))
    car.step(0.0, "neutral", seconds=STILL_S + 1.0)
    assert car.keys == 0, "nobody drove yet"
    car.step(0.5)
    car.step(0.0, "neutral", seconds=STILL_S - 0.1)
    assert car.keys == 0, "it may go on"
    car.step(0.0, "neutral", seconds=0.2)
    car.step(0.0, "neutral", seconds=1.0)
    assert car.keys == 1, "once, at the next whole picture"
    car.feed.picture(AccessUnit(True, car.rig.now_ns // 1000, KEY))
    car.rig.thread.turn()
    files = [one for one in car.rig.disk.names if one.endswith((".mcap", ".part"))]
    assert [one.rpartition(".")[2] for one in files] == ["mcap", "part"]


def test_switch_keep_and_mark_are_recorded_with_the_name(car: Car) -> None:
    car.step()
    car.feed.mark("here", "Ann")
    car.feed.mark("", "Ann")
    car.feed.keep("Ann")
    car.rig.thread.turn()
    assert car.feed.status().kept == 1
    assert car.keys == 1, "what is kept ends with a whole picture"
    car.feed.switch(False, "Ann")
    car.step()
    assert car.keys == 2 and not car.feed.status().on
    assert [(text, name) for text, _, name in car.events()[1:3]] == [
        ("Ann keeps the last minute", messages.RECORDER),
        ("Ann turned recording off", messages.RECORDER),
    ]
    assert [(one.text, one.name) for one in car.said(messages.MARK)] == [
        ("Ann: here", "Ann"),
        ("Ann", "Ann"),
    ]


def test_feed_fault_is_logged_once_and_not_raised(
    caplog: pytest.LogCaptureFixture, car: Car
) -> None:

    def broken(topic: str, message: Message, at_ns: int | None = None) -> None:
        raise RuntimeError("a bug")

    car.rig.recorder.put = broken  # type: ignore[method-assign]
    for _ in range(3):
        car.step()
        car.feed.turn("Ann", "Ann took the wheel")
    assert caplog.text.count("not recorded: step") == 1
    assert car.feed.broken == {"step", "turn"}


def test_recorders_second_runs_despite_a_health_fault(car: Car) -> None:

    def broken() -> messages.Health:
        raise RuntimeError("a bug")

    for _ in range(2):
        car.rig.utc_ns += 3600 * 10**9
        car.feed._second(broken)
    assert car.rig.recorder.begun == 3 and car.feed.broken == {"_second"}


async def test_feed_run_records_health() -> None:
    car, health = Car(), messages.Health("ok", "ok", "ok", 1)
    running = asyncio.create_task(car.feed.run(lambda: health))
    await asyncio.sleep(0)
    running.cancel()
    assert car.said(messages.HEALTH) == [health]


def test_health_holds_figures_and_fault_words() -> None:
    computer = telemetry.Health((Text("hot", "hot"),), 81.5, None, -60.0, uptime_s=5.0)
    assert messages.health_of("ok", "ok", "lost", 2, computer) == messages.Health(
        "ok", "ok", "lost", 2, {"celsius": 81.5, "wifi_dbm": -60.0, "uptime_s": 5.0}, ("hot",)
    )


def test_points_begin_at_the_place_of_the_sensor(car: Car) -> None:
    car.measure(2.0, ago_s=0.0)
    car.step(seconds=2 * RANGES_S)
    (points,) = car.said(messages.POINTS + "front")
    assert points.points[2] == pytest.approx((2.1, 0.0, 0.05))


def test_figures_are_plotted_ten_times_a_second(car: Car) -> None:
    car.ranges = (telemetry.Range("front", 0.0, None, None),)
    for _ in range(50):
        stepped = car.step(seconds=0.02)
    plots = car.said(messages.PLOT)
    assert len(plots) == pytest.approx(10, abs=1)
    assert plots[0].names == (
        "throttle",
        "steer",
        "duty_1",
        "duty_2",
        "picture_age_s",
        "battery_v",
        "front_m",
    )
    assert plots[0].values[:-1] == (0.5, 0.0, 0.5, 0.0, 0.01, 7.4)
    assert math.isnan(plots[0].values[-1]), "no target in front"
    times = [one.time_ns for one in plots]
    assert times == sorted(times)
    assert 0 <= stepped.now_ns + car.rig.recorder.offset_ns - times[-1] < 120_000_000

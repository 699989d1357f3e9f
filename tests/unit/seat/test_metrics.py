"""Routes /metrics and /healthz: Prometheus' own parser reads the figures; reasons are sentences."""

import json
from typing import Any, get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families
from testkit.car import Car

from fpvcar.drive.gate import Cause, Reason
from fpvcar.http.prometheus_text import CONTENT_TYPE
from fpvcar.runtime.texts import VERBATIM, Text
from fpvcar.seat.feature import Feature
from fpvcar.seat.metrics import Metrics
from fpvcar.video.faults import SOFTWARE
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire import telemetry, up
from fpvcar.wire.wheels import Answer, Status, WheelsReason

READ_ONLY = Text("os_erofs", "Read-only file system")
UNHEARD = Text("battery_silent", "nobody acknowledges")
SENSOR_SILENT = Text("sensor_silent", "does not answer")


class Measured(Car):
    """Car whose figures are read."""

    def __init__(self) -> None:
        super().__init__()
        self.board = "ok"
        front = telemetry.Range("front", 0.0, 0.5, 0.02)
        self.senses.seen = (front, telemetry.Range("rear", 180.0, None, 0.03))
        buttons = Feature(
            name="buttons",
            status=lambda: {"board": self.board},
            faults=lambda: () if self.board == "ok" else (f"pins: {self.board}",),
        )
        self.camera.restarts = 2
        self.metrics = Metrics(self.vehicle, self.hub, (buttons,), lambda: self.now_s)

    def read(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Return Prometheus' view of the figures: by name and labels."""
        found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for family in text_string_to_metric_families(self.metrics.text()):
            assert family.documentation and family.type in ("gauge", "counter")
            for sample in family.samples:
                labels = tuple(sorted(sample.labels.items()))
                found.setdefault(sample.name, {})[labels] = sample.value
        return found


def one(found: dict[str, dict[Any, float]], name: str, **labels: str) -> float:
    return found[f"fpvcar_{name}"][tuple(sorted(labels.items()))]


@pytest.fixture
def car() -> Measured:
    return Measured()


def test_metrics_give_the_figures_of_a_driving_car(car: Measured) -> None:
    ann = car.visitor("Ann")
    ann.drive_off()
    ann.say(up.Report("webcodecs", 12.5, 4.0))
    found = car.read()
    assert one(found, "range_age_seconds", sensor="front") == 0.02
    assert one(found, "range_meters", sensor="front") == 0.5
    assert found["fpvcar_range_meters"].keys() == {(("sensor", "front"),)}
    assert one(found, "range_up", sensor="rear") == 1
    assert one(found, "readings_total", sensor="front") == 31
    assert one(found, "battery_volts") == 7.4
    assert one(found, "gate_reason", reason="driving") == 1
    assert one(found, "gate_reasons_total", reason="driving") == 1
    assert one(found, "guard_mode", mode="limit") == 1
    assert one(found, "wheels_up") == 1 and one(found, "held") == 0
    assert one(found, "wish_age_seconds") == 0.0
    assert one(found, "driver_link_seconds") == 0.004
    assert one(found, "driver_picture_seconds") == 0.0125
    assert one(found, "camera_restarts_total") == 2
    assert one(found, "pages") == 1
    assert one(found, "process_resident_bytes") > 1e6
    assert one(found, "process_cpu_seconds_total") > 0.0
    assert one(found, "process_open_files") > 2
    assert "fpvcar_machine_celsius" not in found, "unknown is left out"


def test_stops_are_counted_by_cause(car: Measured) -> None:
    ann = car.visitor("Ann")
    ann.drive_off()
    ann.say(up.Estop())
    found = car.read()
    assert one(found, "stops_total", cause="estop") == 1
    assert one(found, "held") == 1


def test_counters_of_causes_and_reasons_start_at_zero() -> None:
    found = Measured().read()
    causes = {dict(labels)["cause"] for labels in found["fpvcar_stops_total"]}
    assert causes == set(Cause) - {Cause.HANDOVER}
    reasons = {dict(labels)["reason"] for labels in found["fpvcar_gate_reasons_total"]}
    assert reasons == set(get_args(Reason))
    assert set(found["fpvcar_stops_total"].values()) == {0.0}
    assert one(found, "video_bitrate_wanted_bits_per_second") > 0


def test_frame_counters_keep_the_frames_of_viewers_that_left(car: Measured) -> None:
    for count in range(3):
        viewer = car.stream.add_viewer(lambda: False)
        for number in range(4):
            unit = AccessUnit(number == 0, 0, b"\0\0\0\1abc")
            car.stream.publish(unit)
            if number < 2:
                viewer.next(True, car.now_s)
        sent = one(car.read(), "video_sent_frames_total")
        assert sent == 2 * (count + 1)
        car.stream.remove(viewer)
        found = car.read()
        assert one(found, "video_sent_frames_total") == sent
        assert one(found, "video_viewers") == 0
    assert one(found, "video_frames_total") == 12
    assert one(found, "video_sent_bytes_total") > 6 * 7
    assert one(found, "video_dropped_frames_total") == 0


def test_silent_battery_has_an_age_and_no_volts(car: Measured) -> None:
    car.senses.cell = telemetry.Battery(7.4, 0.5, 0.6, False, 12.0, VERBATIM(text="NACK"))
    found = car.read()
    assert one(found, "battery_up") == 0 and one(found, "battery_age_seconds") == 12
    assert "fpvcar_battery_volts" not in found
    car.senses.cell = None
    assert not any("battery_v" in name or "battery_up" in name for name in car.read())


def test_metrics_name_no_person_address_or_code(car: Measured) -> None:
    car.visitor("Zebedee", client="client-of-zebedee-1")
    text = car.metrics.text()
    for secret in ("Zebedee", "zebedee", "grownups", "10.0.0.1"):
        assert secret not in text


def test_health_names_the_faults_of_the_calibration(car: Measured) -> None:
    words = "calibration: direction of drive in doubt: the car does not drive"
    before = car.metrics.faults()
    assert words not in before
    car.senses.faults = (VERBATIM(text=words),)
    assert car.metrics.faults() == [*before, words]


def test_metrics_and_faults_report_the_recorder(car: Measured) -> None:
    car.recorder.recording = telemetry.Recording(True, "ok", 3.0, 120.0, 0, 7)
    found = car.read()
    assert one(found, "recording_on") == one(found, "recording_up") == 1
    assert one(found, "recording_free_bytes") == 120_000_000
    assert one(found, "recording_dropped_total") == 7
    assert car.metrics.faults() == []
    assert one(found, "recording_waits_for_station") == 0
    free = Text("card_free", "0 MB free, and none may go")
    full = telemetry.Recording(True, free, 3.0, 0.0, station=True)
    car.recorder.recording = full
    assert one(car.read(), "recording_waits_for_station") == 1
    car.recorder.recording = telemetry.Recording(True, READ_ONLY, 3.0)
    assert "fpvcar_recording_free_bytes" not in car.read()
    words = "nothing is recorded: Read-only file system"
    assert car.metrics.faults() == [words]
    car.recorder.recording = telemetry.Recording(False, READ_ONLY, 3.0)
    assert car.metrics.faults() == []


def test_hung_encoder_is_a_fault_although_the_camera_runs(car: Measured) -> None:
    assert car.metrics.status()["encoder_hangs"] is False and car.metrics.faults() == []
    car.camera._choice.software = True
    assert car.metrics.status()["encoder_hangs"] is True
    assert car.metrics.faults() == [f"camera: {SOFTWARE}"]
    car.camera.state = VERBATIM(text="it is silent")
    assert car.metrics.faults() == ["camera: lost: it is silent"]


def test_unsaved_list_of_drivers_is_a_fault(car: Measured) -> None:
    assert car.metrics.faults() == []
    car.devices.unsaved = READ_ONLY
    words = "the list of drivers cannot be saved: Read-only file system"
    assert car.metrics.faults() == [words]


# --- /healthz ---


def test_healthy_car_has_no_faults(car: Measured) -> None:
    assert car.metrics.faults() == []


def lost_wheels(car: Measured) -> None:
    car.control.wheels_state("hung")


def lost_range(car: Measured) -> None:
    car.senses.seen = (telemetry.Range("rear", 180.0, 0.5, 3.0, SENSOR_SILENT),)


NEVER_MEASURED = telemetry.Battery(None, None, None, False, None, UNHEARD)
OLD = telemetry.Battery(7.4, 0.5, 0.6, False, 1.25)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lost_wheels, "wheels: the wheels process is hung"),
        (lost_range, "sensor rear: does not answer (3.0 s ago)"),
        (
            lambda car: setattr(car.camera, "state", VERBATIM(text="no frame for 2 s")),
            "camera: lost: no frame for 2 s",
        ),
        (lambda car: setattr(car, "board", "refused"), "pins: refused"),
        (
            lambda car: setattr(car.senses, "cell", NEVER_MEASURED),
            "battery: nobody acknowledges (never measured)",
        ),
        (lambda car: setattr(car.senses, "cell", OLD), "battery: ok (1.2 s ago)"),
    ],
)
def test_fault_is_told_as_a_sentence(break_it: Any, said: str, car: Measured) -> None:
    break_it(car)
    assert car.metrics.faults() == [said]


def test_car_without_camera_and_gauge_has_no_faults(car: Measured) -> None:
    car.camera.state, car.senses.cell, car.senses.seen = "none", None, ()
    assert car.metrics.faults() == []


def test_machine_fault_is_a_metric_but_no_health_fault(car: Measured) -> None:
    car.senses.computer = telemetry.Health((Text("under_voltage", "under-voltage now"),), 48.0, 1)
    assert car.metrics.faults() == []
    found = car.read()
    assert one(found, "machine_faults") == 1 and one(found, "machine_celsius") == 48


def test_worn_or_read_only_card_is_reported(car: Measured) -> None:
    assert "fpvcar_machine_card_life_used" not in car.read(), "unknown"
    assert car.metrics.faults() == []
    car.senses.sd_card = telemetry.Card(1.1, True)
    found = car.read()
    assert one(found, "machine_card_life_used") == 1.1
    assert one(found, "machine_card_read_only") == 1
    worn, read_only = sorted(car.metrics.faults(), reverse=True)
    assert worn.startswith("the card is worn")
    assert read_only.startswith("the card is read-only")


# --- over http ---


async def asked(car: Measured, path: str, **headers: str) -> tuple[int, str, str]:
    async with car.serve(figures=car.metrics) as client:
        answer = await client.get(path, headers=headers)
        return answer.status, await answer.text(), answer.headers["Content-Type"]


async def test_metrics_over_http(car: Measured) -> None:
    status, text, kind = await asked(car, "/metrics")
    assert status == 200 and kind == CONTENT_TYPE
    assert "fpvcar_wheels_up" in {one.name for one in text_string_to_metric_families(text)}


async def test_healthz_over_http(car: Measured) -> None:
    assert (await asked(car, "/healthz"))[:2] == (200, "ok\n")
    lost_wheels(car)
    lost_range(car)
    status, text, _ = await asked(car, "/healthz")
    assert status == 503
    assert text.splitlines() == [
        "wheels: the wheels process is hung",
        "sensor rear: does not answer (3.0 s ago)",
    ]


@pytest.mark.parametrize("path", ["/metrics", "/healthz"])
async def test_metrics_and_health_refuse_a_foreign_host(car: Measured, path: str) -> None:
    assert (await asked(car, path, Host="evil.example"))[0] == 403


async def test_status_names_no_client_id(car: Measured) -> None:
    ann = car.visitor("Ann")
    ann.say(up.Report("webcodecs", 12.5, 4.0))
    ann.say(up.Estop())
    code, text, _ = await asked(car, "/api/status")
    said = json.loads(text)
    assert code == 200 and "client-Ann" not in text
    assert said["car"] == "Plague" and said["stop"] == {"cause": "estop", "by": "Ann"}
    assert said["pages"][0]["report"]["link_ms"] == 4.0
    assert (said["wheels"], said["camera"], said["board"]) == ("ok", "ok", "ok")


async def test_status_words_a_stop_by_the_wheels(car: Measured) -> None:
    car.control.wheels_answer(Answer(Status.STOPPED, WheelsReason.DEADLINE, 2, 0))
    code, text, _ = await asked(car, "/api/status")
    assert code == 200
    assert json.loads(text)["stop"] == {"cause": "wheels_stopped", "by": "deadline"}


def test_health_record_holds_the_state_of_the_parts(car: Measured) -> None:
    car.board = "lost"
    car.visitor("Ann")
    health = car.metrics.health()
    assert (health.wheels, health.board, health.viewers) == ("ok", "lost", 1)

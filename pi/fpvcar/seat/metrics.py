"""Metrics and state of the car: /metrics, /healthz, /api/status, and health for the recorder.

The answers contain no personal data: no ids, no codes, and names in /api/status only.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from fpvcar import __version__
from fpvcar.drive.control import Control
from fpvcar.drive.gate import Cause, Reason
from fpvcar.http.prometheus_text import Metric, counter, exposition, gauge
from fpvcar.recordings.messages import Health, health_of
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.hub import Hub
from fpvcar.sensors import sd_card
from fpvcar.sensors.suite import SensorSuite
from fpvcar.video.faults import SOFTWARE
from fpvcar.wire import telemetry

PAGE_B = resource.getpagesize()
TICKS = os.sysconf("SC_CLK_TCK")
OLD_S = 1.0
"""Age limit in seconds of a sensor's last reading; older sensors count as silent."""
HANDOVER = Cause.HANDOVER
"""Cause excluded from the stop counter: a car waiting for its driver's first neutral wish has
not been stopped."""


class Metrics:
    """Exported metrics and state of one car."""

    def __init__(
        self,
        core: Core,
        hub: Hub,
        features: Sequence[Feature],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._core, self._control, self._senses = core, core.control, core.senses
        self._stream, self._camera, self._hub = core.cameras.stream, core.cameras.first, hub
        self._recorder, self._features = core.recorder, features
        self._clock_s = clock_s

    def text(self) -> str:
        """Return the current text of /metrics."""
        return exposition(self.collect(self._clock_s()))

    def collect(self, now_s: float) -> Iterator[Metric]:
        """Yield every family of metrics."""
        yield gauge("build_info", "The program.", 1, version=__version__)
        yield from _gate(self._control, now_s)
        yield from _sensors(self._senses, now_s)
        yield from _battery(self._senses.battery(now_s))
        yield from _machine(self._senses.health(now_s))
        yield from _card(self._senses.card())
        yield from self._video(now_s)
        yield from _process()
        yield from _recorder(self._recorder.status())

    def _video(self, now_s: float) -> Iterator[Metric]:
        stream, camera = self._stream, self._camera
        stats = [viewer.stats(now_s) for viewer in stream.viewers]
        driver = [viewer for viewer in stats if viewer.driver]
        frames, sent_b, dropped = stream.gone
        yield counter("video_frames_total", "Access units of the camera.", stream.sequence)
        yield gauge("video_picture_age_seconds", "Age of the newest picture.", camera.age_s(now_s))
        yield gauge(
            "video_bitrate_wanted_bits_per_second",
            "Requested from the encoder.",
            stream.bitrate.wanted,
        )
        yield gauge("video_viewers", "Video sockets.", len(stats))
        yield gauge(
            "video_driver_fps",
            "Sent to the driver in the last second.",
            driver[0].fps if driver else None,
        )
        yield counter(
            "video_sent_frames_total",
            "To all viewers.",
            frames + sum(viewer.frames for viewer in stats),
        )
        yield counter(
            "video_sent_bytes_total",
            "To all viewers.",
            sent_b + sum(viewer.bytes for viewer in stats),
        )
        yield counter(
            "video_dropped_frames_total",
            "Not sent, as the viewer was behind.",
            dropped + sum(viewer.dropped for viewer in stats),
        )
        yield gauge("camera_up", "1 while it sends pictures.", camera.state == "ok")
        yield counter("camera_restarts_total", "Restarts of its program.", camera.restarts)
        yield gauge("pages", "Open pages.", len(self._hub.sessions))
        page = self._hub.sessions.driver()
        report = page.report if page else None
        yield gauge(
            "driver_link_seconds",
            "Round trip, measured by the driver's page.",
            _seconds(report.link_ms if report else None),
        )
        yield gauge(
            "driver_picture_seconds",
            "Capture to display, measured by the driver's page.",
            _seconds(report.picture_ms if report else None),
        )
        yield gauge(
            "driver_lost_ratio", "Share of picture packets lost.", page.lost if page else None
        )

    def status(self) -> dict[str, object]:
        """Return the content of /api/status."""
        decision, stop = self._control.decision, self._hub.stop()
        now_s = self._clock_s()
        return {
            "car": self._core.profile.car.name,
            "version": __version__,
            "reason": decision.reason,
            "stop": stop and {"cause": stop.cause, "by": str(stop.by)},
            "duties": self._control.duties,
            "wheels": str(self._control.wheels),
            "camera": self._camera.status,
            "encoder_hangs": self._camera.encoder_hangs,
            "camera_warning": str(self._camera.warning or ""),
            "lowered_rate": str(self._camera.lowered_rate or ""),
            "mode": msgspec.to_builtins(self._core.picture.mode()),
            "pages": self._hub.reports(),
            "video": [viewer.stats(now_s)._asdict() for viewer in self._stream.viewers],
            "bitrate_wanted": self._stream.bitrate.wanted,
            **self._features_status(),
        }

    def _features_status(self) -> dict[str, object]:
        return {key: value for feature in self._features for key, value in feature.status().items()}

    def health(self) -> Health:
        """Return the health record that the recorder stores once a second."""
        return health_of(
            self._camera.status,
            str(self._control.wheels),
            str(self._features_status().get("board", "ok")),
            len(self._hub.sessions),
            self._senses.health(self._clock_s()),
        )

    def faults(self) -> list[str]:
        """Return the faults that keep the car from its profile's functions; empty if all work.

        Faults of the computer are excluded, except those of its card: the car can still drive.
        """
        now_s = self._clock_s()
        faults = []
        if self._control.wheels != "ok":
            faults.append(f"wheels: {self._control.wheels}")
        if self._camera.state not in ("ok", "none"):
            faults.append(f"camera: {self._camera.status}")
        elif self._camera.encoder_hangs:
            faults.append(f"camera: {SOFTWARE}")
        elif self._camera.warning:
            faults.append(f"camera: {self._camera.warning}")
        faults += [fault for feature in self._features for fault in feature.faults()]
        battery = self._senses.battery(now_s)
        if battery is not None and not _young(battery):
            faults.append(f"battery: {_why(battery)}")
        for sensor in self._senses.ranges(now_s):
            if not _young(sensor):
                faults.append(f"sensor {sensor.name}: {_why(sensor)}")
        recording = self._recorder.status()
        if recording.on and recording.state != "ok":
            faults.append(f"nothing is recorded: {recording.state}")
        if unsaved := self._hub.authorization.unsaved():
            faults.append(f"the list of drivers cannot be saved: {unsaved}")
        faults += map(str, self._senses.calibration())
        faults += map(str, sd_card.faults(self._senses.card()))
        return faults


def _young(reading: telemetry.Range | telemetry.Battery) -> bool:
    return reading.state == "ok" and reading.age_s is not None and reading.age_s <= OLD_S


def _why(reading: telemetry.Range | telemetry.Battery) -> str:
    age = "never measured" if reading.age_s is None else f"{reading.age_s:.1f} s ago"
    return f"{reading.state} ({age})"


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000.0


def _gate(control: Control, now_s: float) -> Iterator[Metric]:
    decision = control.decision
    yield Metric(
        "gate_reason",
        "gauge",
        "1 for the gate's current reason.",
        [({"reason": decision.reason}, 1)],
    )
    # Export each cause from the start, with 0: Prometheus' increase() misses a counter's first
    # value.
    yield Metric(
        "gate_reasons_total",
        "counter",
        "How often the gate changed to each reason.",
        [({"reason": reason}, control.reasons[reason]) for reason in get_args(Reason)],
    )
    yield Metric(
        "stops_total",
        "counter",
        "Stops by cause.",
        [({"cause": cause}, control.stops[cause]) for cause in Cause if cause != HANDOVER],
    )
    held = decision.latches.hold
    yield gauge("held", "1 while a stop has to be cleared by hand.", held is not None)
    yield gauge("wheels_up", "1 while the wheels process answers.", control.wheels == "ok")
    yield gauge("wish_age_seconds", "Of the driver's last fresh wish.", control.wish_age_s(now_s))
    yield gauge("speed_limit_ratio", "A grown-up's, of full throttle.", control.limit)
    yield Metric(
        "guard_free_ratio",
        "gauge",
        "Share of throttle that the collision guard allows.",
        [({"way": "ahead"}, control.free.ahead), ({"way": "back"}, control.free.back)],
    )
    yield gauge("guard_mode", "1 for the current mode.", 1, mode=control.guard_mode)


def _sensors(senses: SensorSuite, now_s: float) -> Iterator[Metric]:
    ranges = senses.ranges(now_s)
    yield Metric(
        "range_up",
        "gauge",
        "1 while the sensor measures.",
        [({"sensor": sensor.name}, _young(sensor)) for sensor in ranges],
    )
    yield Metric(
        "range_age_seconds",
        "gauge",
        "Of the last measurement.",
        [({"sensor": sensor.name}, sensor.age_s) for sensor in ranges],
    )
    yield Metric(
        "range_meters",
        "gauge",
        "Measured range; absent without a target.",
        [({"sensor": sensor.name}, sensor.range_m) for sensor in ranges if _young(sensor)],
    )
    yield Metric(
        "readings_total",
        "counter",
        "Valid measurements.",
        [({"sensor": name}, count) for name, count in senses.readings().items()],
    )


def _battery(battery: telemetry.Battery | None) -> Iterator[Metric]:
    if battery is None:
        return
    young = _young(battery)
    yield gauge("battery_up", "1 while it measures.", young)
    yield gauge("battery_age_seconds", "Of the last reading.", battery.age_s)
    if young:
        yield gauge("battery_volts", "Of the pack.", battery.volts)
        yield gauge("battery_amps", "Out of the pack.", battery.amps)
        yield gauge("battery_charge_ratio", "Remaining charge, by voltage.", battery.share)


def _machine(health: telemetry.Health) -> Iterator[Metric]:
    yield gauge("machine_faults", "Faults that the computer reports.", len(health.faults))
    yield gauge("machine_celsius", "Of its processor.", health.celsius)
    yield gauge("machine_throttled", "The firmware's bits.", health.throttled)
    yield gauge("machine_wifi_dbm", "Signal.", health.wifi_dbm)
    yield gauge("machine_wifi_bits_per_second", "Rate.", _million(health.wifi_mbps))
    yield gauge("machine_disk_free_bytes", "On the card.", _million(health.disk_free_mb))
    yield gauge("machine_memory_free_bytes", "MemAvailable.", _million(health.memory_free_mb))
    yield gauge("machine_load1", "Of the last minute.", health.load)
    yield gauge("machine_uptime_seconds", "Since it started.", health.uptime_s)


def _card(card: telemetry.Card) -> Iterator[Metric]:
    yield gauge("machine_card_life_used", "Share, as reported by the card.", card.used)
    yield gauge("machine_card_read_only", "1 while the card cannot be written.", card.read_only)


def _recorder(recording: telemetry.Recording) -> Iterator[Metric]:
    yield gauge("recording_on", "1 while a drive is recorded.", recording.on)
    yield gauge("recording_up", "1 while the card accepts the recording.", recording.state == "ok")
    yield gauge(
        "recording_free_bytes", "Space until a file must be deleted.", _million(recording.free_mb)
    )
    full = recording.station and recording.state != "ok" and recording.free_mb == 0
    yield gauge(
        "recording_waits_for_station", "1 while it is full of recordings not fetched yet.", full
    )
    yield counter("recording_dropped_total", "Messages that were not recorded.", recording.dropped)


def _million(value: float | None) -> float | None:
    return None if value is None else value * 1e6


def _process(stat: Path = Path("/proc/self/stat")) -> Iterator[Metric]:
    """Yield the metrics of the `run` process. proc(5): fields 14 and 15 are CPU time, 24 is
    pages."""
    fields = stat.read_text().rpartition(")")[2].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / TICKS
    yield counter("process_cpu_seconds_total", "Of `run`.", cpu_s)
    yield gauge("process_resident_bytes", "Of `run`.", int(fields[21]) * PAGE_B)
    open_files = len(os.listdir("/proc/self/fd"))
    yield gauge("process_open_files", "Of `run`.", open_files)

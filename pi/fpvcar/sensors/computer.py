"""Health of the computer in the car: figures from Linux and its firmware -> figures and faults.

Every source may be absent, on another machine or in a container: the figure is then "unknown"
(None), which is no fault.
"""

import math
import time
from collections.abc import Iterator

import msgspec

from fpvcar.devices.computer import Computer, ComputerReadings
from fpvcar.runtime import clock as wall
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Text
from fpvcar.runtime.units import MB
from fpvcar.runtime.workers import DeviceLost, Worker
from fpvcar.sensors import sd_card
from fpvcar.wire import telemetry

EVERY_S = 2.0
"""Interval of the kernel's own under-voltage check (raspberrypi-hwmon)."""
LOG_AGAIN_S = 60.0
"""Absence after which a recurring fault is logged again."""

UNDER_VOLTAGE, CAPPED, THROTTLED, WARM = 1 << 0, 1 << 1, 1 << 2, 1 << 3
"""Bits of the firmware's get_throttled for the present. The same 16 bits up: since the start."""
SINCE = 16
HOT_C = 80.0
"""Temperature at which every Pi slows its processor down."""
WEAK_DBM = -80.0
FULL_MB = 200.0
SHORT_MB = 24.0
NOW = (
    (UNDER_VOLTAGE, Text("under_voltage", "under-voltage now: the battery or its cable is weak")),
    (THROTTLED, Text("throttled", "the processor is slowed down now")),
    (CAPPED, Text("capped", "the processor's frequency is limited now")),
    (WARM, Text("warm", "the processor is warm: it has slowed down a little")),
)
SLOWED = frozenset(("throttled", "capped", "hot"))
"""Keys of the faults of a hot or slowed processor."""
EARLIER = Text(
    "under_voltage_earlier", "there was under-voltage since the start: check battery and cable"
)


def health_of(readings: ComputerReadings) -> telemetry.Health:
    """Return figures and faults. Unreadable values are unknown."""
    health = telemetry.Health(
        celsius=_tidy(celsius(readings.milli_c)),
        throttled=throttled(readings.throttled, readings.alarm),
        wifi_dbm=signal_dbm(readings.wireless),
        wifi_mbps=_tidy(readings.bit_rate / MB if readings.bit_rate else None),
        disk_free_mb=_tidy(readings.disk_b / MB if readings.disk_b is not None else None),
        memory_free_mb=_tidy(available_mb(readings.meminfo)),
        load=_number(_first(readings.loadavg)),
        uptime_s=_tidy(_number(_first(readings.uptime))),
    )
    card = sd_card.faults(sd_card.card_of(readings))
    reasons = (*faults(health), *card, *clock(readings.utc_s))
    return msgspec.structs.replace(health, faults=reasons)


def faults(health: telemetry.Health) -> Iterator[Text]:
    """Yield the faults, the worst first."""
    bits = health.throttled or 0
    yield from (text for bit, text in NOW if bits & bit)
    if bits & UNDER_VOLTAGE << SINCE and not bits & UNDER_VOLTAGE:
        yield EARLIER
    if health.celsius is not None and health.celsius >= HOT_C:
        degrees = f"{health.celsius:.0f}"
        yield Text("hot", "the processor is hot: {degrees} degrees", degrees=degrees)
    if health.disk_free_mb is not None and health.disk_free_mb < FULL_MB:
        left_mb = f"{health.disk_free_mb:.0f}"
        yield Text("card_full", "the card is nearly full: {left_mb} MB left", left_mb=left_mb)
    if health.memory_free_mb is not None and health.memory_free_mb < SHORT_MB:
        left_mb = f"{health.memory_free_mb:.0f}"
        yield Text("memory_full", "memory is nearly full: {left_mb} MB left", left_mb=left_mb)
    if health.wifi_dbm is not None and health.wifi_dbm < WEAK_DBM:
        yield Text("weak_wifi", "weak Wi-Fi: {dbm} dBm", dbm=f"{health.wifi_dbm:.0f}")


def clock(utc_s: float | None) -> Iterator[Text]:
    """Yield the fault of the clock, with the next step."""
    if utc_s is not None and not wall.plausible(utc_s):
        yield wall.fault(utc_s)


def throttled(text: str | None, alarm: str | None) -> int | None:
    """Parse the firmware's bits: "50005", "0x50005" or "throttled=0x50005".

    `alarm` is the kernel's own under-voltage alarm (rpi_volt, in0_lcrit_alarm).
    """
    try:
        bits = None if text is None else int(text.strip().rpartition("=")[2], 16)
    except ValueError:
        bits = None
    low = None if alarm is None else alarm.strip() == "1"
    if low is None:
        return bits
    return (bits or 0) | (UNDER_VOLTAGE if low else 0)


def celsius(milli: str | None) -> float | None:
    """Convert a thermal zone's "48312" to degrees."""
    value = _number(milli)
    return None if value is None else value / 1000.0


def signal_dbm(wireless: str | None) -> float | None:
    """Return the first interface's level in /proc/net/wireless; -256 and levels >= 0 are
    invalid."""
    for line in (wireless or "").splitlines()[2:]:
        fields = line.split()
        level = _number(fields[3].rstrip(".")) if len(fields) > 3 else None
        if level is not None and -256.0 < level < 0.0:
            return level
    return None


def available_mb(meminfo: str | None) -> float | None:
    """Return MemAvailable: the memory that a program could still get."""
    for line in (meminfo or "").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            kilo = _number(_first(value))
            return None if kilo is None else kilo * 1024 / MB
    return None


def _first(text: str | None) -> str | None:
    fields = (text or "").split()
    return fields[0] if fields else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _tidy(value: float | None) -> float | None:
    """Round to one digit, which is enough: the value is sent to every page ten times a second."""
    return None if value is None else round(value, 1)


class HealthThread(Worker):
    """Thread that reads the health every 2 s. A hanging card blocks this thread only, and the
    age shows it."""

    def __init__(
        self, machine: Computer, every_s: float = EVERY_S, clock_s: Clock = time.monotonic
    ) -> None:
        super().__init__("health")
        self._machine, self._every_s, self._clock_s = machine, every_s, clock_s
        self._last: tuple[telemetry.Health, float] | None = None
        self.card = telemetry.Card()
        self._logged_s: dict[str, float] = {}

    def status(self, now_s: float) -> telemetry.Health:
        """Return the last reading with its age."""
        if self._last is None:
            return telemetry.Health()
        health, at_s = self._last
        age_s = round(max(0.0, now_s - at_s), 1)
        return msgspec.structs.replace(health, age_s=age_s)

    def weak(self) -> bool:
        """Return whether the last reading shows under-voltage."""
        bits = self._last[0].throttled if self._last is not None else None
        return bool((bits or 0) & UNDER_VOLTAGE)

    def hot(self) -> bool:
        """Return whether the last reading shows a hot or slowed processor."""
        return self._last is not None and any(fault.key in SLOWED for fault in self._last[0].faults)

    def lost(self) -> None:
        """Drop the figures, which are unknown now."""
        if not self.ending:
            self._last = None

    def live(self) -> None:
        """Read, log new faults and wait, until `ending`."""
        while not self.ending:
            try:
                readings = self._machine.read()
            except OSError as fault:
                raise DeviceLost(
                    f"cannot read the health of this computer: {fault.strerror}"
                ) from None
            health, now_s = health_of(readings), self._clock_s()
            self.card = sd_card.card_of(readings)
            self._last = health, now_s
            self.set_state("ok")
            for reason in health.faults:
                kind = reason.key  # its figures change
                if now_s - self._logged_s.get(kind, -math.inf) > LOG_AGAIN_S:
                    self._log.warning("%s", reason)
                self._logged_s[kind] = now_s
            self.pause(self._every_s)

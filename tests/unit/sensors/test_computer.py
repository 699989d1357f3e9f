"""State of a computer: from the files of any machine, and without them."""

import os
import resource
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from testkit.pins.wheels import until

from fpvcar.devices.computer import ComputerReadings
from fpvcar.devices.linux import computer as device
from fpvcar.devices.linux.computer import Machine
from fpvcar.runtime import paths
from fpvcar.sensors import computer
from fpvcar.sensors.computer import HealthThread, health_of
from fpvcar.wire import telemetry

WIRELESS = """\
Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
 wlan0: 0000   54.  -56.  -256        0      0      0      0      0        0
"""
MEMINFO = """\
MemTotal:         437720 kB
MemFree:           35552 kB
MemAvailable:     253000 kB
"""
WELL = ComputerReadings(
    throttled="0",
    milli_c="48312\n",
    wireless=WIRELESS,
    bit_rate=72_200_000,
    meminfo=MEMINFO,
    loadavg="0.35 0.30 0.25 1/123 4567\n",
    uptime="3601.5 7000.1\n",
    disk_b=9_000_000_000,
)


def test_healthy_pi_gives_figures_and_no_faults() -> None:
    assert health_of(WELL) == telemetry.Health(
        (), 48.3, 0, -56.0, 72.2, 9000.0, 259.1, 0.35, 3601.5
    )


def test_machine_without_data_is_unknown_and_has_no_fault() -> None:
    assert health_of(ComputerReadings()) == telemetry.Health()


@pytest.mark.parametrize("text", ["50005\n", "0x50005\n", "throttled=0x50005\n"])
def test_throttled_word_is_parsed_in_all_spellings(text: str) -> None:
    health = health_of(WELL._replace(throttled=text))
    assert health.throttled == 0x50005
    assert [(fault.key, str(fault)) for fault in health.faults] == [
        ("under_voltage", "under-voltage now: the battery or its cable is weak"),
        ("throttled", "the processor is slowed down now"),
    ]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (WELL._replace(throttled="1"), str(computer.NOW[0][1])),
        (WELL._replace(throttled=None, alarm="1\n"), str(computer.NOW[0][1])),
        (WELL._replace(throttled="0", alarm="1\n"), str(computer.NOW[0][1])),
        (WELL._replace(throttled="2"), "the processor's frequency is limited now"),
        (WELL._replace(throttled="8"), "the processor is warm"),
        (WELL._replace(throttled="10000"), str(computer.EARLIER)),
        (WELL._replace(milli_c="80000"), "the processor is hot: 80 degrees"),
        (WELL._replace(disk_b=199_900_000), "the card is nearly full: 200 MB left"),
        (WELL._replace(disk_b=0), "the card is nearly full: 0 MB left"),
        (WELL._replace(meminfo="MemAvailable: 20000 kB\n"), "memory is nearly full"),
        (WELL._replace(wireless=WIRELESS.replace("-56.", "-81.")), "weak Wi-Fi: -81"),
    ],
)
def test_fault_is_reported_alone(found: ComputerReadings, reason: str) -> None:
    (one,) = health_of(found).faults
    assert str(one).startswith(reason)


def test_every_fault_has_a_translation() -> None:
    ill = WELL._replace(
        throttled="f000f",
        milli_c="90000",
        disk_b=0,
        meminfo="MemAvailable: 1 kB\n",
        wireless=WIRELESS.replace("-56.", "-90."),
        life_times=("0x0b 0x01",),
        utc_s=0.0,
    )
    files = (paths.WEB / "lang" / "de").glob("*.json")
    texts = "\n".join(file.read_text(encoding="utf-8") for file in files)
    faults = (*health_of(ill).faults, *health_of(WELL._replace(throttled="10000")).faults)
    keys = (*(fault.key for fault in faults), "card_read_only", "card_volatile")
    assert len(keys) == 13
    for key in keys:
        assert f'"{key}": "' in texts, key


@pytest.mark.parametrize(
    "found",
    [
        WELL._replace(milli_c="79900"),
        WELL._replace(disk_b=200_000_000),
        WELL._replace(alarm="0\n"),
        WELL._replace(throttled="20000"),
        WELL._replace(wireless=WIRELESS.replace("-56.", "-80.")),
    ],
)
def test_values_just_within_limits_are_no_fault(found: ComputerReadings) -> None:
    assert health_of(found).faults == ()


def test_wifi_signal_unknown_to_the_kernel_is_none() -> None:
    for level in ("-256.", "0.", "56.", "?"):
        health = health_of(WELL._replace(wireless=WIRELESS.replace("-56.", level)))
        assert health.wifi_dbm is None, level
    assert device.interface(WIRELESS) == "wlan0"
    assert device.interface(None) is None
    headers = "\n".join(WIRELESS.splitlines()[:2])
    assert device.interface(headers) is None
    assert computer.signal_dbm(headers) is None


words = some.none() | some.text(max_size=60)


@given(words, words, words, words, words, words, words)
def test_judge_accepts_any_file_contents(
    a: str | None,
    b: str | None,
    c: str | None,
    d: str | None,
    e: str | None,
    f: str | None,
    g: str | None,
) -> None:
    health_of(ComputerReadings(a, b, c, d, None, e, f, g, None))


# --- sources of the readings ---


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_pi_4_files_are_read(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/platform/soc/soc:firmware/get_throttled", "50000\n")
    put(tmp_path, "sys/class/hwmon/hwmon0/name", "cpu_thermal\n")
    put(tmp_path, "sys/class/hwmon/hwmon1/name", "rpi_volt\n")
    put(tmp_path, "sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1\n")
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "51000\n")
    put(tmp_path, "proc/net/wireless", WIRELESS)
    put(tmp_path, "proc/meminfo", MEMINFO)
    put(tmp_path, "proc/loadavg", "1.5 1 1 1/1 1\n")
    put(tmp_path, "proc/uptime", "10.0 5.0\n")
    found = Machine(tmp_path).read()
    assert (found.throttled, found.alarm) == ("50000\n", "1\n")
    health = health_of(found)
    assert health.throttled == 0x50001 and health.celsius == 51.0
    assert (health.load, health.uptime_s, health.wifi_dbm) == (1.5, 10.0, -56.0)
    assert health.disk_free_mb and health.disk_free_mb > 0


def test_pi_5_throttled_file_is_found(tmp_path: Path) -> None:
    name = "sys/devices/platform/axi/soc@107c000000:firmware/get_throttled"
    put(tmp_path, name, "0\n")
    assert Machine(tmp_path).read().throttled == "0\n"


def test_machine_without_files_is_unknown(tmp_path: Path) -> None:
    found = Machine(tmp_path).read()
    assert found._replace(disk_b=None, disk="", utc_s=None) == ComputerReadings()
    assert Machine(tmp_path, tmp_path / "gone").read().disk_b is None


def test_unreadable_file_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "proc/meminfo").mkdir(parents=True)
    assert Machine(tmp_path).read().meminfo is None


def fake_vcgencmd(folder: Path, body: str) -> None:
    path = folder / "vcgencmd"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("body", "health"),
    [
        ("echo throttled=0x1", 1),
        ("exit 1", None),
        ("echo nonsense", None),
        ("echo 'VCHI initialization failed'; exit 255", None),
    ],
)
def test_vcgencmd_is_asked_if_there_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, health: int | None
) -> None:
    fake_vcgencmd(tmp_path, body)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    machine = Machine()
    machine._throttled = machine._alarm = None  # hide the files of this machine
    assert health_of(machine.read()).throttled == health


def test_hanging_vcgencmd_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_vcgencmd(tmp_path, "exec sleep 60")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(device, "VCGENCMD_S", 0.1)
    machine = Machine()
    machine._throttled = machine._alarm = None
    assert machine._throttled_now() is None


def test_running_machine_has_figures() -> None:
    health = health_of(Machine().read())
    assert health.load is not None and health.memory_free_mb and health.uptime_s


def test_missing_interface_has_no_bit_rate() -> None:
    assert device.bit_rate(None) is None
    assert device.bit_rate("nowhere0") is None
    assert device.IFREQ.size == 32, "struct iwreq"


def test_health_thread_reads_repeatedly_and_reports_age(tmp_path: Path) -> None:
    put(tmp_path, "proc/loadavg", "0.1 0 0 1/1 1\n")
    thread = HealthThread(Machine(tmp_path), every_s=0.01)
    assert thread.status(1.0) == telemetry.Health()
    thread.start()
    try:
        until(lambda: thread.status(time.monotonic()).load == 0.1, 5.0, "no look")
        put(tmp_path, "proc/loadavg", "0.2 0 0 1/1 1\n")
        until(lambda: thread.status(time.monotonic()).load == 0.2, 5.0, "no second look")
    finally:
        thread.stop()
    assert thread.status(time.monotonic() + 9.0).age_s == pytest.approx(9.0, abs=0.5)


def looked(root: Path, looks: int = 1) -> HealthThread:
    """Return the thread of a machine after so many looks."""
    thread, left = HealthThread(Machine(root)), [looks]
    assert not thread.weak() and not thread.hot(), "nobody has looked yet"

    def pause(seconds: float) -> None:
        left[0] -= 1
        thread.ending = not left[0]

    thread.pause = pause  # type: ignore[method-assign]
    thread.live()
    return thread


def test_new_fault_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "85000\n")
    looked(tmp_path, 3)
    assert len([one for one in caplog.messages if "hot" in one]) == 1


@pytest.mark.parametrize(
    ("bits", "weak", "hot"),
    [
        ("50001", True, False),
        ("1", True, False),
        ("50000", False, False),
        ("e", False, True),
        ("2", False, True),
        ("8", False, False),
    ],
)
def test_supply_is_weak_and_processor_hot_while_the_firmware_says_so(
    tmp_path: Path, bits: str, weak: bool, hot: bool
) -> None:
    put(tmp_path, "sys/devices/platform/soc/soc:firmware/get_throttled", f"{bits}\n")
    thread = looked(tmp_path)
    assert thread.weak() is weak and thread.hot() is hot


def test_supply_without_a_detector_is_not_weak(tmp_path: Path) -> None:
    assert not looked(tmp_path).weak()


def test_machine_without_a_free_descriptor_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "sys/block/mmcblk0/device").mkdir(parents=True)
    machine = Machine(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        found = machine.read()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (found.milli_c, found.life_times) == (None, ())


def test_health_thread_outlives_a_look_that_fails() -> None:
    class Odd:
        def __init__(self) -> None:
            self.looks = 0

        def read(self) -> ComputerReadings:
            self.looks += 1
            if self.looks == 2:
                raise OSError(24, "Too many open files")
            return WELL

    odd = Odd()
    thread = HealthThread(odd, every_s=0.01)
    thread.start()
    try:
        until(lambda: "Too many open files" in str(thread.state), 5.0, "no fault")
        assert thread.status(0.0) == telemetry.Health()
        until(lambda: thread.state == "ok", 5.0, "it does not look again")
        assert not thread.dead
    finally:
        thread.stop()

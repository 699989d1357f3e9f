"""Doctor on cars with one fault each, and on one without a fault.

Each car is a folder with the files of a card and a played machine. It produces exactly its own
finding, in words without a gap.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit import doctor as rig
from testkit.doctor import GONE, PlayedMachine, change, examined, healthy, put

from fpvbench.kernel_pwm import FakePwm
from fpvcar import __version__
from fpvcar.cli import doctor, setup
from fpvcar.cli.command_line import parser
from fpvcar.config import Camera as CameraConfig
from fpvcar.config import raspberry_pi_os
from fpvcar.devices import sensor_modes
from fpvcar.devices.linux import computer as linux_computer
from fpvcar.doctor import checks
from fpvcar.doctor.facts import CardSpeed, DeadManTest, MotorTest, Running
from fpvcar.doctor.report import Broken, Severity, Unasked, Works
from fpvcar.runtime.paths import HARDWARE
from fpvcar.video import faults

Ill = Callable[[Path, PlayedMachine], object]


def a_file(name: str, text: str) -> Ill:
    return lambda root, machine: put(root, name, text)


def a_package(name: str, version: str) -> Ill:
    """Return a fault: a package of another version."""
    status = rig.FILES["var/lib/dpkg/status"]
    lines = f"Package: {name}\nStatus: install ok installed\nVersion: "
    assert f"{lines}1\n" in status
    return a_file("var/lib/dpkg/status", status.replace(f"{lines}1\n", f"{lines}{version}\n"))


def in_profile(old: str, new: str) -> Ill:
    return lambda root, machine: change(root, old, new)


def a_word(start: str, old: str, new: str) -> Ill:
    """Return a fault: a program prints other text."""

    def ill(root: Path, machine: PlayedMachine) -> None:
        words = machine.said[start]
        assert isinstance(words, str) and old in words
        machine.said[start] = words.replace(old, new)

    return ill


DRIVE_OHM = "[motors.drive]          # FA-130 type, 3 V, on a pack of 7.5 V\nresistor_ohm = 2.2"


def slow_on_pigpio(root: Path, machine: PlayedMachine) -> None:
    change(root, DRIVE_OHM, DRIVE_OHM.replace("resistor_ohm = 2.2", "pwm_hz = 800"))
    machine.back_end = "pigpio"


def with_kernel_pwm(root: Path, machine: PlayedMachine) -> None:
    """Put the drive motor on the kernel's PWM. Nothing else has changed since setup."""
    for old, new in (("forward = 17", "forward = 12"), ("reverse = 27", "reverse = 13")):
        change(root, old, new)
    change(root, "[motors.drive]", '[pins]\nbackend = "linux"\npwm = [12, 13]\n\n[motors.drive]')


def not_rebooted(root: Path, machine: PlayedMachine) -> None:
    with_kernel_pwm(root, machine)
    assert setup.main(parser().parse_args(["setup", "--root", str(root)])) == 0


def an_answer(**values: Any) -> Ill:
    def ill(root: Path, machine: PlayedMachine) -> None:
        for name, value in values.items():
            assert hasattr(machine, name)
            setattr(machine, name, value)

    return ill


def says(*faults: str, camera: str = "ok") -> Ill:
    return an_answer(car=Running(__version__, camera, faults))


def running_with(mode: sensor_modes.ModeReport) -> Ill:
    return an_answer(car=Running(__version__, "ok", (), mode))


def both(*ills: Ill) -> Ill:
    def ill(root: Path, machine: PlayedMachine) -> None:
        for one in ills:
            one(root, machine)

    return ill


def recorded_in_1970(root: Path, machine: PlayedMachine) -> None:
    for number in (1, 2):
        name = f"Rusty-19700101T000142Z-{number:04d}.mcap"
        put(root, f"var/lib/fpvcar/recordings/{name}", "x")
    put(root, "var/lib/fpvcar/recordings/Rusty-20260511T100000Z-0001.mcap", "x")


CONFIG = "boot/firmware/config.txt"
MODEL = raspberry_pi_os.MODEL
HOT, WORN = "sys/class/thermal/thermal_zone0/temp", "sys/block/mmcblk0/device/life_time"
UNITS = "systemctl show --property=Id"
FPVCAR = rig.UNIT.format("fpvcar.service")
ILL: list[tuple[str, Ill]] = [
    ("board", a_file(MODEL, "Banana Pi M2\0")),
    (
        "board-daemon",
        both(
            a_file(MODEL, "Raspberry Pi Compute Module 5 Rev 1.0\0"), an_answer(back_end="pigpio")
        ),
    ),
    ("board-slow", a_file(MODEL, "Raspberry Pi Zero W Rev 1.1\0")),
    (
        "board-busy",
        both(
            a_file(MODEL, "Raspberry Pi 5 Model B Rev 1.0\0"),
            in_profile("[camera]\n", "[camera]\nfps = 60\n"),
        ),
    ),
    ("system", a_file("etc/os-release", "VERSION_CODENAME=buster\n")),
    (
        "package",
        a_file(
            "var/lib/dpkg/status", rig.FILES["var/lib/dpkg/status"].replace("picamera2", "picture")
        ),
    ),
    ("camera-pair", a_package("python3-libcamera", "0.4.0-7")),
    ("camera-local", a_file("usr/local/lib/aarch64-linux-gnu/libcamera.so.0.5", "ELF")),
    (
        "profile-care",
        both(in_profile("forward = 17 ", "forward = 4 "), a_word("pinctrl", "17: ip", "4: ip")),
    ),
    (
        "pin-shared",
        both(
            a_file("boot/firmware/cmdline.txt", "console=serial0,115200\n"),
            in_profile("trigger = 20", "trigger = 14"),
        ),
    ),
    ("version", an_answer(car=Running("0.0.9", "ok"))),
    ("strict", both(a_file(rig.PERSIST, "Y\n"), a_file(CONFIG, "dtparam=spi=on\n"))),
    ("strict-reboot", a_file(rig.PERSIST, "Y\n")),
    (
        "unsafe",
        both(
            a_file(rig.PERSIST, "Y\n"),
            in_profile("[battery]", "[pins]\nunsafe = true\n\n[battery]"),
        ),
    ),
    ("pins", an_answer(pins_answer=Broken("pigpiod at 127.0.0.1 port 8888: refused"))),
    ("pin-held", an_answer(held={24: "spi0 CS0"})),
    ("pwm-peak-refused", in_profile(DRIVE_OHM, DRIVE_OHM.replace("2.2", "0"))),
    ("pwm-peak-refused", slow_on_pigpio),
    ("pwm-absent", with_kernel_pwm),
    ("pwm-reboot", not_rebooted),
    ("pull-up", a_word("pinctrl", "24: ip    pd", "24: ip    pu")),
    ("pull-none", a_word("pinctrl", "24: ip    pd", "24: ip    pn")),
    ("dead-man", an_answer(tripped=DeadManTest(None, True, "no guardian for the motors"))),
    ("dead-man-sleeps", an_answer(tripped=DeadManTest(None, True))),
    ("dead-man-late", an_answer(tripped=DeadManTest(0.9, True))),
    ("i2c-bus", a_file("dev/i2c-1", GONE)),
    ("i2c-missing", an_answer(present={(1, 0x29)})),
    ("i2c-stranger", an_answer(present={(1, 0x29), (1, 0x40), (1, 0x60)})),
    ("sensor", says("sensor rear: does not answer (2.1 s ago)")),
    ("battery", says("battery: no INA219: config 0x0 (never measured)")),
    ("wheels", says("wheels: absent")),
    ("servos", says("servos: servo pan: PCA9685, tried twice: no answer")),
    ("recorder", says("nothing is recorded: the folder was replaced by another one")),
    ("running", says("pins: nobody hears the buttons")),
    ("camera", says("camera: lost: it is silent", camera="lost: it is silent")),
    ("camera-rate", running_with(sensor_modes.report("imx708", CameraConfig(fps=60)))),
    ("camera-lowered", an_answer(car=Running(__version__, "ok", lowered_rate="30 instead of 60"))),
    ("camera-sensor", running_with(sensor_modes.report("ov9281", CameraConfig()))),
    ("camera-coding", says("camera: its H.264 has 4:2:2 samples")),
    ("camera-encoder", says(f"camera: {faults.SOFTWARE}")),
    ("wifi-power-save", an_answer(rests=True)),
    ("wifi-weak", a_file("proc/net/wireless", rig.WIRELESS.format(dbm=-84))),
    ("wifi-channel", an_answer(said=rig.SAID | {"nmcli": "*:6:80\n" + " :7:55\n" * 5})),
    ("name", a_word("busctl", "rusty.local", "rusty-2.local")),
    ("name-old", a_word("busctl", "rusty.local", "raspberrypi.local")),
    ("tcp", a_file("proc/sys/net/ipv4/tcp_rto_min_us", "200000\n")),
    ("tcp-kernel", a_file("proc/sys/net/ipv4/tcp_rto_min_us", GONE)),
    ("under-voltage", a_file(rig.THROTTLED, "50005\n")),
    ("under-voltage-earlier", a_file(rig.THROTTLED, "50000\n")),
    ("throttled", a_file(rig.THROTTLED, "2\n")),
    ("hot", a_file(HOT, "83100\n")),
    ("memory", a_file("proc/meminfo", "MemAvailable: 12000 kB\n")),
    ("recordings-volatile", a_file("proc/self/mounts", "overlayroot / overlay rw 0 0\n")),
    ("recordings-volatile", a_file("proc/self/mounts", "tmpfs / tmpfs rw 0 0\n")),
    ("card-read-only", a_file("proc/self/mounts", "/dev/mmcblk0p2 / ext4 ro 0 0\n")),
    ("card-worn", a_file(WORN, "0x0a 0x0b\n")),
    ("state", an_answer(written=Broken("Input/output error"))),
    ("clock", an_answer(clock_s=90.0)),
    ("card-slow", an_answer(card=CardSpeed(0.4, 0.7))),
    ("recordings-clock", recorded_in_1970),
    ("certificate", a_word("openssl", "2099", "2025")),
    ("unit-absent", a_word(UNITS, FPVCAR, FPVCAR.replace("=loaded", "=not-found"))),
    ("unit-down", a_word(UNITS, FPVCAR, FPVCAR.replace("=active", "=failed"))),
    ("unit-restarts", a_word(UNITS, FPVCAR, FPVCAR.replace("rts=0", "rts=7"))),
    ("unit-watchdog", a_word(UNITS, FPVCAR, FPVCAR.replace("5s", "infinity"))),
    ("watchdog", a_word("systemctl show --property=RuntimeWatchdogUSec", "15s", "0")),
]
ELSEWHERE = {"module", "profile", "motor", "card-full", "card-no-room"}
"""Kinds that have tests of their own, below."""


def keys(root: Path, machine: PlayedMachine, *words: str) -> list[str]:
    report = examined(root, machine, *words)
    for one in report.findings:
        assert one.what and one.why and one.mend
        assert not re.search(r"[{}]", one.what + one.why + one.mend), one
    return [one.key for one in report.findings]


def test_healthy_car_has_no_finding_and_all_parts_checked(tmp_path: Path) -> None:
    report = examined(healthy(tmp_path), PlayedMachine(), "--move")
    assert report.findings == () and report.worst is Severity.OK
    assert report.not_asked == ()
    assert report.well == tuple(part for part, _ in checks.PARTS)


@pytest.mark.parametrize(("key", "ill"), ILL, ids=[key for key, _ in ILL])
def test_fault_gives_exactly_its_finding(key: str, ill: Ill, tmp_path: Path) -> None:
    machine = PlayedMachine()
    ill(healthy(tmp_path), machine)
    assert keys(tmp_path, machine) == [key]


def test_finding_kinds_each_have_a_faulty_car() -> None:
    kinds = [one.key for one in checks.kinds()]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == {key for key, _ in ILL} | ELSEWHERE


def test_kernel_pwm_of_this_board_is_no_finding(tmp_path: Path) -> None:
    not_rebooted(healthy(tmp_path), PlayedMachine())
    fake = FakePwm(tmp_path / "fake")
    (tmp_path / "sys/class").mkdir(exist_ok=True)
    (tmp_path / "sys/class/pwm").symlink_to(fake.chips)
    assert keys(tmp_path, PlayedMachine()) == []


@pytest.mark.parametrize(("loss_s", "warned"), [("3.0", True), ("0.31", True), ("0.3", False)])
def test_doctor_warns_of_an_esc_that_drives_on_without_pulses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loss_s: str, warned: bool
) -> None:
    """The verb itself, as a user types it on a card."""
    healthy(tmp_path)
    words = ["setup", "--root", str(tmp_path), "--board=rc-esc", "--name=Rusty"]
    assert setup.main(parser().parse_args(words)) == 0
    change(tmp_path, "esc_loss_s = 3.0 ", f"esc_loss_s = {loss_s} ")
    doctor.run(parser().parse_args(["doctor", "--root", str(tmp_path), "--json"]))
    findings = json.loads(capsys.readouterr().out.splitlines()[-1])["findings"]
    texts = [str(one) for one in findings if "esc_loss_s" in str(one)]
    assert bool(texts) == warned, findings
    if warned:
        assert "for that long, so the throttle is limited to 0.3" in texts[0]
        assert "motors.drive.esc_loss_s" in texts[0]
        doctor.run(parser().parse_args(["doctor", "--root", str(tmp_path)]))
        assert "esc_loss_s" in capsys.readouterr().out


def test_refused_profile_hides_no_other_finding(tmp_path: Path) -> None:
    change(healthy(tmp_path), "reverse = 27", "reverse = 17")
    put(tmp_path, HOT, "90000\n")
    report = examined(tmp_path, PlayedMachine())
    assert [one.key for one in report.findings] == ["profile", "hot"]
    assert "17 is already used by" in report.findings[0].what
    assert "dead man" in [one.part for one in report.not_asked]


def test_restarts_that_systemd_forgot_are_read_from_the_journal(tmp_path: Path) -> None:
    machine = PlayedMachine()
    entry = '{"UNIT":"fpvcar-wheels.service","__CURSOR":"s=1"}\n'
    machine.said["journalctl"] = entry * 2
    assert keys(healthy(tmp_path), machine) == []
    machine.said["journalctl"] = entry * 3
    (finding,) = examined(tmp_path, machine).findings
    assert finding.what == "fpvcar-wheels.service was restarted 3 times"


def test_motors_turn_only_when_asked_to(tmp_path: Path) -> None:
    machine = PlayedMachine()
    machine.turning = (MotorTest("drive", Broken("pins_lost")), MotorTest("steer", Works()))
    assert keys(healthy(tmp_path), machine) == []
    assert keys(tmp_path, machine, "--move") == ["motor"]


@pytest.mark.parametrize(("free_mb", "key"), [(120.0, "card-full"), (0.0, "card-no-room")])
def test_card_without_room_is_a_finding(
    free_mb: float, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux_computer.Machine, "_free_b", lambda self: round(free_mb * 1e6))
    assert keys(healthy(tmp_path), PlayedMachine()) == [key]


def test_missing_library_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "segno" or None)
    assert keys(tmp_path, PlayedMachine()) == ["module"]


KERNEL = (
    "bcm2835_mmal_vchiq: timed out waiting for sync completion",
    "bcm2835-codec bcm2835-codec: bcm2835_codec_stop_streaming: Timeout waiting for buffers to be "
    "returned - 6 outstanding",
    "bcm2835-codec bcm2835-codec: bcm2835_codec_start_streaming: Failed enabling i/p port, ret -3",
    "bcm2835-codec: failed to create component ril.video_encode",
)
"""Lines of real logs: raspberrypi/linux #4606, #3974, #7163."""


@pytest.mark.parametrize("line", KERNEL)
def test_lost_camera_is_explained_by_the_kernel_log(line: str, tmp_path: Path) -> None:
    machine = PlayedMachine()
    healthy(tmp_path)
    log = "bcm2835-codec bcm2835-codec: Device registered as /dev/video11\n"
    machine.said["journalctl"] = f"{log}{line}\nusb 1-1: new device\n"
    assert keys(tmp_path, machine) == [], "the camera works, so that was earlier"
    machine.car = Running(__version__, "lost: silent")
    (found,) = examined(tmp_path, machine).findings
    assert found.key == "camera-encoder" and line in found.what
    machine.said["journalctl"] = log
    assert keys(tmp_path, machine) == ["camera"]


def test_unchecked_part_is_not_reported_as_well(tmp_path: Path) -> None:
    put(healthy(tmp_path), rig.THROTTLED, GONE)
    put(tmp_path, WORN, GONE)
    put(tmp_path, "sys/block/mmcblk0/device/pre_eol_info", GONE)
    machine = PlayedMachine()
    machine.said["nmcli"] = Unasked("nmcli is not installed")
    report = examined(tmp_path, machine)
    assert report.findings == ()
    assert {one.part for one in report.not_asked} == {"supply", "wear", "Wi-Fi", "motors"}
    assert not {"supply", "wear", "Wi-Fi", "motors"} & set(report.well)


def test_sleeping_sensor_is_not_missing(tmp_path: Path) -> None:
    change(healthy(tmp_path), "[sensors.tof.front]", "[sensors.tof.front]\npower = 12")
    machine = PlayedMachine()
    machine.present = {(1, 0x40)}
    assert keys(tmp_path, machine) == ["i2c-missing"]
    machine.car = Unasked("it does not run")
    assert keys(tmp_path, machine) == []


@pytest.mark.parametrize("runs", [True, False])
def test_mode_of_the_camera_is_in_the_first_line(tmp_path: Path, runs: bool) -> None:
    machine, mode = PlayedMachine(), sensor_modes.report("imx219", CameraConfig())
    running_with(mode)(tmp_path, machine)
    if not runs:
        machine.car, machine.filming = Unasked("it does not run"), Works("imx219")
    seen = examined(healthy(tmp_path), machine)
    assert f"; camera {mode.text}" in seen.about
    assert "camera" in seen.well


@pytest.mark.parametrize(
    "ill",
    [
        an_answer(pins_answer=Broken("pigpiod at 127.0.0.1 port 8888: refused")),
        a_file(rig.PERSIST, "Y\n"),
        an_answer(tripped=DeadManTest(0.2, False)),
    ],
)
def test_unproven_dead_man_is_not_reported_as_well(ill: Ill, tmp_path: Path) -> None:
    machine = PlayedMachine()
    ill(healthy(tmp_path), machine)
    report = examined(tmp_path, machine)
    assert "dead man" in [one.part for one in report.not_asked]
    assert "dead man" not in report.well


def test_missing_hat_is_a_single_finding(tmp_path: Path) -> None:
    hat = (HARDWARE / "motor-hat.toml").read_text()
    put(healthy(tmp_path), raspberry_pi_os.PROFILE, hat)
    machine = PlayedMachine()
    machine.said["busctl"] = Unasked("it is not there")
    machine.tripped = DeadManTest(None, True, "no chip acknowledges the write")
    machine.present = set()
    assert keys(tmp_path, machine) == ["i2c-missing"]
    machine.present = {(1, 0x60)}
    assert keys(tmp_path, machine) == ["dead-man"]


def test_card_under_another_root_is_read_and_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(healthy(tmp_path), rig.PERSIST, "Y\n")
    before = sorted(tmp_path.rglob("*"))
    words = ["doctor", "--json", "--root", str(tmp_path)]
    capsys.readouterr()
    assert doctor.run(parser().parse_args(words)) == 4
    said = json.loads(capsys.readouterr().out)
    assert [one["key"] for one in said["findings"]] == ["strict-reboot"]
    assert {"camera", "clock", "dead man", "units"} <= {one["part"] for one in said["not_asked"]}
    assert sorted(tmp_path.rglob("*")) == before

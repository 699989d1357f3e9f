"""`fpvcar setup` below a folder of the test's own, with the commands it would have run."""

import re
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from testkit.command import Command, Output

from fpvcar.cli import setup
from fpvcar.config import ConfigError, L298n, Mx1508, profiles, raspberry_pi_os
from fpvcar.devices import backends
from fpvcar.runtime.paths import OLD_NAMES
from tests.unit.cli.conftest import Ran

CONFIG_TXT = "# For more options see README\ndtparam=audio=on\n\n[cm5]\ndtoverlay=dwc2\n"
RUSTY = ("--board=l298n", "--name=Rusty")
SetUp = Callable[..., Output]


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """Make a card with the files of Raspberry Pi OS that setup reads."""
    (tmp_path / "boot" / "firmware").mkdir(parents=True)
    (tmp_path / "boot" / "firmware" / "config.txt").write_text(CONFIG_TXT)
    return tmp_path


@pytest.fixture
def set_up(card: Path, command: Command) -> SetUp:
    """Function that runs `fpvcar setup` on the card."""
    return partial(command, "setup", "--root", card)


@pytest.fixture
def profile(card: Path, set_up: SetUp) -> Path:
    """Set up a car named Rusty; return its profile."""
    set_up(*RUSTY)
    return card / raspberry_pi_os.PROFILE


def all_files(card: Path) -> dict[str, str]:
    found = (path for path in card.rglob("*") if path.is_file())
    return {str(path.relative_to(card)): path.read_text() for path in found}


def test_setup_writes_config_profile_and_own_files(card: Path, set_up: SetUp) -> None:
    set_up(*RUSTY)
    made = all_files(card)
    own = set(setup.OWN_FILES) - {setup.CLOUD, setup.JOURNAL}
    assert set(made) == {"boot/firmware/config.txt", raspberry_pi_os.PROFILE, *own}
    profile = profiles.load(card / raspberry_pi_os.PROFILE)
    assert profile.car.name == "Rusty"
    shipped = profiles.load(setup.boards()["l298n"])
    assert profile.motors == shipped.motors
    assert "# ENA" in made[raspberry_pi_os.PROFILE], "comments stay"
    config = made["boot/firmware/config.txt"]
    assert config.startswith(CONFIG_TXT.rstrip())
    for line in ("dtparam=i2c_arm=on", "camera_auto_detect=1", "dtparam=watchdog=on"):
        assert f"\n{line}\n" in config
    assert config.index("[all]") > config.index("[cm5]"), "ours hold for every board"
    for name in made:
        assert (card / name).stat().st_mode & 0o444 == 0o444, name


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ("dtparam=audio=on\n", ["camera_auto_detect=1"]),
        ("camera_auto_detect=0\ndtoverlay=imx462\n", ["camera_auto_detect=0"]),
        ("[pi4]\ncamera_auto_detect=0\n[all]\n", ["camera_auto_detect=0"]),
        ("#camera_auto_detect=0\n", ["#camera_auto_detect=0", "camera_auto_detect=1"]),
        (f"{setup.BEGIN}\ncamera_auto_detect=0\n{setup.END}\n", ["camera_auto_detect=0"]),
        (
            f"camera_auto_detect=0\n{setup.BEGIN}\n[all]\ncamera_auto_detect=1\n{setup.END}\n",
            ["camera_auto_detect=0"],
        ),
    ],
)
def test_setup_keeps_the_owners_camera_detection(
    card: Path, set_up: SetUp, config: str, lines: list[str]
) -> None:
    """A camera of another maker needs camera_auto_detect=0; an earlier setup overrode it."""
    path = card / "boot/firmware/config.txt"
    path.write_text(config)
    for _ in range(2):
        set_up(*RUSTY)
        text = path.read_text()
        assert [line for line in text.splitlines() if "camera_auto_detect" in line] == lines
        assert "\ndtparam=strict_gpiod\n" in text


SERVO_ON_22 = '[motors.steer]\ndriver = "servo"\nsignal = 22\n'


@pytest.mark.parametrize(
    ("pins", "lines"),
    [
        ([12, 13], ["dtoverlay=pwm-2chan,pin=12,func=4,pin2=13,func2=4", "dtparam=audio=off"]),
        ([19, 18], ["dtoverlay=pwm-2chan,pin=18,func=2,pin2=19,func2=2", "dtparam=audio=off"]),
        ([19], ["dtoverlay=pwm,pin=19,func=2", "dtparam=audio=off"]),
        ([22], ["dtoverlay=pwm-gpio,gpio=22"]),
        (
            [18, 22],
            ["dtoverlay=pwm-gpio,gpio=22", "dtoverlay=pwm,pin=18,func=2", "dtparam=audio=off"],
        ),
    ],
    ids=str,
)
def test_setup_writes_and_removes_the_overlays_of_the_kernel_pwm(
    card: Path, set_up: SetUp, pins: list[int], lines: list[str]
) -> None:
    firmware = card / setup.FIRMWARE  # Debian's package writes config.txt from its -custom
    firmware.parent.mkdir(parents=True, exist_ok=True)
    firmware.touch()
    set_up(*RUSTY)
    config, profile = card / "boot/firmware/config.txt", card / raspberry_pi_os.PROFILE
    before, text = config.read_text().splitlines(), profile.read_text()
    for enable, gpio in zip((18, 25), (one for one in pins if one != 22), strict=False):
        text = text.replace(f"\nenable = {enable}", f"\nenable = {gpio}")
    if 22 in pins:
        steer, rest = text.index("[motors.steer]"), text.index("[battery]")
        text = text[:steer] + SERVO_ON_22 + text[rest:]
    profile.write_text(f'{text}\n[pins]\nbackend = "linux"\npwm = {pins}\n')
    set_up()
    after = config.read_text().splitlines()
    assert [line for line in after if line not in before] == lines
    assert after.index(setup.BEGIN) < after.index(lines[0]) < after.index(setup.END)
    assert set(lines) <= set(Path(f"{firmware}-custom").read_text().splitlines())
    profile.write_text(profile.read_text().replace(f"pwm = {pins}", "pwm = []"))
    set_up()
    assert config.read_text().splitlines() == before


@pytest.mark.parametrize(
    ("board", "told"), [("rc-esc", True), ("rc-esc-hat", True), ("l298n", False)]
)
def test_setup_prints_how_to_teach_an_esc_its_ends(set_up: SetUp, board: str, told: bool) -> None:
    said = set_up(f"--board={board}", "--name=Rusty").out
    assert ("No program here sends a full pulse" in said) == told
    assert ("Car, Calibrate" in said) == told


def test_second_setup_writes_nothing(card: Path, profile: Path, set_up: SetUp) -> None:
    before = all_files(card)
    assert set_up(*RUSTY).out == "" and all_files(card) == before


def test_setup_changes_only_the_name_of_a_present_profile(set_up: SetUp, profile: Path) -> None:
    profile.write_text(profile.read_text().replace("brake_s = 0.2", "brake_s = 0.1"))
    set_up()
    assert profiles.load(profile).car.name == "Rusty"
    set_up("--name=Old-Rusty")
    changed = profiles.load(profile)
    drive = changed.motors.drive
    assert changed.car.name == "Old-Rusty"
    assert isinstance(drive, L298n) and drive.brake_s == 0.1


def test_undo_leaves_the_profile_only(card: Path, set_up: SetUp, profile: Path, ran: Ran) -> None:
    set_up("--undo")
    left = all_files(card)
    assert left.pop(raspberry_pi_os.PROFILE) and left == {"boot/firmware/config.txt": CONFIG_TXT}
    units = (*raspberry_pi_os.UNITS, raspberry_pi_os.PORTAL, raspberry_pi_os.SMART_HOME)
    assert ran.calls == [
        ("systemctl", "disable", "--quiet", "--now", *units),
        ("nmcli", "connection", "delete", "id", "fpvcar-own"),
    ]


def test_setup_asks_for_board_and_name(
    card: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["l298n", "Rusty", ""])
    asked = []

    def read(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("builtins.input", read)
    assert setup.ask("", "", card) == setup.Answers("l298n", "Rusty")
    assert len(asked) == 2 and "l298n" in asked[0] and "Elbow" in asked[1]
    said = capsys.readouterr().out
    assert " and nothing that steers, behind an MX1508 module\n" in said, "whole"
    assert setup.ask("l298n", "", card).name == "Elbow"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--board=l29", "--name=x"], 'board "l29": expected one of .*l298n'),
        (["--board=bench"], 'board "bench": expected one of'),
        (["--name=x"], "no board: give --board, one of .*l298n"),
        (["--board=l298n", "--name=my car"], 'name "my car": expected 1 to 24 letters'),
        (["--board=l298n", "--name=-x"], "inner hyphens"),
        (["--board=l298n", f"--name={'x' * 25}"], "1 to 24 letters"),
    ],
)
def test_setup_refuses_a_bad_answer_and_writes_nothing(
    card: Path, set_up: SetUp, words: list[str], says: str
) -> None:
    before = all_files(card)
    assert re.search(says, set_up(*words, status=2).err)
    assert all_files(card) == before


def test_setup_does_not_change_a_refused_profile(card: Path, set_up: SetUp, profile: Path) -> None:
    profile.write_text(profile.read_text().replace("enable = 18", "enable = 17"))
    before = all_files(card)
    assert re.search("GPIO 17 is already used", set_up("--name=Dusty", status=2).err)
    assert all_files(card) == before
    set_up("--board=l298n", "--name=Dusty")


def test_setup_refuses_pigpiod_on_a_pi_5(card: Path, set_up: SetUp) -> None:
    path, model = card / raspberry_pi_os.PROFILE, card / raspberry_pi_os.MODEL
    set_up(*RUSTY)
    path.write_text(f'{path.read_text()}\n[pins]\nbackend = "pigpio"\n')
    model.parent.mkdir(parents=True)
    model.write_text("Raspberry Pi 5 Model B Rev 1.0\0")
    before = all_files(card)
    assert re.search(
        'car.toml: pins.backend = .* expected "linux"', set_up("--name=Dusty", status=2).err
    )
    assert all_files(card) == before
    set_up("--board=l298n", "--name=Dusty")


@pytest.mark.parametrize("name", sorted(setup.boards()))
def test_shipped_board_profile_takes_a_name(name: str) -> None:
    toml = setup.boards()[name].read_text()
    new = setup.named(toml, "Rusty")
    assert new.count('"Rusty"') == 1
    assert profiles.load(setup.boards()[name]).camera.source != "bench"
    assert len(new.splitlines()) == len(toml.splitlines())


def test_profile_without_a_name_line_is_refused() -> None:
    with pytest.raises(ConfigError, match="no line name"):
        setup.named("[car]\n[motors]\nname = 'x'\n", "Rusty")


def test_linux_backend_starts_no_pin_daemon(
    card: Path,
    profile: Path,
    ran: Ran,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran.refused.add(raspberry_pi_os.PIN_DAEMON)
    monkeypatch.setattr(backends, "pins_backend", lambda profile: "linux")
    setup.start(setup.Answers("l298n", "Rusty"), card)
    assert {("modprobe", "i2c-dev"), ("modprobe", "videodev")} <= set(ran.calls)
    assert not any(raspberry_pi_os.PIN_DAEMON in argv for argv in ran.calls)
    assert "no pin daemon" not in capsys.readouterr().out


@pytest.mark.parametrize("there", [True, False])
def test_setup_starts_the_units_that_are_there(
    card: Path, set_up: SetUp, ran: Ran, there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    ran.works = there
    set_up(*RUSTY)
    capsys.readouterr()
    setup.start(setup.Answers("l298n", "Rusty"), card)
    assert ("hostnamectl", "set-hostname", "rusty") in ran.calls
    assert ("sysctl", "--quiet", f"--load={card / setup.SYSCTL}") in ran.calls
    assert ("systemctl", "restart", *raspberry_pi_os.UNITS) in ran.calls
    said = capsys.readouterr().out
    assert ("no pin daemon here" in said) is not there
    assert ("systemctl status fpvcar" in said) is not there


def edited(profile: Path, old: str, new: str) -> str:
    """Edit a profile; return the new text."""
    profile.write_text(profile.read_text().replace(old, new))
    return profile.read_text()


def test_other_board_keeps_an_edited_profile_and_prints_the_difference(
    profile: Path, set_up: SetUp
) -> None:
    first = edited(profile, "brake_s = 0.2", "brake_s = 0.1")
    said = set_up("--board=mx1508", "--name=Rusty").out
    kept, later = profile.with_name("car.toml.1"), profile.with_name("car.toml.2")
    assert kept.read_text() == first and kept.stat().st_mode & 0o777 == 0o644
    assert profiles.load(profile).motors == profiles.load(setup.boards()["mx1508"]).motors
    assert re.search(r"^-brake_s = 0\.1", said, re.M) and f"as {kept}" in said
    set_up(*RUSTY)
    second = edited(profile, "brake_s = 0.2", "brake_s = 0.3")
    set_up("--board=mx1508", "--name=Rusty")
    assert later.read_text() == second and kept.read_text() == first


@pytest.mark.parametrize("words", [["--board=mx1508", "--name=Dusty"], ["--name=Dusty"]])
def test_profile_without_edits_is_not_kept(profile: Path, set_up: SetUp, words: list[str]) -> None:
    set_up(*words)
    assert profiles.load(profile).car.name == "Dusty"
    assert [path.name for path in profile.parent.iterdir()] == ["car.toml"]


def test_unreadable_profile_is_kept_byte_for_byte(profile: Path, set_up: SetUp) -> None:
    profile.write_bytes(b"\xff not TOML [[[")
    set_up(*RUSTY)
    assert profile.with_name("car.toml.1").read_bytes() == b"\xff not TOML [[["


def test_cloud_init_keeps_the_host_name_where_it_is_installed(card: Path, set_up: SetUp) -> None:
    (card / setup.CLOUD).parent.mkdir(parents=True)
    set_up(*RUSTY)
    assert "\npreserve_hostname: true\n" in (card / setup.CLOUD).read_text()
    setup.undo(card)
    assert not (card / setup.CLOUD).exists()


def test_journal_is_kept_on_request_until_undo(card: Path, set_up: SetUp, profile: Path) -> None:
    assert not (card / setup.JOURNAL).exists()
    set_up("--keep-journal")
    assert "\nStorage=persistent\n" in (card / setup.JOURNAL).read_text()
    image = "40-rpi-volatile-storage.conf"
    assert sorted([image, Path(setup.JOURNAL).name])[-1] != image, "the later file wins"
    set_up()
    assert (card / setup.JOURNAL).exists()
    setup.undo(card)
    assert not (card / setup.JOURNAL).exists()


def test_setup_announces_the_new_name_and_accepts_the_old_one(
    card: Path, set_up: SetUp, ran: Ran
) -> None:
    ran.refused.add("refused")
    set_up(*RUSTY)
    old_names = card / raspberry_pi_os.RUNTIME / OLD_NAMES
    old_names.parent.mkdir(parents=True)
    setup.start(setup.Answers("", "refused"), card)
    assert not old_names.exists()
    old_names.write_text("raspberrypi")
    setup.start(setup.Answers("", "Rusty", journal=True), card)
    names = ran.calls.index(("hostnamectl", "set-hostname", "rusty"))
    assert ("systemctl", "try-restart", "avahi-daemon.service") in ran.calls[names:]
    assert ran.calls[-1][:2] == ("systemctl", "restart"), "the units read the names at their start"
    assert set(old_names.read_text().split()) == {"raspberrypi", socket.gethostname()}
    assert old_names.stat().st_mode & 0o444 == 0o444
    assert ("systemctl", "restart", "systemd-journald.service") in ran.calls


@pytest.mark.parametrize(
    ("typed", "fitted"), [(("yes", "y"), (2.2, 2.2)), (("no", "yes"), (0, 2.2)), (("", ""), (0, 0))]
)
def test_setup_asks_for_the_resistor_of_each_motor_above_its_bridge(
    card: Path, typed: tuple[str, ...], fitted: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, lines = [], iter(typed)

    def read(question: str) -> str:
        questions.append(question)
        return next(lines)

    monkeypatch.setattr("builtins.input", read)
    answers = setup.ask("mx1508", "Rusty", card)
    assert len(questions) == 2 and all(
        "2.2 Ω, 4 W, in a lead of motors." in text for text in questions
    )
    setup.write(list(setup.steps(answers, card)))
    motors = profiles.load(card / raspberry_pi_os.PROFILE).motors.pair
    assert tuple(motor.resistor_ohm for motor in motors if isinstance(motor, Mx1508)) == fitted


def test_setup_option_confirms_resistors_and_asks_no_more(card: Path, set_up: SetUp) -> None:
    assert "motors.drive is not driven" in set_up("--board=mx1508", "--name=Rusty").out
    set_up("--resistors")
    before = all_files(card)
    assert before[raspberry_pi_os.PROFILE].count("resistor_ohm = 2.2") == 2
    assert not set_up().out and all_files(card) == before


def test_setup_switches_the_guard_on_for_a_car_with_range_sensors(
    set_up: SetUp, profile: Path
) -> None:
    """A mode in the profile stays, and a car without range sensors gets none."""
    assert "[guard]" not in profile.read_text()
    sensor = f"{profile.read_text()}\n[sensors.tof.front]\npower = 4\n"
    profile.write_text(sensor)
    assert profiles.load(profile).guard.mode == "off", "an upgrade changes nothing"
    set_up()
    guard = profiles.load(profile).guard
    assert guard.mode == "limit" and not guard.measured
    profile.write_text(f'{sensor}\n[guard]\nmode = "warn"\n')
    set_up()
    assert profiles.load(profile).guard.mode == "warn"


@pytest.mark.parametrize("name", setup.boards())
def test_shipped_car_with_range_sensors_has_the_guard_on(name: str) -> None:
    profile = profiles.load(setup.boards()[name])
    sensors = any(profile.sensors.every()) and not profile.rig.loops
    assert profile.guard.mode == ("limit" if sensors else "off")
    assert profile.guard.measured is not sensors

"""The systemd units: systemd's own verdict on them, and on their exposure."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from fpvcar.cli import mqtt, setup
from fpvcar.cli.command_line import parser
from fpvcar.devices.linux import pins_off
from fpvcar.wheels.pins_off_client import MOTOR_PINS
from fpvcar.wifi.radio import OWN_ADDRESS
from fpvsites.__main__ import STATE
from fpvsites.__main__ import command_line as sites_command_line
from fpvstation.__main__ import command_line

UNITS = Path(__file__).resolve().parent.parent / "systemd"
OURS = (
    "fpvcar.service",
    "fpvcar-wheels.service",
    "fpvcar-pins-off@.service",
    "fpvcar-network.service",
    "fpvcar-mqtt.service",
    "fpvcar-portal.service",
    "fpvcar-first-boot.service",
)
STATION = ("fpvstation.service", "fpvstation-verify.service")
SITES = ("fpvsites.service", "fpvsites-page.service")
KINDS = ("service", "socket", "timer")
NEWER = ("RestartSteps=", "RestartMaxDelaySec=")
"""Bookworm's systemd 252 logs that these are unknown, and restarts without them."""
STOCK = """\
[Unit]
Description=Daemon required to control GPIO pins via pigpio
[Service]
ExecStart=/usr/bin/pigpiod -l
ExecStop=/bin/systemctl kill pigpiod
Type=forking
[Install]
WantedBy=multi-user.target
"""
"""The unit pigpiod.service as shipped in Debian Bookworm."""
EXPOSED_MOST = {**dict.fromkeys((*OURS, *STATION, *SITES), 2.0), "pigpiod.service": 3.0}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The units, complete, with programs that exist."""
    for path in (one for kind in KINDS for one in UNITS.rglob(f"*.{kind}")):
        (tmp_path / path.name).write_text(_known(path.read_text()))
    drop_in = (UNITS / "pigpiod.service.d" / "fpvcar.conf").read_text()
    (tmp_path / "pigpiod.service").write_text(_known(f"{STOCK}\n{drop_in}"))
    return tmp_path


def _known(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith(NEWER)]
    for program in (
        "/usr/bin/fpvcar",
        "+/usr/bin/fpvcar",
        "/usr/bin/fpvstation",
        "/usr/bin/fpvsites",
        "/usr/bin/pigpiod",
        "pigpiod",
    ):
        lines = [line.replace(f"={program} ", "=/bin/true ") for line in lines]
    return "\n".join(lines) + "\n"


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, timeout=60)


def test_systemd_understands_every_line(tree: Path) -> None:
    units = [tree / "pigpiod.service", *(tree / one for one in (*OURS, *STATION, *SITES))]
    names = ("fpvcar-pins-off.socket", "fpvcar-portal.socket", "fpvstation-verify.timer")
    others = [tree / name for name in names]
    done = analyze("verify", "--man=no", *units, *others)
    ours = [line for line in done.stderr.splitlines() if str(tree) in line]
    assert ours == [] and done.returncode == 0, done.stderr


def test_unknown_unit_line_is_reported(tree: Path) -> None:
    unit = tree / "fpvcar.service"
    unit.write_text(unit.read_text().replace("ProtectClock=yes", "ProtectClok=yes"))
    assert re.search("Unknown key.*ProtectClok", analyze("verify", unit).stderr)


@pytest.mark.parametrize("name", EXPOSED_MOST)
def test_unit_exposure_stays_within_limit(tree: Path, name: str) -> None:
    most = EXPOSED_MOST[name]
    done = analyze(
        "security", "--offline=true", "--no-pager", f"--threshold={most * 10:.0f}", tree / name
    )
    assert "Overall exposure level" in done.stdout and done.returncode == 0, done.stdout


def test_port_80_is_open_in_the_own_network_only() -> None:
    socket, service = (UNITS / f"portal/fpvcar-portal.{kind}" for kind in ("socket", "service"))
    assert re.findall("^ListenStream=(.*)$", socket.read_text(), re.M) == [f"{OWN_ADDRESS}:80"]
    for path in (socket, service):
        allowed = dict(re.findall("^IPAddress(Allow|Deny)=(.*)$", path.read_text(), re.M))
        assert allowed == {"Deny": "any", "Allow": "10.42.0.0/24"}, path.name
    assert "CapabilityBoundingSet=\n" in service.read_text(), "systemd opens the port"


def test_fpvcar_unit_permits_capset_for_camera() -> None:
    """setpriv (child.py) calls capset, a privileged call in systemd's list."""
    unit = (UNITS / "fpvcar.service").read_text()
    allowed = unit[unit.index("SystemCallFilter=~@privileged") :]
    assert re.search(r"^SystemCallFilter=[^~\n]*\bcapset\b", allowed, re.M)


RESTARTING = [one for one in UNITS.rglob("*") if "\nRestart=" in _text(one)]


@pytest.mark.parametrize("path", RESTARTING, ids=lambda path: path.name)
def test_restart_delay_of_units_grows(path: Path) -> None:
    """For example, a pin daemon on an unknown board must not restart five times a second."""
    text = path.read_text()
    ends_well = path.name == "fpvcar-first-boot.service"  # with the answers
    assert f"\nRestart={'on-failure' if ends_well else 'always'}\n" in text
    assert "\nStartLimitIntervalSec=0\n" in text
    (most_s,) = re.findall("^RestartMaxDelaySec=(.+)$", text, re.M)
    assert "\nRestartSteps=6\n" in text and 5 <= int(most_s) <= 60


@pytest.mark.parametrize("path", RESTARTING, ids=lambda path: path.name)
def test_restart_delay_begins_again_after_ten_quiet_minutes(path: Path) -> None:
    """The timer is bound to the unit: a restart within the ten minutes ends it."""
    (words,) = re.findall("^ExecStartPost=-\\+(.*calm.*)$", path.read_text(), re.M)
    program, *options = shlex.split(words)
    assert program == "/usr/bin/systemd-run" and "--on-active=10min" in options
    assert "--timer-property=BindsTo=%n" in options
    assert not any("After=" in option for option in options), "each would wait for the other"
    assert options[-3:] == ["/usr/bin/systemctl", "reset-failed", "%n"]


CLASSES = {
    "char-video4linux": "videodev",
    "char-media": "videodev",  # it needs mc, which makes this class
    "char-i2c": "i2c-dev",
    "char-gpiochip": "",
    "char-dma_heap": "",
    "char-drm": "",
    "char-alsa": "",  # the display's driver has sound, too
}
"""Class of devices -> its module, "" if it is in the kernel or loaded for the display."""


def test_device_classes_of_units_are_known_at_their_start() -> None:
    """systemd looks a class up in /proc/devices when the unit starts: a camera plugged in later is
    out of reach unless the class was there."""
    loaded = setup.OWN_FILES[setup.MODULES].splitlines()
    for path in UNITS.rglob("fpvcar*.service"):
        for name in re.findall("^DeviceAllow=(char-\\S+)", path.read_text(), re.M):
            assert not CLASSES[name] or CLASSES[name] in loaded, name


def test_units_start_the_pins_off_program() -> None:
    """The program of the helper is a link that the package makes to pins_off.py."""
    started = "/usr/bin/python3 -IS /usr/lib/fpvcar/pins-off"
    drop_in = (UNITS / "pigpiod.service.d" / "fpvcar.conf").read_text()
    assert f"\nExecStopPost={started}\n" in drop_in
    helper = (UNITS / "fpvcar-pins-off@.service").read_text()
    assert f"\nExecStart={started}\n" in helper
    wheels = (UNITS / "fpvcar-wheels.service").read_text()
    assert f"\nExecStopPost=-{started}\n" in wheels
    for unit in (drop_in, helper, wheels):
        assert f"\nDeviceAllow={pins_off.DEVICE} rw\n" in unit
        assert "\nDeviceAllow=char-i2c rw\n" in unit


def test_unit_of_mqtt_starts_a_valid_command_line_with_its_own_state() -> None:
    unit = (UNITS / "mqtt/fpvcar-mqtt.service").read_text()
    (line,) = re.findall("^ExecStart=/usr/bin/fpvcar (.*)$", unit, re.M)
    arguments = parser().parse_args(line.split())
    assert (arguments.act, arguments.port) == (mqtt.main, 8080)
    for name in ("User", "StateDirectory"):
        assert f"\n{name}=fpvcar-mqtt\n" in unit
    assert "\nRestartPreventExitStatus=2\n" in unit, "the status of a refused profile"
    assert "SupplementaryGroups" not in unit, "no device, no socket of the motors"


def test_pins_off_units_may_read_motor_pins() -> None:
    """/run/fpvcar is for the group alone, and no unit may override that."""
    wheels = (UNITS / "fpvcar-wheels.service").read_text()
    assert "\nGroup=fpvcar\n" in wheels
    for place in ("pigpiod.service.d/fpvcar.conf", "fpvcar-pins-off@.service"):
        unit = (UNITS / place).read_text()
        assert re.search(r"^SupplementaryGroups=.*\bfpvcar\b", unit, re.M), place


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops root's rights")
def test_pins_off_after_pigpiod_may_read_motor_pins(tree: Path, tmp_path: Path) -> None:
    """Root without CAP_DAC_OVERRIDE can read files of wheels only through its group."""
    wheels_uid, group_gid = 64_001, 64_002
    runtime = tmp_path / "run"
    runtime.mkdir()
    (runtime / MOTOR_PINS).write_text("\n")
    (runtime / MOTOR_PINS).chmod(0o640)
    for path in (runtime / MOTOR_PINS, runtime):
        os.chown(path, wheels_uid, group_gid)
    runtime.chmod(0o2750)  # the mode in fpvcar.tmpfiles
    unit = (tree / "pigpiod.service").read_text()
    (may,) = re.findall("^CapabilityBoundingSet=(.+)$", unit, re.M)
    kept = [f"+{name.removeprefix('CAP_').lower()}" for name in may.split()]
    (joins,) = re.findall("^SupplementaryGroups=(.*)$", unit, re.M) or [""]
    groups = str(group_gid) if "fpvcar" in joins.split() else "0"
    done = subprocess.run(
        [
            "setpriv",
            f"--bounding-set={','.join(['-all', *kept])}",
            "--inh-caps=-all",
            f"--groups={groups}",
            "python3",
            "-IS",
            pins_off.__file__,
        ],
        env={"RUNTIME_DIRECTORY": str(runtime), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "inputs now" in done.stderr, done.stderr


def test_hung_pigpiod_is_killed_even_if_pins_off_fails() -> None:
    """systemd.service(5): ExecStopPost= runs even if ExecStart= failed or timed out;
    ExecStartPost= does not."""
    helper = (UNITS / "fpvcar-pins-off@.service").read_text()
    kill = "systemctl kill --kill-whom=main --signal=SIGKILL pigpiod.service"
    (started_by,) = re.findall(f"^(.*) {re.escape(kill)}'$", helper, re.M)
    assert started_by == """ExecStopPost=-+/bin/sh -c '[ "$$EXIT_STATUS" = 75 ] ||"""


ASKED_US = 5_000_000
"""Time of the request to the helper, since the boot."""


@pytest.mark.parametrize("status", ["0", "1", "KILL", str(pins_off.NEWER)])
@pytest.mark.parametrize("wheels", ["active", "deactivating", "activating", ""])
@pytest.mark.parametrize("daemon", ["not-found", "loaded"])
@pytest.mark.parametrize("since_us", ["4000000", "6000000", ""])
def test_hung_wheels_is_killed_with_or_without_pigpiod(
    tmp_path: Path, daemon: str, wheels: str, since_us: str, status: str
) -> None:
    """The kernel may own the lines of wheels although a daemon is installed.

    A wheels that is starting holds no pin on, and would be killed for ever where starting takes
    long. A wheels that started after the request to the helper is not the one that hung. If it
    has the pins already, nothing is done.
    """
    calls, fake = tmp_path / "calls", tmp_path / "systemctl"
    fake.write_text(
        f"""#!/bin/sh
        case $* in
            *ActiveState*wheels*) echo "{wheels}" ;;
            *ActiveEnterTimestampMonotonic*wheels*) echo "{since_us}" ;;
            *InactiveExitTimestampMonotonic*%n) echo {ASKED_US} ;;
            show*) echo "{daemon}" ;;
            *) echo "$@" >>"{calls}" ;;
        esac
        [ {daemon} = loaded ]
        """
    )
    fake.chmod(0o755)
    helper = (UNITS / "fpvcar-pins-off@.service").read_text()
    for line in re.findall(r"^ExecStopPost=-\+(.*)$", helper, re.M):
        words = shlex.split(line.replace("$$", "$"))
        words[0] = words[0].removeprefix("/usr/bin/")
        path = f"{tmp_path}:/usr/bin:/bin"
        env = {"PATH": path, "EXIT_STATUS": status}
        subprocess.run(words, env=env, check=False, timeout=10)
    assert f"\nSuccessExitStatus={pins_off.NEWER}\n" in helper
    if status == str(pins_off.NEWER):
        assert not calls.exists()
        return
    told = ["kill --kill-whom=main --signal=SIGKILL pigpiod.service"]
    if wheels != "activating" and int(since_us or "0") <= ASKED_US:
        told.append("kill --signal=SIGKILL fpvcar-wheels.service")
    assert calls.read_text().splitlines() == told


def test_pins_off_program_loads_few_modules(tmp_path: Path) -> None:
    done = subprocess.run(
        ["python3", "-vIS", pins_off.__file__],
        capture_output=True,
        text=True,
        env={"RUNTIME_DIRECTORY": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0 and "no pin was taken" in done.stderr, done.stderr
    loaded = set(re.findall(r"^import '?([\w.]+)", done.stderr, re.M))
    assert "mmap" in loaded and not loaded & {"typing", "re", "enum", "collections"}


def test_systemd_makes_the_users(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    done = subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", UNITS / "fpvcar.sysusers"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    users = (tmp_path / "etc" / "passwd").read_text()
    assert {line.split(":")[0] for line in users.splitlines()} == {
        "fpvcar",
        "fpvcar-wheels",
        "fpvcar-pins-off",
        "fpvcar-network",
        "fpvcar-mqtt",
    }


def test_users_and_directory_of_units_are_created(tree: Path) -> None:
    users = (UNITS / "fpvcar.sysusers").read_text()
    for name in OURS:
        for line in (tree / name).read_text().splitlines():
            key, _, values = line.partition("=")
            if key in ("User", "Group", "SupplementaryGroups"):
                for value in values.split():
                    assert f"\nu {value} " in users or f"\ng {value} " in users, line
    (made,) = (
        line.split()
        for line in (UNITS / "fpvcar.tmpfiles").read_text().splitlines()
        if not line.startswith("#")
    )
    assert made == ["d", "/run/fpvcar", "2750", "fpvcar-wheels", "fpvcar", "-"]
    assert Path(pins_off.PINS).parent == Path(made[1])


def test_install_script_has_files_of_the_package() -> None:
    """The program that goes back to the old version, and the files of a station and of a card
    image, are exceptions."""
    script = (UNITS.parent / "tools" / "install.sh").read_text()
    (files,) = re.findall(r"^files\(\) \{\n.*?^\}\n", script, re.M | re.S)
    listed = subprocess.run(
        ["bash", "-euc", f"units=/u\n{files}files"],
        cwd=UNITS.parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    installed = {line.split()[0] for line in listed.splitlines()}
    ours = {
        str(path.relative_to(UNITS.parent))
        for path in UNITS.rglob("*")
        if path.is_file()
        and not path.name.startswith(("fpvstation", "fpvsites", "fpvcar-first-boot"))
    }
    assert installed == ours - {"systemd/upgrade"}


def test_station_user_home_is_state_directory(tmp_path: Path) -> None:
    """So `sudo -Hu fpvstation fpvstation pair` works on the same files."""
    (tmp_path / "etc").mkdir()
    subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", UNITS / "fpvstation.sysusers"],
        capture_output=True,
        check=True,
    )
    (user,) = (tmp_path / "etc" / "passwd").read_text().splitlines()
    name, _, _, _, _, home, _ = user.split(":")
    for unit in STATION:
        text = (UNITS / unit).read_text()
        assert f"\nUser={name}\n" in text and f"\nStateDirectory={name}\n" in text
        assert home == f"/var/lib/{name}" and f"=STORE={home}/fpvstation" in text
        assert "\nUnsetEnvironment=STATE_DIRECTORY\n" in text


def test_station_units_start_valid_command_lines() -> None:
    for unit in STATION:
        (line,) = re.findall("^ExecStart=(.*)$", (UNITS / unit).read_text(), re.M)
        program, *words = line.replace("${STORE}", "/srv").replace("$OPTIONS", "").split()
        assert program == "/usr/bin/fpvstation"
        assert command_line().parse_args(words).store == Path("/srv")


def test_sites_units_start_valid_command_lines_before_the_network() -> None:
    for unit in SITES:
        text = (UNITS / unit).read_text()
        (line,) = re.findall("^ExecStart=(.*)$", text, re.M)
        (options,) = re.findall('^Environment="OPTIONS=(.*)"$', text, re.M) or [""]
        program, *words = line.replace("$OPTIONS", options).split()
        assert program == "/usr/bin/fpvsites"
        assert sites_command_line().parse_args(words).state == STATE
        assert f"\nStateDirectory={STATE.name}\n" in text and "\nUser=fpvsites\n" in text
    gate, page = ((UNITS / unit).read_text() for unit in SITES)
    assert "\nBefore=network-pre.target\n" in gate and "\nCapabilityBoundingSet=\n" in page
    assert f"ConditionPathExists={STATE}/password.json" in page

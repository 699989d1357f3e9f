"""Verb `fpvcar setup`: turns a Raspberry Pi into a car. Asks for the board and the car's name.

    answers -> steps (each a file and its required text) -> written -> units started

Every step can be repeated; files that are already right stay unchanged. `--undo` reverts everything
but the profile, which the package's purge removes.
"""

import contextlib
import difflib
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fpvcar.calibration.export import with_key
from fpvcar.cli.profile import heading, shipped
from fpvcar.config import ConfigError, Profile, profiles
from fpvcar.config.pwm import over_peak
from fpvcar.config.raspberry_pi_os import (
    CONFIG_TXT,
    PIN_DAEMON,
    PORTAL,
    PROFILE,
    RUNTIME,
    SMART_HOME,
    UNITS,
    pwm_lines,
)
from fpvcar.devices import backends
from fpvcar.runtime import files
from fpvcar.runtime.paths import OLD_NAMES
from fpvcar.runtime.texts import Phrase
from fpvcar.wifi.radio import OWN, OWN_ADDRESS

SETUP_COUNTRY = Phrase(
    "setup_country",
    'country "{country}": expected its two capital letters in ISO 3166, as in DE or GB',
)
SETUP_BOARD = Phrase("setup_board", 'board "{board}": expected one of {boards}')
SETUP_NAME = Phrase(
    "setup_name",
    'name "{name}": expected 1 to 24 letters, digits and inner hyphens, as it becomes NAME.local',
)

BEGIN, END = "# fpvcar: begin", "# fpvcar: end"
BLOCK = f"""\
{BEGIN}
[all]
dtparam=i2c_arm=on
{{camera}}
dtparam=watchdog=on
# A pin becomes an input when its owner dies.
dtparam=strict_gpiod
{{pwm}}
{END}
"""
DETECT = re.compile(r"(?m)^camera_auto_detect=[01]")
MODULES = "etc/modules-load.d/fpvcar.conf"
WIFI = "etc/NetworkManager/conf.d/fpvcar.conf"
NAMES = "etc/NetworkManager/dnsmasq-shared.d/fpvcar.conf"
SYSCTL = "etc/sysctl.d/90-fpvcar.conf"
AVAHI = "etc/avahi/services/fpvcar.service"
CLOUD = "etc/cloud/cloud.cfg.d/99-fpvcar.cfg"
JOURNAL = "etc/systemd/journald.conf.d/90-fpvcar.conf"
COUNTRY = "etc/modprobe.d/fpvcar.conf"
FIRMWARE = "etc/default/raspi-firmware"
"""Debian's package of this name writes config.txt anew at each update of the kernel, and appends
the file FIRMWARE-custom."""
COUNTRIES = Path("/usr/share/zoneinfo/iso3166.tab")
ANNOUNCED = """\
<?xml version="1.0" standalone="no"?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<!-- Lets base stations find the car: fpvstation cars. -->
<service-group>
  <name replace-wildcards="yes">%h</name>
  <service>
    <type>_fpvcar._tcp</type>
    <port>8081</port>
  </service>
</service-group>
"""
ESC_ENDS = """\
  The ESC, wheels in the air: teach it its ends by its own instructions, with its set button and
  the transmitter that came with it. No program here sends a full pulse. Switch the Pi on first,
  the ESC last. Then the page finds neutral, direction and dead band: menu, Car, Calibrate."""
OWN_FILES = {
    MODULES: "# The units may use the devices of these drivers, also those plugged in later:\n"
    "# sensors on /dev/i2c-N, cameras on /dev/videoN and /dev/mediaN.\ni2c-dev\nvideodev\n",
    WIFI: "# Power save delays some commands by a second or more.\n"
    "[connection]\nwifi.powersave=2\n",
    NAMES: "# In the car's own Wi-Fi every name is the car: a phone opens its page by itself.\n"
    "# No other server is asked, for an IPv6 address neither.\n"
    f"address=/#/{OWN_ADDRESS}\nlocal=/#/\n",
    SYSCTL: "# Retransmit a lost packet 30 ms after a round trip, not 200.\n"
    "# The minus ignores the error of Linux before 6.11.\n-net.ipv4.tcp_rto_min_us = 30000\n",
    AVAHI: ANNOUNCED,
    CLOUD: "# Otherwise cloud-init sets the image's host name again at each start.\n"
    "preserve_hostname: true\n",
    JOURNAL: "# A power cut loses the last 10 s of the journal, not all of it.\n"
    "[Journal]\nStorage=persistent\nSystemMaxUse=64M\nSyncIntervalSec=10\n",
}
"""Files of fpvcar in folders of other packages; CLOUD and JOURNAL only where needed."""
COUNTRY_CODE = re.compile(r"[A-Z]{2}")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,22}[A-Za-z0-9])?")
NAME = re.compile(r'(?m)(^\[car\]\n(?:[^\[\n].*\n|\n)*?name\s*=\s*)"[^"\n]*"')
"""Line of a profile with the car's name, and the lines before it."""


@dataclass(frozen=True)
class Answers:
    """Answers to the questions. `board` "": the profile stays unchanged. `journal`: keep it on the
    card. `country` "": the Wi-Fi's country stays unchanged. `keys`: values of the profile."""

    board: str
    name: str
    keys: tuple[tuple[str, str], ...] = ()
    journal: bool = False
    country: str = ""


def boards() -> dict[str, Path]:
    """Return the profiles that ship with the program, by name, except the bench's."""
    return {name: path for name, path in shipped().items() if name != "bench"}


def countries() -> list[str]:
    """Return the codes of all countries (ISO 3166), [] where the system has no list of them."""
    if not COUNTRIES.exists():
        return []
    lines = COUNTRIES.read_text(encoding="utf-8").splitlines()
    return [line[:2] for line in lines if line and not line.startswith("#")]


def ask(
    board: str, name: str, root: Path, country: str = "", resistors: bool = False, asks: bool = True
) -> Answers:
    """Ask for values that the options left open; an existing profile stays unless a board is given.
    Without `asks` take the defaults.

    Raises ConfigError for an unknown board or country, an invalid name, and a refused profile,
    before any file is written.
    """
    if country and not (COUNTRY_CODE.fullmatch(country) and country in (countries() or country)):
        raise ConfigError(SETUP_COUNTRY(country=country))
    available, profile = boards(), root / PROFILE
    if not board and not profile.exists():
        for board_name, path in available.items():
            print(f"  {board_name:16}{heading(path)}")
        board = _typed(f"Which board ({', '.join(available)})? ", asks)
    if board and board not in available:
        raise ConfigError(SETUP_BOARD(board=board, boards=", ".join(available)))
    if not board and not profile.exists():
        raise ConfigError(f"no board: give --board, one of {', '.join(available)}")
    source = available[board] if board else profile
    chosen = profiles.load(source)
    if reason := backends.daemon_reason(chosen, root):
        raise ConfigError(f"{profile}: {reason}")
    default = chosen.car.name
    if not name:
        name = _typed(f"The car's name ({default})? ", asks) or default
    if not HOST.fullmatch(name):
        raise ConfigError(SETUP_NAME(name=name))
    fitted = _resistors(chosen, root, resistors, asks)
    keys = (*fitted, *_guard(chosen, profiles.read_toml(source)))
    return Answers(board, name, keys, country=country)


def _typed(question: str, asks: bool) -> str:
    """Return the answer of a person, or "" for the default."""
    return input(question).strip() if asks else ""


def _resistors(profile: Profile, root: Path, fitted: bool, asks: bool) -> Iterator[tuple[str, str]]:
    """Ask for the resistor of each motor that is not driven without one, unless all are `fitted`;
    yield keys and values."""
    for over in over_peak(profile, backends.most_hz(backends.backend_of(profile, root))):
        ohm = f"{over.resistor_ohm:g}"
        needed = f"{ohm} Ω, {over.resistor_w(over.resistor_ohm)} W, in a lead of {over.place}"
        question = f"Is the resistor soldered in ({needed}; yes, no)? "
        if fitted or _typed(question, asks) in ("yes", "y"):
            yield f"{over.place}.resistor_ohm", ohm
        else:
            print(f"  {over}")


def _guard(profile: Profile, raw: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the keys that switch the guard on where range sensors have none yet."""
    measures = any(profile.sensors.every()) or profile.depth.source != "none"
    if "guard" in raw or profile.rig.loops or not measures:
        return ()
    return ("guard.mode", '"limit"'), ("guard.measured", "false")


def steps(answers: Answers, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file that setup owns or changes, with its required text."""
    profile = root / PROFILE
    source = boards()[answers.board] if answers.board else profile
    toml = named(source.read_text(encoding="utf-8"), answers.name)
    for key, value in answers.keys:
        toml = with_key(toml, key, value)
    yield profile, toml
    yield from system_files(root, answers.journal, profiles.load(source).pins.pwm)
    if answers.country:
        yield (
            root / COUNTRY,
            "# Channels and transmission power that the Wi-Fi's country permits.\n"
            f"options cfg80211 ieee80211_regdom={answers.country}\n",
        )


def system_files(
    root: Path, journal: bool = False, pwm: Sequence[int] = ()
) -> Iterator[tuple[Path, str]]:
    """Yield the files that are the same for every car with the kernel's PWM on these pins."""
    for name, text in OWN_FILES.items():
        path = root / name
        if name == CLOUD and not path.parent.is_dir():
            continue  # an image without cloud-init
        if name != JOURNAL or journal or path.exists():
            yield path, text
    if (root / FIRMWARE).exists():
        custom = root / f"{FIRMWARE}-custom"
        yield custom, with_block(custom.read_text() if custom.exists() else "", pwm)
    for name in CONFIG_TXT:
        path = root / name
        if path.exists():
            yield path, with_block(path.read_text(), pwm)
            return


def named(toml: str, name: str) -> str:
    """Return a profile with another name of the car; comments stay."""
    new, count = NAME.subn(rf'\g<1>"{name}"', toml, count=1)
    if not count or tomllib.loads(new)["car"]["name"] != name:
        raise ConfigError('the profile has no line name = "..." below [car]')
    return new


def keep_edited(profile: Path, new: str) -> None:
    """Save a profile that was edited before another one replaces it; print the difference.

    A shipped profile with another name of the car is not saved. Raises OSError.
    """
    if not profile.exists():
        return
    old = profile.read_text(encoding="utf-8", errors="replace")
    shipped_texts = (path.read_text(encoding="utf-8") for path in boards().values())
    if _nameless(old) in map(_nameless, (new, *shipped_texts)):
        return
    number = 1
    while (backup := profile.with_name(f"{profile.name}.{number}")).exists():
        number += 1
    files.write_whole(backup, [profile.read_bytes()], replace=False)
    backup.chmod(0o644)
    lines = (old.splitlines(), new.splitlines(), str(backup), str(profile))
    print(*difflib.unified_diff(*lines, lineterm=""), sep="\n")
    print(f"  kept your edited profile as {backup}: copy lines from it that you still need")


def _nameless(toml: str) -> str:
    return NAME.sub(r"\1", toml, count=1)


def with_block(text: str, pwm: Sequence[int]) -> str:
    """Return config.txt with the block of setup, for pins with the kernel's PWM. A
    camera_auto_detect of the owner stays: cameras of other makers need 0 and a dtoverlay."""
    rest = without_block(text)
    lines = DETECT.findall(rest)
    camera = "" if lines else (DETECT.findall(text) or ["camera_auto_detect=1"])[-1] + "\n"
    overlays = "".join(f"{line}\n" for line in pwm_lines(pwm))
    block = BLOCK.replace("{camera}\n", camera).replace("{pwm}\n", overlays)
    return rest.rstrip("\n") + "\n\n" + block


def without_block(text: str) -> str:
    """Return config.txt without the block that setup added."""
    return re.sub(rf"(?ms)\n*^{BEGIN}$.*?^{END}\n?", "\n", text)


def write(contents: Sequence[tuple[Path, str]]) -> list[Path]:
    """Write only files whose content differs; return their paths. Raises OSError."""
    changed = []
    for path, text in contents:
        if path.exists() and path.read_bytes() == text.encode():
            continue
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
            path.parent.chmod(0o755)  # independent of the umask: services read it
        files.write_whole(path, [text.encode()])
        path.chmod(0o644)
        changed.append(path)
    return changed


def start(answers: Answers, root: Path) -> None:
    """Set the host name, and enable and start the units."""
    host, before = answers.name.lower(), socket.gethostname()
    if not run("hostnamectl", "set-hostname", host):
        print(f"  host name not set: sudo hostnamectl set-hostname {host}")
    elif before != host:
        _accept(before, root)
    # It announces the name that it read at its start.
    run("systemctl", "try-restart", "avahi-daemon.service")
    if answers.journal:
        run("systemctl", "restart", "systemd-journald.service")
    profile = profiles.load(root / PROFILE)
    if backends.i2c_backend(profile) == "linux":
        run("modprobe", "i2c-dev")
    if profile.camera.source != "none":
        run("modprobe", "videodev")
    run("sysctl", "--quiet", f"--load={root / SYSCTL}")
    if answers.country:
        run("iw", "reg", "set", answers.country)
    daemon = backends.pins_backend(profile) == "pigpio"
    if daemon and not run("systemctl", "enable", "--quiet", "--now", PIN_DAEMON):
        print("  no pin daemon here: sudo apt install pigpio (on Bookworm)")
    if not run("systemctl", "enable", "--quiet", "--now", PORTAL):
        print("  in the car's own Wi-Fi no page opens by itself: another program has port 80")
    run("systemctl", "enable", "--quiet", *UNITS)
    if not run("systemctl", "restart", *UNITS):
        print("  not started: see systemctl status fpvcar-wheels fpvcar")


def _accept(name: str, root: Path) -> None:
    """Let the car answer to a former host name, too, until the next reboot: browsers and routers
    still have it."""
    path = root / RUNTIME / OLD_NAMES
    with contextlib.suppress(FileNotFoundError):  # no folder: the package is not installed
        known = path.read_text().split() if path.exists() else []
        files.write_whole(path, [" ".join({*known, name}).encode()])
        path.chmod(0o644)


def undo(root: Path) -> None:
    """Revert the changes of setup outside of its own folder."""
    run("systemctl", "disable", "--quiet", "--now", *UNITS, PORTAL, SMART_HOME)
    run("nmcli", "connection", "delete", "id", OWN)
    for name in (*OWN_FILES, COUNTRY):
        (root / name).unlink(missing_ok=True)
    for name in (*CONFIG_TXT, f"{FIRMWARE}-custom"):
        path = root / name
        if path.exists() and BEGIN in path.read_text():
            write([(path, without_block(path.read_text()))])


def run(*argv: str) -> bool:
    """Run a program; return False if it failed or is missing."""
    if shutil.which(argv[0]) is None:
        return False
    process = subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return process.returncode == 0


def main(arguments: Any) -> int:
    """Run the verb with the parsed `arguments`. Raises ConfigError, OSError."""
    root = arguments.root
    if os.geteuid() != 0 and root == Path("/"):
        raise ConfigError("setup needs root: sudo fpvcar setup")
    if arguments.undo:
        undo(root)
        return 0
    options = arguments.country, arguments.resistors
    answers = ask(arguments.board, arguments.name, root, *options, asks=sys.stdin.isatty())
    carry_out(replace(answers, journal=arguments.keep_journal), root)
    return 0


def carry_out(answers: Answers, root: Path) -> None:
    """Write the files, and start the units if `root` is the running system. Raises OSError."""
    contents = list(steps(answers, root))
    keep_edited(*contents[0])
    changed = write(contents)
    for path in changed:
        print(f"  wrote {path}")
    if profiles.load(root / PROFILE).motors.esc is not None:
        print(ESC_ENDS)
    if root != Path("/"):
        return
    start(answers, root)
    print(f"  {answers.name} is at http://{answers.name.lower()}.local:8080/")
    print("  without a known Wi-Fi network it opens its own: sudo fpvcar network show")
    if any(path.name in ("config.txt", Path(WIFI).name) for path in changed):
        print("  I2C, camera, PWM, watchdog and Wi-Fi change after a reboot: sudo reboot")

"""Parser of `fpvcar`: the verbs and their options. Their implementation: verbs.py."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fpvcar import __version__
from fpvcar.cli import ABOUT, mqtt, remote, verbs
from fpvcar.config import BENCH_PINS
from fpvcar.config.raspberry_pi_os import PROFILE
from fpvcar.datasets import options
from fpvcar.runtime import paths
from fpvcar.runtime.arguments import within

BENCH = paths.HARDWARE / "bench.toml"
ROOT = Path("/")
OWN = f"/{PROFILE} if it exists, else the bench profile"
PORT = within(int, 1, 65534)
"""HTTP port; HTTPS uses the next one."""
Act = Callable[[argparse.Namespace], int]
Verb = Callable[[str, Act, str], argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    """Return the parser with all verbs and their options."""
    top = argparse.ArgumentParser(
        "fpvcar", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"fpvcar {__version__}")
    top.add_argument("-v", "--verbose", action="store_true", help="log debug messages")
    subparsers = top.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, act: Act, text: str) -> argparse.ArgumentParser:
        subparser = subparsers.add_parser(name, help=text, description=text)
        subparser.set_defaults(act=act)
        return subparser

    _services(verb)
    _bench(verb)
    _profiles(verb)
    _setups(verb)
    _doctor(verb)
    _hil(verb)
    _recordings(verb)
    return top


def car_profile() -> Path:
    """Return the profile of this car, or the bench's on any other computer."""
    own = ROOT / PROFILE
    try:
        return own if own.exists() else BENCH
    except PermissionError:
        return own  # it exists: reading it reports why it cannot be read


def _profile(parser: argparse.ArgumentParser, default: Path | None, default_text: str) -> None:
    parser.add_argument(
        "--profile",
        type=Path,
        default=default,
        metavar="FILE",
        help=f"profile of the car (default: {default_text})",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="override one value of the profile, in TOML: --set 'pins.port = 8889'",
    )


def _address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=PORT, default=8080, help="HTTP port (default: 8080); HTTPS: the next"
    )


def _root(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="DIR", help=help_text)


def _services(verb: Verb) -> None:
    """Add the verbs of a car's processes."""
    run = verb("run", verbs.run, "Serve the pages, capture video and drive the car")
    _profile(run, car_profile(), OWN)
    _address(run)
    run.add_argument("--soc", type=Path, help="socket of the emulated chip (set by bench)")
    wheels = verb("wheels", verbs.wheels, "Switch the motors, in a process beside run")
    _profile(wheels, car_profile(), OWN)
    wheels.add_argument(
        "--emulated", action="store_true", help="use the bench's pins, not those of this computer"
    )
    wheels.add_argument(
        "--unsafe",
        action="store_true",
        help="drive even if the kernel may leave a motor on after its process dies",
    )
    camera = verb("camera", verbs.camera, "Capture video (started by run)")
    camera.add_argument(
        "source",
        choices=[*verbs.CAMERAS, *verbs.BENCH_CAMERAS],
        help="SOURCE --help lists its options",
    )
    camera.add_argument("rest", nargs=argparse.REMAINDER, help="options of the source")
    network = verb("network", verbs.network, "Join a known Wi-Fi network, or open the car's own")
    network.description = (
        f"{network.description}. serve: run the service, through NetworkManager. show: print the "
        "current network and, once you agree, the key of the car's own network with a QR code: "
        "sudo fpvcar network show. portal: redirect to the page, started by systemd"
    )
    network.add_argument("action", choices=["serve", "show", "portal"])
    network.add_argument(
        "--key", action="store_true", help="show the key without asking, for a program or printer"
    )
    _profile(network, car_profile(), OWN)
    code = verb("code", verbs.code, "Print the drive code, and a QR code of the page's address")
    code.description = f"{code.description}. On a Pi: sudo fpvcar code"
    code.add_argument("--grown-up", action="store_true", help="print the grown-up code, too")
    code.add_argument("--port", type=PORT, default=8080, help="HTTP port of fpvcar run")
    stop = verb("stop", verbs.stop, "Stop the motors, even if other processes hang")
    stop.description = (
        f"{stop.description}. Kills fpvcar wheels, makes the motor pins inputs and switches off "
        "each PCA9685, both those in the profile and those in use; then calls the root helper."
    )
    _profile(stop, car_profile(), OWN)


def _bench(verb: Verb) -> None:
    bench = verb("bench", verbs.bench, "Start an emulated car and its service")
    _profile(bench, BENCH, "the bench profile")
    _address(bench)
    bench.add_argument(
        "--seed", type=within(int, 0, 999_999), default=1, help="room number (default: 1)"
    )
    bench.add_argument("--browser", action="store_true", help="open the page in a browser")
    log_help = "log the progress of all parts, too"
    bench.add_argument("-v", dest="progress", action="store_true", help=log_help)
    bench.add_argument(
        "--no-stand-in",
        action="store_true",
        help="do not emulate the systemd units that release the pins when pigpiod fails",
    )
    bench.add_argument(
        "--wire",
        action="append",
        default=[],
        metavar="GPIO,GPIO",
        help="connect two pins of the emulated pigpiod",
    )
    bench.add_argument(
        "--pipe-dir",
        type=Path,
        metavar="DIR",
        help="folder for its pipes pigpio and pigout (default: /dev)",
    )
    _pins(bench)
    bench.add_argument(
        "--really",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="property of the emulated car that differs from its profile, to be found by "
        "calibration: 'motors.drive.invert = true', 'motors.balance = 0.08'",
    )
    bench.add_argument(
        "--also",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="MODULE",
        help="last option: a Python module, with its own options, that runs beside the car",
    )


def _profiles(verb: Verb) -> None:
    """Add the verbs of a profile and its wires."""
    profile = verb("profile", verbs.profile, "List, show, check, propose or convert profiles")
    profile.description = (
        f"{profile.description}. list: list the shipped profiles. show NAME: print a profile and "
        "its GPIO assignments. check FILE: validate a profile, refuse a motor and battery that "
        "exceed the motor driver, and print warnings. propose: print a profile for this board: "
        "fpvcar profile propose > my-car.toml. from-donkey FILE: print a profile with the values "
        "of Donkeycar's myconfig.py, which is read and never executed"
    )
    profile.add_argument("action", choices=["list", "show", "check", "propose", "from-donkey"])
    profile.add_argument("names", nargs="*", default=[], metavar="NAME or FILE")
    _root(profile, "root file system of the board to propose or check a profile for (default: /)")
    wiring = verb("wiring", verbs.wiring, "Draw the wiring of a profile")
    wiring.description = (
        f"{wiring.description}. Draws an overview, the header of the Pi, and sheets of the parts "
        "with their wires in colour as SVG, to view on a phone or print: fpvcar wiring mx1508 "
        "--out wires"
    )
    wiring.add_argument("name", metavar="PROFILE", help="file, or name of a shipped profile")
    forms = wiring.add_mutually_exclusive_group()
    for form, text in (
        ("pins", "print the 40 pins of the header as text"),
        ("table", "print the wires as text, one per line"),
    ):
        forms.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="drawing", help=text
        )
    forms.add_argument(
        "--sheet",
        default="overview",
        help="print this drawing: overview (the default), pi, or parts, such as supply",
    )
    wiring.add_argument(
        "--out",
        type=Path,
        metavar="FILE or FOLDER",
        help="output file (default: stdout); a name without an ending: folder for all drawings",
    )


def _setups(verb: Verb) -> None:
    """Add the verbs that write a car's card."""
    setup = verb("setup", verbs.setup, "Set up this Raspberry Pi as a car (needs root)")
    setup.description = (
        f"{setup.description}. Writes /etc/fpvcar/car.toml from the profile of the board, enables "
        "I2C, camera and watchdog, disables Wi-Fi power saving, sets the host name and starts the "
        "units. Asks for the board and the name if they are not given. An edited profile that "
        "--board replaces is kept as car.toml.1, and the difference printed."
    )
    setup.add_argument("--board", default="", help="name of a shipped profile: l298n, ...")
    setup.add_argument("--name", default="", help="name of the car; it becomes NAME.local")
    setup.add_argument(
        "--country",
        default="",
        metavar="CODE",
        help="country of the Wi-Fi, for its channels: DE, GB, ... (default: unchanged)",
    )
    setup.add_argument(
        "--resistors",
        action="store_true",
        help="confirm the resistors in the motors' leads, instead of a question for each",
    )
    setup.add_argument(
        "--keep-journal",
        action="store_true",
        help="keep the system's journal on the card, across power cuts (64 MB at most)",
    )
    setup.add_argument("--undo", action="store_true", help="revert all changes but the profile")
    _root(setup, "write files below DIR, the root of an SD card that is not booted")
    publish = verb("mqtt", mqtt.main, "Publish this car to an MQTT broker, for Home Assistant")
    mqtt.describe(publish)
    _profile(publish, car_profile(), OWN)
    publish.add_argument("--port", type=PORT, default=8080, help="HTTP port of fpvcar run")
    remote.add_options(verb("remote", remote.main, "Reach this car from anywhere (needs root)"))

    first_boot = verb(
        "first-boot", verbs.first_boot, "Ask a card image's questions at its first boot"
    )
    first_boot.description = (
        f"{first_boot.description}. prepare: make the system below DIR ask for board, name and "
        "country on a page when it boots; the image has no profile then. serve: the page, at port "
        "8080 of the car's own Wi-Fi and its cable, without a code and only until it is answered. "
        "apply: carry the answers out, as fpvcar setup does."
    )
    first_boot.add_argument("action", choices=["prepare", "serve", "apply"])
    first_boot.add_argument("--port", type=PORT, default=8080, help="HTTP port of the page")
    _root(first_boot, "root file system of the image (default: /)")


def _doctor(verb: Verb) -> None:
    doctor = verb("doctor", verbs.doctor, "Find the faults of this car, and print their remedies")
    doctor.description = (
        f"{doctor.description}. The car does not move: the dead man's switch is tested while the "
        "motors stand. Root can read more: sudo fpvcar doctor. Exit status: 0 notes at most, 3 a "
        "warning, 4 a fault, 1 or 2 doctor itself failed."
    )
    _profile(doctor, None, OWN)
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.add_argument(
        "--move",
        action="store_true",
        help="turn each motor forward and back; only with the wheels off the ground",
    )
    doctor.add_argument("--port", type=PORT, default=8080, help="HTTP port of fpvcar run")
    _root(doctor, "check the files below DIR, the root of an SD card that is not booted")


def _pins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pins",
        choices=BENCH_PINS,
        default="",
        help="pins and I2C of the emulated car: those of a kernel or of a pigpiod (default: as in "
        "the profile)",
    )


def _hil(verb: Verb) -> None:
    hil = verb("hil", verbs.hil, "Measure the emulated car or a real one (hardware in the loop)")
    hil.description = (
        f"{hil.description}. Measures an emulated car that it starts, or with --metal the car of "
        "this computer, wired as in hardware/rig.md. Lift the wheels off the ground: hil drives "
        "the car and ends its processes. Exit status: 0 all results are within their limits, 3 a "
        "check was not run, 4 a result exceeds its limit, 1 or 2 hil itself failed."
    )
    _profile(hil, None, f"{paths.HARDWARE / 'rig.toml'}; with --metal /{PROFILE} if it exists")
    hil.add_argument("--list", action="store_true", help="list the checks and exit")
    hil.add_argument("--only", default="", metavar="NAME[,NAME]", help="run only these checks")
    hil.add_argument(
        "--repeat", type=within(int, 1, 1000), default=1, metavar="N", help="run each check N times"
    )
    hil.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write report.html, .json and .xml (JUnit) to DIR, compared with the previous "
        "report in DIR",
    )
    _pins(hil)
    hil.add_argument("--metal", action="store_true", help="measure the car of this computer")
    hil.add_argument(
        "--port", type=PORT, default=8080, help="HTTP port of fpvcar run, with --metal"
    )
    hil.add_argument(
        "--browser",
        action="store_true",
        help="measure camera-glass in a browser that you open at the printed address, not in "
        "a Chromium that hil starts; with --metal also camera-screen, by a light sensor on a "
        "screen that shows the car's page",
    )


def _recordings(verb: Verb) -> None:
    """Add the verbs for recordings."""
    log = verb("log", verbs.log, "List, verify, repair, release or export recordings")
    log.add_argument(
        "action",
        choices=["list", "info", "verify", "recover", "release", "export"],
        help="list, info: print the contents; verify: check every checksum; recover: write "
        "NAME.recovered.mcap without the damaged chunks; release: allow a kept recording to "
        "be deleted when space is needed; export: write one dataset for training",
    )
    log.add_argument("files", nargs="+", type=Path, metavar="FILE")
    log.add_argument("--out", type=Path, metavar="DIR", help="output folder of recover")
    options.add_to(log, required=False)
    replay = verb("replay", verbs.replay, "Rerun recorded decisions and compare the results")
    replay.description = (
        f"{replay.description}. Exit status: 0 all results match the recording; 1 a result differs "
        "or a file is unreadable; 3 all results match, but recorded data is missing."
    )
    replay.add_argument("files", nargs="+", type=Path, metavar="FILE")
    modes = replay.add_mutually_exclusive_group()
    modes.add_argument(
        "--check", action="store_true", help="compare every setpoint bit for bit (the default)"
    )
    modes.add_argument("--page", action="store_true", help="play recordings in a browser")
    replay.add_argument(
        "--partial",
        action="store_true",
        help="exit with 0, not 3, if data is missing or could not be rerun",
    )
    replay.add_argument(
        "--port", type=within(int, 0, 65535), default=8090, help="port of --page; 0: any free one"
    )
    replay.add_argument("--browser", action="store_true", help="open the page in a browser")
    export = verb("export", verbs.export, "Export recordings as a video or as tables")
    kinds = export.add_mutually_exclusive_group(required=True)
    for kind, text in (
        ("mp4", "video without re-encoding, each frame at its recorded time"),
        ("csv", "folder of CSV tables, one per topic"),
        ("parquet", "folder of Parquet tables, one per topic"),
    ):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=text)
    export.add_argument("--force", action="store_true", help="overwrite OUT")
    export.add_argument("--partial", action="store_true", help="exit with 0, not 3, on losses")
    export.add_argument("out", type=Path, metavar="OUT")
    export.add_argument("files", nargs="+", type=Path, metavar="FILE")

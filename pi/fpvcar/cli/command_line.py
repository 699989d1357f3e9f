"""Parser of `fpvcar`: the verbs and their options. Their implementation: verbs.py."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fpvcar import __version__
from fpvcar.cli import verbs
from fpvcar.config.raspberry_pi_os import PROFILE
from fpvcar.runtime import paths
from fpvcar.runtime.arguments import within

ABOUT = """\
Drive a Raspberry Pi robot car from a browser - or, without a car, an emulated one:

  fpvcar bench                     the emulated car, on http://127.0.0.1:8080/
  fpvcar bench --host 0.0.0.0      the same for the whole LAN, with a QR code
  fpvcar run --profile my-car.toml        the car's service
  fpvcar wheels --profile my-car.toml     beside it: switches the motors
  fpvcar profile list                     and: show, check, propose (for this board)
  sudo fpvcar setup                       makes a Raspberry Pi a car
  fpvcar wiring my-car.toml               which wire goes where, as a drawing
  sudo fpvcar doctor                      what is wrong with it, and what mends it
  fpvcar hil                              measures the emulated car, or a real one

and what it recorded:

  fpvcar log list DIR                     and: info, verify, recover, release
  fpvcar replay FILE...                   would the car decide the same again?
  fpvcar replay --page FILE...            play it in a browser
  fpvcar export --mp4 OUT.mp4 FILE...     a film; --csv, --parquet: tables
"""
BENCH = paths.HARDWARE / "bench.toml"
ROOT = Path("/")
OWN = f"/{PROFILE}, where there is one, else the bench's"
PORT = within(int, 1, 65534)
"""Port of http; https has the next one."""
Act = Callable[[argparse.Namespace], int]
Verb = Callable[[str, Act, str], argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    """Return the parser with all verbs and their options."""
    top = argparse.ArgumentParser(
        "fpvcar", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"fpvcar {__version__}")
    top.add_argument("-v", "--verbose", action="store_true", help="say more")
    added = top.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, act: Act, words: str) -> argparse.ArgumentParser:
        made = added.add_parser(name, help=words, description=words)
        made.set_defaults(act=act)
        return made

    _services(verb)
    _bench(verb)
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


def _profile(parser: argparse.ArgumentParser, default: Path | None, words: str) -> None:
    parser.add_argument(
        "--profile",
        type=Path,
        default=default,
        metavar="FILE",
        help=f"the car's profile (default: {words})",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="change one value of the profile, as TOML: --set 'pins.port = 8889'",
    )


def _address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=PORT, default=8080, help="http port; https is +1")


def _services(verb: Verb) -> None:
    """Add the verbs of a car's processes."""
    run = verb("run", verbs.run, "the car's service: pages, video, driving")
    _profile(run, car_profile(), OWN)
    _address(run)
    run.add_argument("--soc", type=Path, help="the bench's chip (given by `bench`)")
    wheels = verb("wheels", verbs.wheels, "switches the motors; beside `run`")
    _profile(wheels, car_profile(), OWN)
    wheels.add_argument(
        "--emulated",
        action="store_true",
        help="the pins are the bench's: those of this computer are left alone",
    )
    wheels.add_argument(
        "--unsafe",
        action="store_true",
        help="drive although the kernel may leave a motor on whose process has died",
    )
    process = verb("camera", verbs.camera, "films; `run` starts it by itself")
    process.add_argument(
        "source", choices=[*verbs.CAMERAS, *verbs.BENCH_CAMERAS], help="--help after it: more"
    )
    process.add_argument("rest", nargs=argparse.REMAINDER, help="its own options")
    network = verb("network", verbs.network, "the car's Wi-Fi: a network, or one of its own")
    network.epilog = (
        "serve: the service, with NetworkManager. show: where the car is, and the key "
        "of its own network with a picture for a phone: sudo fpvcar network show"
    )
    network.add_argument("what", choices=["serve", "show"])
    _profile(network, car_profile(), OWN)
    stop = verb("stop", verbs.stop, "stops the motors, whatever hangs")
    stop.epilog = (
        "Ends `fpvcar wheels`, makes the motor pins inputs and switches a PCA9685 off, "
        "those of the profile and those that `wheels` took; then asks the root helper."
    )
    _profile(stop, car_profile(), OWN)


def _bench(verb: Verb) -> None:
    bench = verb("bench", verbs.bench, "the emulated car, and `run` against it")
    _profile(bench, BENCH, "the bench's")
    _address(bench)
    bench.add_argument("--seed", type=within(int, 0, 999_999), default=1, help="which room")
    bench.add_argument("--browser", action="store_true", help="open the page")
    bench.add_argument(
        "--no-stand-in",
        action="store_true",
        help="no stand-in for the units that let go of the pins when pigpiod fails",
    )
    bench.add_argument(
        "--wire",
        action="append",
        default=[],
        metavar="GPIO,GPIO",
        help="two pins of the emulated pigpiod that are wired together",
    )
    bench.add_argument(
        "--pipe-dir",
        type=Path,
        metavar="DIR",
        help="where it makes its pipes pigpio and pigout, instead of in /dev",
    )
    bench.add_argument(
        "--really",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="what the emulated car has in another way than its profile says, for "
        "calibration to find: 'motors.drive.invert = true', 'motors.balance = 0.08'",
    )


def _setups(verb: Verb) -> None:
    """Add the verbs for one-time tasks: the profile, the wires, and the files of a car's
    Raspberry Pi."""
    known = verb("profile", verbs.profile, "profiles: what ships, what is whole, what fits")
    known.epilog = (
        "list: those that ship. show NAME: one of them, and what is on which GPIO. "
        "check FILE: is it whole, and what asks for care. propose: the one for this "
        "board, as text: fpvcar profile propose > my-car.toml"
    )
    known.add_argument("what", choices=["list", "show", "check", "propose"])
    known.add_argument("names", nargs="*", default=[], metavar="NAME or FILE")
    known.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="the file system of the board that `propose` is for",
    )
    wiring = verb("wiring", verbs.wiring, "which wire goes where, from a profile")
    wiring.epilog = (
        "Draws the Pi's header, the parts and each wire with its colour, as SVG: open "
        "it in a browser, or print it. fpvcar wiring mx1508 --out mx1508.svg"
    )
    wiring.add_argument("name", metavar="PROFILE", help="a file, or one that ships")
    forms = wiring.add_mutually_exclusive_group()
    for form, words in (
        ("pins", "the 40 pins as they lie, as text"),
        ("table", "the wires, one a line, as text"),
    ):
        forms.add_argument(
            f"--{form}",
            dest="form",
            action="store_const",
            const=form,
            default="drawing",
            help=words,
        )
    wiring.add_argument("--out", type=Path, metavar="FILE", help="instead of stdout")
    setup = verb("setup", verbs.setup, "makes this Raspberry Pi a car (needs root)")
    setup.epilog = (
        "Writes /etc/fpvcar/car.toml from the board's profile, switches I2C, camera "
        "and watchdog on and Wi-Fi power save off, names the computer, starts the "
        "units. Without flags it asks."
    )
    setup.add_argument("--board", default="", help="which profile: l298n, ...")
    setup.add_argument("--name", default="", help="the car's; then it is NAME.local")
    setup.add_argument("--undo", action="store_true", help="all but the profile")
    setup.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="write files below DIR: a card that is not booted",
    )


def _doctor(verb: Verb) -> None:
    doctor = verb("doctor", verbs.doctor, "what is wrong with this car, and what mends it")
    doctor.epilog = (
        "Nothing moves: the dead man is fed, and then not, while the motors stand. As "
        "root it sees more: sudo fpvcar doctor. Exit status: 0 nothing worse than a "
        "note; 3 a warning, 4 a fault; 1 or 2 doctor itself could not."
    )
    _profile(doctor, None, OWN)
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.add_argument(
        "--move",
        action="store_true",
        help="turn each motor, forward and back: only with the wheels in the air",
    )
    doctor.add_argument("--port", type=PORT, default=8080, help="of `fpvcar run`")
    doctor.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="read files below DIR: a card that does not run is not asked more",
    )


def _hil(verb: Verb) -> None:
    hil = verb("hil", verbs.hil, "hardware in the loop: measures a car on a bench or a rig")
    hil.epilog = (
        "Starts an emulated car of its own and measures that; with --metal the car of "
        "this computer, wired as hardware/rig.md says. Never with wheels on "
        "the ground: it drives, and ends the car's processes. Exit status: 0 all "
        "limits are kept; 3 something was not run; 4 a limit is not kept; 1 or 2 the "
        "suite itself could not."
    )
    _profile(
        hil, None, f"{paths.HARDWARE / 'rig.toml'}; with --metal /{PROFILE}, where there is one"
    )
    hil.add_argument("--list", action="store_true", help="the checks; runs none")
    hil.add_argument("--only", default="", metavar="NAME[,NAME]", help="some of them")
    hil.add_argument(
        "--repeat",
        type=within(int, 1, 1000),
        default=1,
        metavar="N",
        help="each so often: --repeat 20",
    )
    hil.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write report.html, .json "
        "and .xml (JUnit) there, compared with the report that is there",
    )
    hil.add_argument("--metal", action="store_true", help="this computer's own car, not the bench")
    hil.add_argument("--port", type=PORT, default=8080, help="of `fpvcar run`, with --metal")
    hil.add_argument(
        "--browser",
        action="store_true",
        help="you open a browser at the address that it prints: camera-glass measures "
        "there, not in a Chromium of its own",
    )


def _recordings(verb: Verb) -> None:
    """Add the verbs for recordings."""
    look = verb("log", verbs.log, "what is in recordings, and whether they are whole")
    look.add_argument(
        "what",
        choices=["list", "info", "verify", "recover", "release"],
        help="recover writes NAME.recovered.mcap: all but the damaged chunks; release: "
        "kept minutes may go again",
    )
    look.add_argument("files", nargs="+", type=Path, metavar="FILE")
    look.add_argument("--out", type=Path, metavar="DIR", help="where recover writes")
    replay = verb("replay", verbs.replay, "would the car decide the same again?")
    replay.epilog = (
        "Exit status: 0 all came out as it was recorded; 1 something did not, or a "
        "file cannot be read; 3 all that is there did, but something is missing."
    )
    replay.add_argument("files", nargs="+", type=Path, metavar="FILE")
    how = replay.add_mutually_exclusive_group()
    how.add_argument(
        "--check",
        action="store_true",
        help="every setpoint has to come out bit for bit (the default)",
    )
    how.add_argument("--page", action="store_true", help="play them in a browser instead")
    replay.add_argument(
        "--partial",
        action="store_true",
        help="exit with 0, not 3, where something is missing or could not be run again",
    )
    replay.add_argument(
        "--port", type=within(int, 0, 65535), default=8090, help="of --page; 0: any"
    )
    replay.add_argument("--browser", action="store_true", help="open the page, too")
    export = verb("export", verbs.export, "recordings as a film or as tables")
    kinds = export.add_mutually_exclusive_group(required=True)
    for kind, words in (
        ("mp4", "the pictures, as they are, each with its true time"),
        ("csv", "a folder of tables, one a topic"),
        ("parquet", "the same as Parquet"),
    ):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=words)
    export.add_argument("--force", action="store_true", help="replace OUT")
    export.add_argument(
        "--partial",
        action="store_true",
        help="exit with 0, not 3, where recorded data is missing in OUT",
    )
    export.add_argument("out", type=Path, metavar="OUT")
    export.add_argument("files", nargs="+", type=Path, metavar="FILE")

"""Command line of `fpvstation`: one verb per process."""

import argparse
import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from getpass import getpass
from pathlib import Path
from urllib.parse import urlsplit

from fpvcar import __version__
from fpvcar.config import ConfigError
from fpvcar.recordings.export.mp4_export import ExportError
from fpvcar.recordings.reader import ReadError
from fpvcar.runtime.arguments import within
from fpvcar.runtime.units import MB
from fpvstation import service, settings
from fpvstation.cli import decode, verbs
from fpvstation.fetch import client, discover
from fpvstation.fetch.cars import Car, Cars, CarsError, url_of
from fpvstation.fetch.client import PairingRefused
from fpvstation.fetch.pull import CarFault
from fpvstation.mirror.replicate import OfficeFault
from fpvstation.service import Options, StartRefused, state_directory
from fpvstation.store.identity import StoreError
from fpvstation.web import password, status
from fpvstation.web.password import PasswordRefused

ABOUT = """\
Brings home what the cars record, and keeps it:

  fpvstation pair 192.168.1.5      with the grown-ups' code: fetch from this car
  fpvstation run                   fetch, from now on; the page is on localhost:8100
  fpvstation status                what each car is at, and what waits
  fpvstation passwd                a password, to see the page from other machines
  fpvstation cars                  the cars of this station, and who else is there
  fpvstation forget Plague         fetch from it no more; what is here stays
  fpvstation verify                read the store again: is it all still right?
  fpvstation verify --office       let the offices read their copies again
  fpvstation rebuild               make the page's list anew from what is stored
  fpvstation rm SESSION            into the trash, and never fetched again
  fpvstation raw SESSION | rdpipe host:'ffplay -f rawvideo -video_size 640x480 -'
  fpvstation restore SESSION       back from the trash, or from an office

A car lets a recording go only after this station has it, verified and synced
(`station = true` in its profile).
"""
STORE = Path.home() / "fpvstation"
PORT_MOST = 65534
KNOWN = (
    CarsError,
    CarFault,
    ConfigError,
    ExportError,
    OfficeFault,
    PairingRefused,
    PasswordRefused,
    ReadError,
    StartRefused,
    StoreError,
)
"""Exceptions whose text names the refused value and the next step."""


def _pair(arguments: argparse.Namespace) -> int:
    url, cars = url_of(arguments.address), Cars(state_directory())
    pin = asyncio.run(client.fingerprint_of(url))
    if pin:
        print(f"{url} shows the certificate\n  SHA-256 {_grouped(pin)}")
    if arguments.fingerprint and arguments.fingerprint.replace(":", "").lower() != pin:
        print("fpvstation: it is not the one of --fingerprint: not paired", file=sys.stderr)
        return 1
    code = _said("FPVSTATION_CODE", input, "Grown-ups' code of the car: ")
    made = asyncio.run(client.pair(url, pin, code.strip(), socket.gethostname()[:40]))
    car = cars.add(made, url, pin)
    print(f"{car.name} is paired; what it records goes to the folder {car.folder}")
    return 0


def _said(variable: str, ask: Callable[[str], str], prompt: str) -> str:
    """Return a secret from the environment, or ask at the terminal. Raises Refused."""
    try:
        return os.environ.get(variable) or ask(prompt)
    except EOFError:
        raise StartRefused(f"nobody answers here: say it in {variable}") from None


def _grouped(pin: str) -> str:
    return ":".join(pin[at : at + 2] for at in range(0, len(pin), 2)).upper()


def _cars(arguments: argparse.Namespace) -> int:
    known = Cars(state_directory()).all()
    for one in known:
        print(f"{one.folder}  {one.url}  {one.fingerprint[:16] or 'this computer'}")
    return _others([urlsplit(one.url).hostname or "" for one in known], arguments)


def _others(known: Sequence[str], arguments: argparse.Namespace) -> int:
    """List the cars that announce themselves by mDNS; `known`: hosts of the paired cars."""
    if arguments.seconds <= 0.0:
        return 0
    try:
        found = asyncio.run(discover.browse(arguments.seconds, arguments.interface))
    except (discover.ZeroconfMissing, OSError, ValueError) as fault:
        print(f"fpvstation: {fault}", file=sys.stderr)
        return 0
    for one in found:
        paired = any(map(one.has_address, known))
        next_step = "paired" if paired else f"fpvstation pair {one.url}"
        print(f"{shown(one.name)} is there: {next_step}")
    if not found:
        print("nobody else is heard on this network")
    return 0


def shown(text: str) -> str:
    """Return the text of a stranger without terminal control characters."""
    return "".join(one if one.isprintable() else "?" for one in text)[:63]


def _forget(arguments: argparse.Namespace) -> int:
    cars = Cars(state_directory())
    car = cars.find(arguments.car)
    cars.remove(car)
    try:
        asyncio.run(_end(car))
    except CarFault as fault:
        print(
            f"{fault}\n{car.name} still lists this station: end it on its page, "
            "under who may drive",
            file=sys.stderr,
        )
    print(f"{car.name} is forgotten; what came from it stays")
    return 0


async def _end(car: Car) -> None:
    async with client.session(car.url, car.fingerprint) as session:
        await client.HttpCar(car, session).end()


def _run(arguments: argparse.Namespace) -> int:
    options = Options(
        arguments.store,
        arguments.host,
        arguments.port,
        arguments.beside,
        arguments.store_changed,
        settings.load(arguments.config),
        int(arguments.most_gb * 1000 * MB),
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(service.run(options))
    return 0


def _passwd(arguments: argparse.Namespace) -> int:
    given = _said("FPVSTATION_PASSWORD", getpass, "Password of the page: ")
    password.save(state_directory(), given)
    print(
        "The password is set. A station that runs takes it at its next start; then "
        "`fpvstation run --host 0.0.0.0` serves the LAN"
    )
    return 0


Act = Callable[[argparse.Namespace], int]


class _Verbs:
    """The verbs of the command line, and the options that some of them share."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._each = parser.add_subparsers(metavar="VERB", required=True)

    def add(self, name: str, act: Act, words: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = self._each.add_parser(name, help=words, description=words)
        made.set_defaults(act=act)
        return made

    def of_store(self, name: str, act: Act, words: str) -> argparse.ArgumentParser:
        made = self.add(name, act, words)
        made.add_argument(
            "--store",
            type=Path,
            default=STORE,
            metavar="DIR",
            help=f"folder of the store (default: {STORE})",
        )
        return made

    def of_session(self, name: str, act: Act, words: str) -> argparse.ArgumentParser:
        made = self.of_store(name, act, words)
        made.add_argument("session", help="its name, as the page and the folder have it")
        return made


def _config(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--config",
        type=Path,
        default=settings.usual_path(),
        metavar="FILE",
        help="its offices; see the documentation (default: %(default)s)",
    )


def _port(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--port",
        type=within(int, 1, PORT_MOST),
        default=8100,
        help="of the page; https has the next one",
    )


def _station_verbs(each: _Verbs) -> None:
    run = each.of_store("run", _run, "fetches from all cars, and serves the page")
    _port(run)
    run.add_argument("--host", default="127.0.0.1", help="address to listen on")
    run.add_argument(
        "--beside", metavar="URL", default="", help="pair with the car on this machine by itself"
    )
    _config(run)
    run.add_argument(
        "--most-gb",
        type=within(float, 0.0, 1e5),
        default=0.0,
        metavar="GB",
        help="above that, evicts the oldest sessions that all "
        "offices have; without an office they are gone",
    )
    run.add_argument(
        "--store-changed",
        action="store_true",
        help="it is another store than last time, on purpose",
    )
    each.add("passwd", _passwd, "sets the password of the page for other machines")
    words = "says what each car is at, and each office"
    said = each.add("status", status.run, words)
    _port(said)
    said.add_argument("--json", action="store_true", help="for programs")
    said.add_argument(
        "--follow", action="store_true", help="shows how far it is until nothing waits"
    )


def _car_verbs(each: _Verbs) -> None:
    pair = each.add("pair", _pair, "pairs with a car, by its grown-ups' code")
    pair.add_argument("address", help="192.168.1.5, plague.local, https://HOST:8081")
    pair.add_argument("--fingerprint", help="SHA-256 that its certificate must have")
    words = "lists the cars of this station, and who else is there"
    cars = each.add("cars", _cars, words)
    cars.add_argument(
        "--seconds",
        type=within(float, 0.0, 3600.0),
        default=2.0,
        metavar="S",
        help="listens so long for others (default: 2)",
    )
    cars.add_argument(
        "--interface",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="listens at this address of ours only",
    )
    forget = each.add("forget", _forget, "ends a pairing, here and on the car")
    forget.add_argument("car", help="its name or folder")


def _store_verbs(each: _Verbs) -> None:
    words = "reads what is stored again; exits with 1 if bad"
    check = each.of_store("verify", verbs.verify, words)
    what = check.add_mutually_exclusive_group()
    what.add_argument("session", nargs="?", default="", help="only this one")
    what.add_argument("--all", action="store_true", help="every session (the default)")
    check.add_argument(
        "--office",
        action="store_true",
        help="the copies at the offices instead, where they are: nothing is moved",
    )
    _config(check)
    check.add_argument(
        "--rate",
        type=within(float, 0.1, 1e5),
        default=50.0,
        metavar="MB/S",
        help="reads no faster (default: 50)",
    )
    words = "makes the page's list anew from the store"
    each.of_store("rebuild", verbs.rebuild, words)
    words = "moves a session to the trash; it is not fetched again"
    each.of_session("rm", verbs.rm, words)
    words = "writes a session's pictures, decoded, to stdout"
    pictures = each.of_session("raw", decode.run, words)
    pictures.add_argument("--fast", action="store_true", help="as fast as the pipe takes them")
    pictures.add_argument(
        "--partial", action="store_true", help="exit with 0, not 3, where recorded data is missing"
    )
    words = "brings a session back: trash, then offices"
    _config(each.of_session("restore", verbs.restore, words))


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "fpvstation", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=__version__)
    each = _Verbs(parser)
    _station_verbs(each)
    _car_verbs(each)
    _store_verbs(each)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    given = sys.argv[1:] if argv is None else argv
    arguments = command_line().parse_args(given or ["--help"])
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    try:
        code: int = arguments.act(arguments)
        return code
    except KNOWN as fault:
        print(f"fpvstation: {fault}", file=sys.stderr)
    except OSError as fault:
        where = f"{fault.filename}: " if fault.filename else ""
        print(f"fpvstation: {where}{fault.strerror or fault}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, the shell's convention
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Command line of `fpvstation`: one verb per process."""

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Sequence
from getpass import getpass
from pathlib import Path
from urllib.parse import urlsplit

from fpvcar import __version__
from fpvcar.config import ConfigError
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.arguments import within
from fpvcar.runtime.units import MB
from fpvstation import service, settings
from fpvstation.cli import (
    batch_verbs,
    decode,
    foxglove,
    query_verbs,
    sizing_verbs,
    snapshot_verbs,
    tiers,
    tunnel,
    verbs,
)
from fpvstation.errors import StationError, run_verb
from fpvstation.fetch import client, discover
from fpvstation.fetch.cars import Car, Cars, url_of
from fpvstation.fetch.pull import CarFault
from fpvstation.replicas.remote import PlaceFault
from fpvstation.service import STORE, Options, state_directory
from fpvstation.web import password, status

ABOUT = """\
Fetches recordings from cars into a store, verifies them, and serves them on a web page.

  fpvstation pair 192.168.1.5      pair with a car; asks for its grown-up code
  fpvstation run                   fetch until Ctrl-C, with the page on localhost:8100
  fpvstation status                show the state and queue of each car and remote
  fpvstation passwd                set a password, to open the page from other machines
  fpvstation cars                  list paired cars, and cars announced on this network
  fpvstation forget Plague         end the pairing with a car; keep its recordings
  fpvstation verify                check the store against its checksums
  fpvstation verify --remotes      have the remotes check their copies
  fpvstation rebuild               rebuild the catalogue of the page from the store
  fpvstation query "SELECT ..."    ask all recordings in SQL
  fpvstation export "SELECT session ..." --lerobot DIR
                                   export the sessions of a query as a dataset for training
  fpvstation grep PATTERN          search names, marks, causes and log lines
  fpvstation batch replay          run all recordings through the gate of this version
  fpvstation rm SESSION            move a session to the trash; never fetch it again
  fpvstation restore SESSION       restore a session from the trash or a remote
  fpvstation archive --due         move old sessions to the archive of the settings
  fpvstation recall SESSION        bring a session back from the archive
  sudo fpvstation snapshots setup  keep hourly snapshots of a store on btrfs
  fpvstation snapshots restore SESSION --at 14:00
  fpvstation measure DIR           measure disks; fpvstation size then tells when they are full
  fpvstation tunnel wireguard attic --endpoint HOST
                                   write both ends of a tunnel to another site
  fpvstation raw SESSION | rdpipe host:'ffplay -f rawvideo -video_size 640x480 -'

A car with `station = true` in its profile deletes a recording only after this station
has stored, verified and synced it.
"""
PORT_MOST = 65534
EXPECTED_ERRORS = (CarFault, ConfigError, PlaceFault, RecordingError, StationError)
"""Exceptions whose text names the refused value and the next step."""


def _pair(arguments: argparse.Namespace) -> int:
    url, cars = url_of(arguments.address), Cars(state_directory())
    pin = asyncio.run(client.fingerprint_of(url))
    if pin:
        print(f"Certificate of {url}:\n  SHA-256 {_grouped(pin)}")
    if arguments.fingerprint and arguments.fingerprint.replace(":", "").lower() != pin:
        print("fpvstation: not paired: certificate differs from --fingerprint", file=sys.stderr)
        return 1
    code = _secret("FPVSTATION_CODE", input, "Grown-up code of the car: ")
    pairing = asyncio.run(client.pair(url, pin, code.strip(), socket.gethostname()[:40]))
    car = cars.add(pairing, url, pin)
    print(f"{car.name} is paired; its recordings go to the folder {car.folder}")
    return 0


def _secret(variable: str, ask: Callable[[str], str], prompt: str) -> str:
    """Return a secret from the environment, or ask at the terminal. Raises StationError."""
    try:
        return os.environ.get(variable) or ask(prompt)
    except EOFError:
        raise StationError(f"no terminal to ask on: set {variable}") from None


def _grouped(pin: str) -> str:
    return ":".join(pin[at : at + 2] for at in range(0, len(pin), 2)).upper()


def _cars(arguments: argparse.Namespace) -> int:
    cars = Cars(state_directory()).all()
    for car in cars:
        print(f"{car.folder}  {car.url}  {car.fingerprint[:16] or 'this computer'}")
    return _announced([urlsplit(car.url).hostname or "" for car in cars], arguments)


def _announced(paired_hosts: Sequence[str], arguments: argparse.Namespace) -> int:
    """List the cars that announce themselves by mDNS."""
    if arguments.seconds <= 0.0:
        return 0
    try:
        cars = asyncio.run(discover.browse(arguments.seconds, arguments.interface))
    except (StationError, OSError, ValueError) as fault:
        print(f"fpvstation: {fault}", file=sys.stderr)
        return 0
    for car in cars:
        paired = any(map(car.has_address, paired_hosts))
        next_step = "paired" if paired else f"fpvstation pair {car.url}"
        print(f"{_printable(car.name)} found: {next_step}")
    if not cars:
        print("no cars found on this network")
    return 0


def _printable(text: str) -> str:
    """Return untrusted text without terminal control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:63]


def _forget(arguments: argparse.Namespace) -> int:
    cars = Cars(state_directory())
    car = cars.find(arguments.car)
    cars.remove(car)
    try:
        asyncio.run(_end(car))
    except CarFault as fault:
        print(
            f"{fault}\n{car.name} still lists this station: end it in Drivers on the car's page",
            file=sys.stderr,
        )
    print(f"{car.name} is forgotten; its recordings stay")
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
    text = _secret("FPVSTATION_PASSWORD", getpass, "Password of the page: ")
    password.save(state_directory(), text)
    print(
        "Password set. Restart a running station to use it; "
        "`fpvstation run --host 0.0.0.0` serves the LAN"
    )
    return 0


Act = Callable[[argparse.Namespace], int]


class _Verbs:
    """Verbs of the command line, and the options that some of them share."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(metavar="VERB", required=True)

    def add(self, name: str, act: Act, help_text: str) -> argparse.ArgumentParser:
        verb: argparse.ArgumentParser = self._parsers.add_parser(
            name, help=help_text, description=help_text
        )
        verb.set_defaults(act=act)
        return verb

    def add_with_store(self, name: str, act: Act, help_text: str) -> argparse.ArgumentParser:
        verb = self.add(name, act, help_text)
        verb.add_argument(
            "--store",
            type=Path,
            default=STORE,
            metavar="DIR",
            help=f"folder of the store (default: {STORE})",
        )
        return verb

    def add_with_session(self, name: str, act: Act, help_text: str) -> argparse.ArgumentParser:
        verb = self.add_with_store(name, act, help_text)
        verb.add_argument("session", help="name or folder of the session")
        return verb


def _add_config(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--config",
        type=Path,
        default=settings.usual_path(),
        metavar="FILE",
        help="settings file, with the remotes (default: %(default)s)",
    )


def _add_port(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--port",
        type=within(int, 1, PORT_MOST),
        default=8100,
        help="http port of the page; https uses PORT+1 (default: %(default)s)",
    )


def _station_verbs(subcommands: _Verbs) -> None:
    run = subcommands.add_with_store("run", _run, "fetch from all paired cars, and serve the page")
    _add_port(run)
    run.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )
    run.add_argument(
        "--beside",
        metavar="URL",
        default="",
        help="pair with this car on the same machine; another store has a state of its own",
    )
    _add_config(run)
    run.add_argument(
        "--most-gb",
        type=within(float, 0.0, 1e5),
        default=0.0,
        metavar="GB",
        help="limit the size of the store: evict the oldest sessions that all remotes have; "
        "without a remote they are lost (default: no limit)",
    )
    run.add_argument(
        "--store-changed", action="store_true", help="accept another store than at the last start"
    )
    subcommands.add("passwd", _passwd, "set the password for the page on other machines")
    state = subcommands.add("status", status.run, "show the state and queue of each car and remote")
    _add_port(state)
    state.add_argument("--json", action="store_true", help="print the status as JSON")
    state.add_argument(
        "--follow", action="store_true", help="show progress until all queues are empty"
    )


def _car_verbs(subcommands: _Verbs) -> None:
    pair = subcommands.add("pair", _pair, "pair with a car; asks for its grown-up code")
    pair.add_argument("address", help="192.168.1.5, plague.local or https://HOST:8081")
    pair.add_argument(
        "--fingerprint", metavar="SHA256", help="refuse a certificate with another SHA-256"
    )
    cars = subcommands.add("cars", _cars, "list paired cars, and cars announced on this network")
    cars.add_argument(
        "--seconds",
        type=within(float, 0.0, 3600.0),
        default=2.0,
        metavar="S",
        help="time to listen for announcements; 0: list paired cars only (default: 2)",
    )
    cars.add_argument(
        "--interface",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="listen on this local address only; may be repeated",
    )
    forget = subcommands.add("forget", _forget, "end a pairing, here and on the car")
    forget.add_argument("car", help="name or folder of the car")


def _store_verbs(subcommands: _Verbs) -> None:
    help_text = "check the store against its checksums; exit with 1 if a segment is bad"
    check = subcommands.add_with_store("verify", verbs.verify, help_text)
    scope = check.add_mutually_exclusive_group()
    scope.add_argument("session", nargs="?", default="", help="check this session only")
    scope.add_argument("--all", action="store_true", help="check every session (the default)")
    check.add_argument(
        "--remotes",
        "--office",
        action="store_true",
        help="check the remotes' copies instead: an office reads its own, a bucket is read back",
    )
    _add_config(check)
    check.add_argument(
        "--rate",
        type=within(float, 0.1, 1e5),
        default=50.0,
        metavar="MB/S",
        help="maximum rate of reading (default: 50)",
    )
    subcommands.add_with_store("rebuild", verbs.rebuild, "rebuild the catalogue from the store")
    subcommands.add_with_session(
        "rm", verbs.rm, "move a session to the trash; never fetch it again"
    )
    raw = subcommands.add_with_session(
        "raw", decode.run, "write a session's decoded video to stdout"
    )
    raw.add_argument(
        "--fast", action="store_true", help="write as fast as the pipe accepts, not in real time"
    )
    raw.add_argument(
        "--partial", action="store_true", help="exit with 0, not 3, if recorded data is missing"
    )
    help_text = "restore a session from the trash or a remote"
    _add_config(subcommands.add_with_session("restore", verbs.restore, help_text))
    help_text = "write both ends of a tunnel to another site: configuration and keys"
    tunnel.add_options(subcommands.add("tunnel", tunnel.run, help_text))


def _archive_verbs(subcommands: _Verbs) -> None:
    out = subcommands.add_with_store(
        "archive", tiers.archive, "move whole sessions to the archive of the settings"
    )
    out.add_argument("session", nargs="?", default="", help="name or folder of the session")
    out.add_argument(
        "--due",
        action="store_true",
        help="all sessions older than `after`; the oldest while the disk is fuller than `above`",
    )
    out.add_argument("--dry-run", action="store_true", help="name the sessions; move none")
    _add_config(out)
    back = subcommands.add_with_session(
        "recall", tiers.recall, "bring a session back from the archive"
    )
    back.add_argument(
        "--lost",
        action="store_true",
        help="count the copy in the archive as lost: remote, car or a snapshot supply the session",
    )
    _add_config(back)


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "fpvstation", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=__version__)
    subcommands = _Verbs(parser)
    _station_verbs(subcommands)
    _car_verbs(subcommands)
    _store_verbs(subcommands)
    _archive_verbs(subcommands)
    snapshots = subcommands.add(
        "snapshots", snapshot_verbs.listing, "hourly snapshots of a store on btrfs"
    )
    snapshot_verbs.add_to(_Verbs(snapshots).add_with_store, _add_config)
    sizing_verbs.add_to(subcommands.add_with_store)
    query_verbs.add_to(subcommands.add_with_store)
    foxglove.add_to(subcommands.add("foxglove", foxglove.run, "show a car live in Foxglove"))
    help_text = "replay, verify, export or query all sessions, on several processors or machines"
    batch_verbs.add_to(_Verbs(subcommands.add("batch", batch_verbs.run, help_text)).add_with_store)
    help_text = "do work of fpvstation batch from other machines, until Ctrl-C"
    batch_verbs.add_worker(subcommands.add("worker", batch_verbs.work, help_text))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    return run_verb(command_line(), argv, EXPECTED_ERRORS)


if __name__ == "__main__":
    sys.exit(main())

"""Verb `fpvcar first-boot`: a card image asks for the board, name and country on a page.

    prepare: the root of an image -> files and unit of the questions, no profile
    serve:   page -> answers -> a file in the car's state
    apply:   that file -> the same steps as `fpvcar setup`

`serve` is a service without privileges. `apply` runs as root after it, and validates the answers
again. They outlive a power cut, and then `serve` asks no more.
"""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import time
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from fpvcar.access.codes import load_codes
from fpvcar.cli import setup
from fpvcar.cli.network import UNIT as NETWORK
from fpvcar.cli.profile import heading
from fpvcar.config import ConfigError
from fpvcar.config.raspberry_pi_os import PROFILE, STATE
from fpvcar.http.endpoints import Address, Site
from fpvcar.http.limits import Places
from fpvcar.http.pages import (
    Handler,
    errors_as_pages,
    page_response,
    refuse_foreign,
    refuse_other_sites,
)
from fpvcar.http.responses import JSON, failed, refused
from fpvcar.runtime import files, paths
from fpvcar.runtime.texts import Text, os_reason
from fpvcar.wifi.client import NetworkClient
from fpvcar.wifi.radio import OWN_ADDRESS
from fpvcar.wifi.service import new_key

UNIT = "fpvcar-first-boot.service"
ANSWERS = "first-boot.json"
KEY_FILE = "boot/firmware/fpvcar-wifi-key.txt"
DROP_IN = "etc/systemd/system/fpvcar-network.service.d/first-boot.conf"
TMPFILES = "etc/tmpfiles.d/fpvcar-first-boot.conf"
OWN_FILES = {
    DROP_IN: "# The car's own Wi-Fi opens before there is a profile.\n"
    "[Unit]\nConditionPathExists=\n",
    TMPFILES: "# The key of the car's own Wi-Fi, until there is one.\n"
    "d /var/lib/fpvcar-network 0700 fpvcar-network fpvcar-network -\n"
    f"C /var/lib/fpvcar-network/own.key 0600 fpvcar-network fpvcar-network - /{KEY_FILE}\n",
}
CONNECTIONS, CONNECTIONS_PER_ADDRESS = 64, 16
BODY_BYTES = 1024
USED_S = 60.0
"""A page asks every ten seconds; then the car's own network stays open."""
LINGER_S = 2.0
"""Time for the answer to arrive before the car takes the port over."""
FAR = Text(
    "setup_far",
    "Answer these questions over the car's own Wi-Fi or a cable: open {url} there.",
    url=f"http://{OWN_ADDRESS}:8080/",
)


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Answers of the page, with the limits of `fpvcar setup`. `resistors`: those in the motors'
    leads are soldered in."""

    board: str
    name: str
    country: str
    resistors: bool = False


def parse(body: bytes) -> setup.Answers:
    """Return validated answers. Raises ConfigError."""
    try:
        answers = msgspec.json.decode(body, type=Answers)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise ConfigError(f"answers: {fault}; expected board, name and country") from None
    board, name, country = answers.board, answers.name, answers.country
    if not (board and name and country):
        raise ConfigError(
            Text("setup_missing", "an answer is missing: choose board, name and country")
        )
    return setup.ask(board, name, Path("/"), country, answers.resistors, asks=False)


def near(address: str | None) -> bool:
    """Return whether a peer is in the car's own Wi-Fi or at its cable: its address is private."""
    try:
        return ipaddress.ip_address((address or "").partition("%")[0]).is_private
    except ValueError:
        return False


class Page:
    """The questions over HTTP. `answered` is set once the browser has the answer."""

    def __init__(self, state: Path, network: NetworkClient | None = None) -> None:
        self._state, self.network = state, network
        self.answered = asyncio.Event()
        self._used_s = float("-inf")

    def used(self) -> bool:
        """Return whether a page asked within the last minute."""
        return time.monotonic() - self._used_s < USED_S

    def application(self) -> web.Application:
        """Create the aiohttp application."""
        app = web.Application(
            middlewares=[errors_as_pages, self._only_near], client_max_size=BODY_BYTES
        )
        app.router.add_get("/api/first-boot", self._questions)
        app.router.add_post("/api/first-boot", self._answer)
        app.router.add_get("/{path:.*}", self._file)
        return app

    @web.middleware
    async def _only_near(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not near(request.remote):
            raise refused(web.HTTPForbidden, FAR)
        hosts = self.network.hosts() if self.network else ()
        refuse_foreign(request, socket.gethostname(), hosts)
        refuse_other_sites(request)
        self._used_s = time.monotonic()
        return await handler(request)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return page_response(paths.WEB.resolve(), request.match_info["path"] or "start.html")

    async def _questions(self, request: web.Request) -> web.Response:
        boards = [{"name": name, "text": heading(path)} for name, path in setup.boards().items()]
        questions = {"boards": boards, "countries": setup.countries(), "answered": self._has()}
        return web.Response(body=msgspec.json.encode(questions), headers=JSON)

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            answers = parse(body)
            files.write_whole(self._state / ANSWERS, [body], replace=False)
        except ConfigError as fault:
            raise failed(web.HTTPBadRequest, fault) from None
        except FileExistsError:
            raise refused(
                web.HTTPConflict,
                Text("setup_answered", "The questions are answered already: the car is starting."),
            ) from None
        except OSError as fault:
            unsaved = Text(
                "setup_unsaved", "The answers could not be saved: {reason}", reason=os_reason(fault)
            )
            raise refused(web.HTTPInternalServerError, unsaved) from None
        codes = load_codes(self._state)
        state = self.network.state if self.network else None
        told = {
            "drive": codes.drive,
            "grown_up": codes.grown_up,
            "key": state.own.key if state else "",
            "addresses": [
                f"http://{answers.name.lower()}.local:8080/",
                f"http://{OWN_ADDRESS}:8080/",
            ],
        }
        asyncio.get_running_loop().call_later(LINGER_S, self.answered.set)
        return web.Response(body=msgspec.json.encode(told), headers=JSON)

    def _has(self) -> bool:
        return (self._state / ANSWERS).exists()


async def _serve(port: int) -> int:
    state = paths.state_directory()
    if (state / ANSWERS).exists():
        return 0  # a power cut interrupted `apply`
    page = Page(state)
    page.network = network = NetworkClient(NETWORK, page.used)
    places = Places(CONNECTIONS, CONNECTIONS_PER_ADDRESS)
    site = Site(page.application, places=places, address=Address("0.0.0.0", port, None))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, page.answered.set)
    jobs = [asyncio.create_task(job) for job in (site.run(), network.run(), page.answered.wait())]
    try:
        done, _ = await asyncio.wait(jobs, return_when="FIRST_COMPLETED")
        for job in done:
            job.result()
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
    return 0


def prepare(root: Path) -> int:
    """Write the files of an image, except the profile. Raises ConfigError, OSError."""
    if (root / PROFILE).exists():
        raise ConfigError(f"{root / PROFILE} is there: this is a car already, without questions")
    contents = [one for one in setup.system_files(root) if one[0] != root / setup.AVAHI]
    contents += [(root / name, text) for name, text in OWN_FILES.items()]
    if (root / KEY_FILE).parent.is_dir():
        key = new_key()
        contents.append((root / KEY_FILE, f"{key}\n"))
        print(f"  key of the car's own Wi-Fi: {key}, in {root / KEY_FILE}")
    for path in setup.write(contents):
        print(f"  wrote {path}")
    if not setup.run("systemctl", f"--root={root}", "enable", "--quiet", UNIT):
        raise ConfigError(f"{UNIT} is not enabled in {root}: is the package fpvcar installed?")
    return 0


def apply(root: Path) -> int:
    """Carry the answers out, if there are any. Raises ConfigError, OSError."""
    path = root / STATE / ANSWERS
    if not path.exists():
        return 0  # the service was stopped
    try:
        answers = parse(path.read_bytes())
    except ConfigError:
        path.unlink()  # the page asks again
        raise
    setup.carry_out(answers, root)
    setup.run("systemctl", "disable", "--quiet", UNIT)
    with contextlib.suppress(FileNotFoundError):
        (root / DROP_IN).unlink()
    path.unlink()
    return 0


def main(arguments: Any) -> int:
    """Run the action of the parsed `arguments`. Raises ConfigError, OSError."""
    if arguments.action == "prepare":
        return prepare(arguments.root)
    if arguments.action == "apply":
        return apply(arguments.root)
    return asyncio.run(_serve(arguments.port))

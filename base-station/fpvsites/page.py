"""Page of the switches. It only saves changes; `fpvsites run` enforces them.

GET  /api/sites           modes of the groups
POST /api/sites/switch    {"group": "kids", "mode": "everything", "until": "18:00"}
POST /api/sites/undo
"""

import asyncio
import socket
from pathlib import Path

import msgspec
from aiohttp import web

from fpvcar.access.codes import load_key
from fpvcar.access.remembered_browsers import FILE as DEVICES
from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import RecordingRights
from fpvcar.config import ConfigError
from fpvcar.http.addresses import is_loopback
from fpvcar.http.endpoints import Site, address
from fpvcar.http.limits import Places
from fpvcar.http.pages import Handler, errors_as_pages, page_response, refuse_foreign
from fpvcar.http.responses import JSON, PRIVATE, failed
from fpvcar.runtime import paths
from fpvcar.runtime.texts import VERBATIM, Phrase, Text
from fpvsites import state
from fpvsites.rules import Mode, Switch, rules, switch_until
from fpvsites.state import Change, local_now
from fpvstation.errors import StationError
from fpvstation.web import password

CONNECTIONS = 32
APPLIED = Text("sites_apply", "apply")
SWITCHED = Phrase("sites_switch", "{group}: {mode} until {until}")
MODES = {
    "everything": Text("sites_everything", "everything"),
    "sites": Text("sites_sites", "sites"),
    "nothing": Text("sites_nothing", "nothing"),
}


class Order(msgspec.Struct):
    """Body of a POST that turns a switch."""

    group: str
    mode: Mode
    until: str


class Page:
    """Routes of the page. Only a client that has entered the password sees and turns switches."""

    def __init__(self, folder: Path, rights: RecordingRights) -> None:
        self._folder, self._rights = folder, rights
        rights.locked, rights.opened_by = password.PASSWORD_NEEDED, "password"

    def application(self) -> web.Application:
        """Build the application; call once."""
        app = web.Application(middlewares=[errors_as_pages, _own_pages], client_max_size=4096)
        app.router.add_get("/api/sites", self._status)
        app.router.add_post("/api/sites/switch", self._switch)
        app.router.add_post("/api/sites/undo", self._undo)
        self._rights.add_to(app)
        app.router.add_get("/{path:.*}", _file)
        return app

    async def _status(self, request: web.Request) -> web.Response:
        self._rights.let_in(request)
        return self._answer()

    def _answer(self) -> web.Response:
        now, groups = local_now(), []
        try:
            states, report = state.load(self._folder), state.in_force(self._folder)
            newest = state.newest(states)
        except (StationError, OSError) as fault:
            raise failed(web.HTTPServiceUnavailable, fault) from None
        if newest.config is not None:
            for made in rules(newest.config, newest.switches, now).groups:
                sites = newest.config.groups[made.name].sites
                until = f"{made.until:%a %H:%M}" if made.until else ""
                groups.append(
                    {
                        "name": made.name,
                        "mode": made.mode,
                        "until": until,
                        "until_s": made.until.timestamp() if made.until else 0.0,
                        "sites": sites,
                    }
                )
        body = {
            "groups": groups,
            "change": _change_text(newest.change) if len(states) > 1 else None,
            "fault": report.text or (VERBATIM(text=report.fault) if report.fault else None),
            "in_force": report.at_s == newest.at_s,
            "off": newest.config is None,
            "now": f"{now:%H:%M}",
        }
        return web.Response(body=msgspec.json.encode(body), headers=JSON)

    async def _switch(self, request: web.Request) -> web.Response:
        body = await request.read()
        self._rights.let_grown_up(request)  # not before: rights may end during a slow upload
        try:
            order = msgspec.json.decode(body, type=Order)
            until_s = switch_until(order.until, local_now())
        except (msgspec.DecodeError, ConfigError) as fault:
            raise failed(web.HTTPBadRequest, fault) from None
        text = f"{order.group}: {order.mode} until {order.until}"
        return await self._save(state.switched(order.group, Switch(order.mode, until_s), text))

    async def _undo(self, request: web.Request) -> web.Response:
        self._rights.let_grown_up(request)
        return await self._save(state.undone)

    async def _save(self, change: Change) -> web.Response:
        def save() -> None:
            with state.changing(self._folder) as states:
                change(states, local_now())

        try:
            await asyncio.to_thread(save)
        except (StationError, ConfigError, OSError) as fault:
            raise failed(web.HTTPConflict, fault) from None
        return self._answer()


def _change_text(change: str) -> Text:
    """Return the text of a change, as `_switch` has written it."""
    group, _, rest = change.partition(": ")
    mode, _, until = rest.partition(" until ")
    if mode in MODES:
        return SWITCHED(group=group, mode=MODES[mode], until=until)
    return APPLIED if change == "apply" else VERBATIM(text=change)


@web.middleware
async def _own_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    refuse_foreign(request, socket.gethostname())
    return await handler(request)


async def _file(request: web.Request) -> web.StreamResponse:
    if url := password.https_url(request):
        raise web.HTTPTemporaryRedirect(url, headers=PRIVATE)
    return page_response(paths.WEB.resolve(), request.match_info["path"] or "sites.html")


def serve(folder: Path, host: str, port: int) -> None:
    """Serve the page until Ctrl-C. Raises StationError, OSError."""
    saved = password.load(folder)
    if saved is None:
        raise StationError("the page needs a password first: fpvsites passwd")
    browsers = Devices(load_key(folder), password.codes_of(saved), folder / DEVICES)
    rights = password.PasswordRights(password.PasswordCheck(saved), browsers)
    endpoint = address(host, port, folder, socket.gethostname())
    if endpoint.tls is None and not is_loopback(host):
        raise StationError(f"--host {host} refused: no https here, see the line above")
    scheme, shown = ("https", port + 1) if endpoint.tls else ("http", port)

    def greet() -> None:
        print(f"  The switches: {scheme}://{socket.gethostname()}.local:{shown}/", flush=True)

    page = Page(folder, rights)
    asyncio.run(Site(page.application, Places(CONNECTIONS, CONNECTIONS), endpoint, greet).run())

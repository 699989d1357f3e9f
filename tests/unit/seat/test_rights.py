"""Table of rights, whole: each message of /ws/drive and each route, for each kind of client."""

import functools
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import make_mocked_request
from testkit.hub import CODES, PROFILE, House, Visitor
from tools.docs import http_api, rights_docs, wire_docs

from fpvcar import config
from fpvcar.access.codes import CodeCheck, Rights
from fpvcar.access.remembered_browsers import COOKIE, Devices
from fpvcar.access.rights import CODE, DeviceRights
from fpvcar.access.stations import Stations
from fpvcar.http.text_session import SessionClosed
from fpvcar.intercom import socket as intercom
from fpvcar.seat import redundant_link
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.handlers import Right, handlers_of, handles
from fpvcar.servos import feature as servos
from fpvcar.wire import up
from fpvcar.wire.down import Error
from fpvcar.wire.settings import SetRecording
from tests.vectors import text

_GOOD = (up.parse_upward(good["text"]) for good in reversed(text.drive_up()["good"]))
MESSAGES = {type(message): message for message in _GOOD}
WATCHER, DRIVER, WHEEL, GROWN_UP = "watcher", "driver", "driver at the wheel", "grown-up"
NAMED = {True: {GROWN_UP}, False: {DRIVER, WHEEL, GROWN_UP}}
MAY = {
    Right.ANYONE: {WATCHER, DRIVER, WHEEL, GROWN_UP},
    Right.DRIVER: {DRIVER, WHEEL, GROWN_UP},
    Right.AT_THE_WHEEL: {WHEEL},
    Right.RESUMES: {WHEEL, GROWN_UP},
    Right.LOOKS: {WHEEL},
    Right.GROWN_UP: {GROWN_UP},
}
"""People who have each right to a message."""
ERRORS = {
    Right.DRIVER: ("you may only watch", "enter the drive code", "watch_only"),
    Right.AT_THE_WHEEL: ("not at the wheel", "take the wheel", "not_driver"),
    Right.RESUMES: ("only the driver can resume", "take the wheel", "not_driver"),
    Right.LOOKS: (
        "only the driver turns the camera",
        "a grown-up can let viewers look around",
        "not_driver",
    ),
    Right.GROWN_UP: ("only a grown-up ", "enter the grown-up code", "grown_up_only"),
}
"""Reason, next step and code of a refusal."""


def people(house: House) -> dict[str, Visitor]:
    """Return the visitors of a car, each with other rights."""
    return {
        WHEEL: house.visitor("Ann"),
        DRIVER: house.visitor("Bob"),
        WATCHER: house.visitor("Eve", drive=False),
        GROWN_UP: house.visitor("Mum", drive=False, code="grownups"),
    }


def test_table_has_every_message_and_route() -> None:
    assert set(MESSAGES) == set(get_args(up.Upward)) == set(rights_docs.messages())
    names = [name for name, _ in registered(http_api.bare(DeviceRights))]
    assert {*names, "/ws/buttons", "/ws/intercom"} == set(rights_docs.routes()), (
        "tools/docs/rights_docs.py"
    )


@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_message_reaches_its_handler_from_people_with_the_right(kind: type, named: bool) -> None:
    profile = msgspec.structs.replace(
        PROFILE,
        intercom=config.Intercom("default", "default"),
        servos={"pan": config.AimServo(channel=0)},
    )
    house = House(profile, feature=_all_features)
    house.name.chosen = named
    right = rights_docs.messages()[kind]
    if right is Right.NAMES_CAR:
        right = Right.GROWN_UP if named else Right.DRIVER
    senders, handled = people(house), list[str]()
    handlers = house.hub._handlers

    def handle(session: Any, message: Any, now_s: float) -> None:
        handled.append(session.client)

    handlers[kind] = handlers[kind]._replace(handle=handle)
    for name, sender in senders.items():
        before = len(sender.errors())
        sender.say(MESSAGES[kind])
        refused = [error for error in sender.errors()[before:] if _is_of(error, right)]
        assert all(error.value in (wire_docs.tag_of(kind), "Ann drives") for error in refused)
        assert (sender.session.client in handled, len(refused)) == (
            (True, 0) if name in MAY[right] else (False, 1)
        ), name


def _all_features(core: Core) -> Feature:
    """Return the handlers of all features as one feature."""
    features = intercom.feature(core), servos.feature(core)
    return Feature(name="all", handlers=tuple(one.handlers[0] for one in features))


def _is_of(error: Error, right: Right) -> bool:
    reason, next_step, code = ERRORS.get(right, ("?", "", ""))
    return error.what.startswith(reason) and (error.next, error.code) == (next_step, code)


def test_message_without_exactly_one_handler_fails_at_construction() -> None:
    class Second:
        @handles(up.Drive, right=Right.ANYONE)
        def drive(self, session: Any, drive: up.Drive, now_s: float) -> None:
            pass

    house = House()
    hub = house.hub
    parts = (hub, hub._turns, hub._settings, hub.authorization)
    build = functools.partial(handlers_of, turns=hub._turns, name=house.name)
    assert set(build(parts)) == set(get_args(up.Upward)) - up.OF_FEATURES
    with pytest.raises(TypeError, match="Drive has two handlers"):
        build((*parts, Second()))
    with pytest.raises(TypeError, match="no handler of Unlock, Lock, Who, End"):
        build(parts[:-1])


def test_wish_and_ping_reach_their_handlers_without_a_call_between() -> None:
    hub = House().hub
    assert hub._handlers[up.Drive].handle == hub._turns.drive
    assert hub._handlers[up.Ping].handle == hub._ping and hub._handlers[up.Ping].may is None


def test_messages_with_one_limit_share_it(house: House) -> None:
    mum = house.visitor("Mum", code="grownups")
    for message in (up.Keep(), up.Mark(), SetRecording(True)) * 4:
        mum.say(message)
    assert [(error.what, error.value, error.limit) for error in mum.errors()] == [
        ("too many pushes", "mark", "2 a second")
    ]


# --- routes ---

HOME, HOME_PAGE = "program on this machine", "page on this machine"
MAY_REQUEST = {
    "anybody": {WATCHER, DRIVER, GROWN_UP, HOME, HOME_PAGE},
    "driver": {DRIVER, GROWN_UP, HOME, HOME_PAGE},
    "driver's page": {DRIVER, GROWN_UP, HOME_PAGE},
    "grown-up": {GROWN_UP},
    "station": set[str](),
    "station, or program on this machine": {HOME, HOME_PAGE},
}
"""Clients that have each right to a route; none of them is a station."""


def clients(devices: Devices) -> dict[str, tuple[str, dict[str, str]]]:
    """Return address and headers of each kind of client."""
    now_s = time.time()

    def cookie(rights: Rights) -> dict[str, str]:
        device = devices.add("Ann", "192.0.2.7", rights, now_s)
        if rights.grown_up:
            devices.note_use(device, now_s)
        return {"Cookie": f"{COOKIE}={devices.cookie(device)}"}

    return {
        WATCHER: ("192.0.2.7", {}),
        DRIVER: ("192.0.2.7", cookie(Rights(drive=True))),
        GROWN_UP: ("192.0.2.7", cookie(Rights(drive=True, grown_up=True))),
        HOME: ("127.0.0.1", {}),
        HOME_PAGE: ("127.0.0.1", {"Origin": "http://127.0.0.1:8080"}),
    }


def registered(rights: DeviceRights) -> Iterator[tuple[str, web.AbstractRoute]]:
    """Yield each socket and route of a car's API, but the sockets of features."""
    stations = Stations(bytes(32), CODES, Path("/nowhere/stations.json"))
    for route in http_api.application(rights, stations).router.routes():
        path = route.resource.canonical if route.resource else ""
        if route.method == "HEAD":
            continue
        if path.startswith("/ws/"):
            yield path, route
        elif not path.startswith(http_api.NO_API):
            yield f"{route.method} {path}", route


async def admitted(route: web.AbstractRoute, address: str, headers: dict[str, str]) -> bool:
    """Return whether the request gets past the check of its right."""
    head = {"Host": "127.0.0.1:8080", CODE: CODES.drive, **headers}
    request = make_mocked_request(route.method, "/", headers=head).clone(remote=address)
    try:
        await route.handler(request)
    except web.HTTPUnauthorized:
        return False
    except (AttributeError, KeyError, web.HTTPException):
        return True  # past it: the object is bare
    return True


async def test_routes_admit_clients_with_the_right() -> None:
    devices = Devices(bytes(32), CODES, Path("/nowhere/devices.json"))
    rights = DeviceRights(CodeCheck(CODES), devices)
    callers = clients(devices)
    for name, route in registered(rights):
        if name not in rights_docs.SOCKETS:
            got = {caller for caller, who in callers.items() if await admitted(route, *who)}
            assert got == MAY_REQUEST[rights_docs.routes()[name]], name


async def test_sockets_of_the_wheel_admit_its_page_only() -> None:
    wheel = {path for path, right in rights_docs.SOCKETS.items() if right == Right.AT_THE_WHEEL}
    assert wheel == {"/ws/copies", "/ws/intercom"}, "those that call hello"
    house = House()
    for name, visitor in people(house).items():
        hello = msgspec.json.encode(up.Hello(1, visitor.session.client)).decode()

        async def receive(hello: str = hello) -> SimpleNamespace:
            return SimpleNamespace(type=WSMsgType.TEXT, data=hello)

        ws: Any = SimpleNamespace(receive=receive)
        if name == WHEEL:
            assert await redundant_link.hello(ws, house.hub.sessions) is visitor.session
        else:
            with pytest.raises(SessionClosed, match="only the driver can use it"):
                await redundant_link.hello(ws, house.hub.sessions)

"""Single /ws/drive socket on a real loop: the cost of a flood for the others."""

import asyncio
import time
from collections.abc import Callable

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer
from msgspec.structs import replace
from testkit.hub import House

from fpvcar import config
from fpvcar.access.codes import Rights
from fpvcar.http.text_session import ELSEWHERE, NO_HELLO, UNKNOWN_ANSWERED, close_reason
from fpvcar.runtime.texts import VERBATIM, Text
from fpvcar.seat import drive_socket
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.hub import new_nonce
from fpvcar.wire import down, up
from tests.vectors import text

UPGRADE = (
    "GET /ws HTTP/1.1\r\nHost: car\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PINGS = 100


def masked(text: str) -> bytes:
    """Return a short text frame of a client; its mask is zero."""
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text.encode()


def serving(
    receive: Callable[[Session, up.Upward], None], soon: Callable[[Session], None] = lambda _: None
) -> web.Application:
    """Return a server of drive sockets; `soon` is called with each session."""

    async def handler(request: web.Request) -> web.StreamResponse:
        session = Session("10.0.0.1", Rights(), config.Gate())
        asyncio.get_running_loop().call_later(0.01, soon, session)
        return await drive_socket.serve(request, session, receive, time.monotonic, lambda _: None)

    app = web.Application()
    app.router.add_get("/ws", handler)
    return app


async def test_other_tasks_run_between_messages_of_a_flood() -> None:
    turns, seen, all_seen = 0, [], asyncio.Event()

    def receive(session: Session, message: up.Upward) -> None:
        session.client = "flood"
        seen.append(turns)
        if len(seen) == PINGS:
            all_seen.set()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    async with TestServer(serving(receive)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(UPGRADE.encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(masked('{"kind":"ping","seq":1,"t":1}') * PINGS)
        async with asyncio.timeout(20.0):
            await all_seen.wait()
        writer.close()
    beside.cancel()
    assert len(set(seen)) == PINGS


class SlowSocket:
    """Transport and WebSocket whose kernel buffer is full at first."""

    closed = False

    def __init__(self) -> None:
        self.waiting = 9
        self.sent: list[str] = []

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: bytes) -> None:
        self.sent.append(data.decode("latin-1"))

    async def send_str(self, text: str) -> None:
        self.sent.append(text)
        if '"nonce":4' in text:
            self.closed = True


async def test_nonce_counts_only_after_it_was_sent() -> None:
    session, slow = Session("10.0.0.1", Rights(), config.Gate()), SlowSocket()
    session._ws, session._transport = slow, slow  # type: ignore[assignment]
    state = text.STATE
    for nonce in (1, 2):
        session.send_newest(replace(state, nonce=nonce))
    session.send(down.Pong(1, 1.0, 3_000_000, 3))
    session.send_newest(replace(state, nonce=4))
    known = [session.fresh.sent_us(nonce) for nonce in (1, 2, 3, 4)]
    assert known == [0, 0, 0, 0], "these wait in the car"
    await session._send_all(slow)  # type: ignore[arg-type]
    known = [session.fresh.sent_us(nonce) for nonce in (1, 2, 3, 4)]
    assert known == [0, 0, 3_000_000, state.clock_us]
    slow.waiting, slow.closed = 0, False
    session.send_newest(replace(state, nonce=5))
    assert session.fresh.sent_us(5) == state.clock_us
    assert '"nonce":5' in slow.sent[-1]


def test_nonces_are_unpredictable_and_fit_into_a_double() -> None:
    nonces = {new_nonce() for _ in range(1000)}
    assert len(nonces) == 1000 and min(nonces) > 0 and max(nonces) <= 2**52
    assert len({nonce >> 44 for nonce in nonces}) > 200, "the high bits vary"
    assert len({nonce & 255 for nonce in nonces}) > 200, "the low bits vary"


def test_states_and_pongs_have_a_nonce_of_their_own(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    first, second = ann.state.nonce, ann.state.nonce
    ann.say(up.Ping(1, 1.0))
    ann.say(up.Ping(2, 2.0))
    pongs = [one.nonce for one in ann.session._outbox if isinstance(one, down.Pong)]
    assert len({first, second, *pongs}) == 4
    newest = bob.session._newest
    assert isinstance(newest, down.State) and newest.nonce == second


@pytest.mark.parametrize(
    ("seen", "error"),
    [
        (0, "`seen` is missing: '', limit 'the nonce of a state or pong of the last"),
        (7, "the link is late: 'over 0.4 s', limit '0.4 s'"),
        (8, "the link is late: '1.5 s', limit '0.4 s'"),
    ],
)
def test_late_wish_is_told_its_lateness(house: House, seen: int, error: str) -> None:
    ann = house.visitor("Ann")
    ann.session.fresh.sent(8, 98_500_000)
    ann.say(up.Drive(1, 1.0, 1.0, 0.0, seen))
    (told,) = ann.errors()
    assert f"{told.what}: {told.value!r}, limit {told.limit!r}".startswith(error)
    assert told.next and house.duties == (0.0, 0.0)


async def test_replaced_socket_is_closed_with_code_4001() -> None:
    elsewhere = Text("close_elsewhere", "opened again {place}", place="elsewhere")

    def end(session: Session) -> None:
        session.close(elsewhere, ELSEWHERE)
        session.close(NO_HELLO(seconds=5))

    async with TestClient(TestServer(serving(lambda *_: None, end))) as client:
        ws = await client.ws_connect("/ws")
        async with asyncio.timeout(20.0):
            end_frame = await ws.receive()  # no Closing: the other page tells the person
        assert (ws.close_code, end_frame.extra) == (4001, elsewhere.key)


def test_close_reason_is_short_and_english_only_for_words_of_others() -> None:
    assert close_reason(NO_HELLO(seconds=5)) == b"close_hello"
    assert close_reason(VERBATIM(text="hello first")) == b"hello first"
    assert close_reason(VERBATIM(text="\N{SNOWMAN}" * 50)) == "\N{SNOWMAN}".encode() * 40
    assert (
        close_reason(VERBATIM(text="x" + "\N{SNOWMAN}" * 50)).decode() == "x" + "\N{SNOWMAN}" * 39
    )


def test_unknown_kind_is_answered_a_few_times_without_strike() -> None:
    session = Session("10.0.0.1", Rights(), config.Gate())
    frame = '{"kind":"%s","height":3}'
    for kind in ["fly"] + ["f" * 90] * 20:
        assert session.read(WSMsgType.TEXT, frame % kind, up.parse_upward) is None
    errors = [one for one in session._outbox if isinstance(one, down.Error)]
    assert session.unknown == 21 and len(errors) == UNKNOWN_ANSWERED
    first = errors[0]
    assert (first.what, first.value) == ("unknown kind", "fly")
    assert first.limit.startswith("answer, ask, car_name, ") and first.next
    assert len(errors[1].value) == 80

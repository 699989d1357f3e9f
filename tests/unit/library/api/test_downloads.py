"""Downloads beside a driver: the loop waits for no card and no reader."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from testkit import mcaps
from testkit.hub import until
from testkit.mcaps import McapFile
from testkit.recordings import NAME, Client, ask

from fpvcar.http.slots import AT_ONCE_MAX, Slot, Slots
from fpvcar.library.api import downloads
from fpvcar.library.api.downloads import PIECE_BYTES, CpuThrottle, Downloads, RateLimit

URL = f"/api/recordings/{NAME}"
BIG = 24 * 1024 * 1024
"""More than a connection on this machine can buffer."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    McapFile([*mcaps.pictures(2.0), *mcaps.measured(2.0)]).to(tmp_path / NAME)
    return tmp_path


def descriptors(folder: Path) -> int:
    """Count the open files of the folder."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
        except FileNotFoundError:
            continue
    return found


def test_downloads_together_share_one_rate_limit() -> None:
    limit = RateLimit()
    waits = [limit.wait_s(100, 1000.0, 5.0) for _ in range(4)]
    assert waits == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert limit.wait_s(100, 1000.0, 5.25) == pytest.approx(0.15)
    assert limit.wait_s(100, 1000.0, 99.0) == 0.0, "what nobody used is not saved up"


def test_reader_beside_a_driver_rests_four_fifths_of_the_time() -> None:
    now_s, slept, driven = 0.0, list[float](), True
    throttle = CpuThrottle(lambda: driven, lambda: now_s, slept.append)
    throttle.rest()
    assert slept == [], "it has done nothing yet"
    for busy_s, rest_s in ((0.010, 0.040), (0.0005, None), (3.0, 0.2)):
        slept.clear()
        now_s += busy_s
        throttle.rest()
        assert slept == ([] if rest_s is None else [pytest.approx(rest_s)])
    driven = False
    now_s += 0.010
    slept.clear()
    throttle.rest()
    assert slept == []


async def test_long_reads_of_recordings_take_rests(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[str] = []
    monkeypatch.setattr(CpuThrottle, "rest", lambda _: rests.append("rest"))
    async with ask(folder) as client:
        for end, least in (("", 1), (f"/{NAME}/table", 10), (f"/{NAME}/units", 2)):
            rests.clear()
            assert (await client.get("/api/recordings" + end)).status == 200
            assert len(rests) >= least, end


async def test_card_is_read_in_one_thread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()

    def seen(name: str) -> None:
        real = getattr(os, name)

        def called(*given: Any, **named: Any) -> Any:
            threads.add(threading.current_thread().name)
            return real(*given, **named)

        monkeypatch.setattr(os, name, called)

    async with ask(folder) as client:
        for name in ("open", "pread", "fstat", "scandir", "stat", "close"):
            seen(name)
        for end in ("", "/units", "/table", "/thumbnail"):
            assert (await client.get(URL + end)).status == 200
        assert (await client.get("/api/recordings")).status == 200
        monkeypatch.undo()
    assert threads == {"recordings_0"}


async def test_stalled_card_read_does_not_block_the_loop(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked, real = threading.Event(), threading.Event(), os.pread

    def stalled(*given: Any) -> bytes:
        asked.set()
        answers.wait(20.0)
        return real(*given)

    async with ask(folder) as client:
        monkeypatch.setattr(os, "pread", stalled)
        download = asyncio.create_task(client.get(URL))
        await until(asked.is_set)
        turns = 0
        for _ in range(50):  # the loop continues to turn
            await asyncio.sleep(0)
            turns += 1
        assert turns == 50 and not answers.is_set()
        answers.set()
        assert await (await download).read() == (folder / NAME).read_bytes()


@asynccontextmanager
async def raw(client: Client, path: str, count: int = 1) -> AsyncIterator[None]:
    """Send `count` requests with small buffers, and read no answer."""
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    with ExitStack() as links:
        for _ in range(count):
            link = links.enter_context(socket.socket())
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.setblocking(False)
            await loop.sock_connect(link, ("127.0.0.1", client.server.port))
            await loop.sock_sendall(link, request)
        yield


async def test_stalled_download_is_cut_and_its_file_closed(folder: Path) -> None:
    with (folder / NAME).open("ab") as file:
        file.truncate(BIG)
    async with ask(folder, stalled_s=0.3) as client:
        async with raw(client, URL, 3):
            await until(lambda: descriptors(folder) == 3)
            whole = await client.get(URL, headers={"Range": "bytes=0-999999"})
            assert len(await whole.read()) == 1_000_000, "nobody waits for them"
            await until(lambda: descriptors(folder) == 0)


async def test_disconnected_reader_leaves_no_file_open(folder: Path) -> None:
    with (folder / NAME).open("ab") as file:
        file.truncate(BIG)
    async with ask(folder) as client:
        async with raw(client, URL):
            await until(lambda: descriptors(folder) == 1)
        await until(lambda: descriptors(folder) == 0)


async def test_concurrent_ranges_return_the_right_bytes(folder: Path) -> None:
    data = (folder / NAME).read_bytes()
    step = len(data) // 60

    async def part(client: Client, at: int) -> bytes:
        asked = {"Range": f"bytes={at}-{at + step - 1}"}
        answer = await client.get(URL, headers=asked)
        assert answer.status == 206
        return bytes(await answer.read())

    async with ask(folder) as client:
        parts = [part(client, number * step) for number in range(60)]
        assert b"".join(await asyncio.gather(*parts)) == data[: 60 * step]
        await until(lambda: descriptors(folder) == 0)


async def test_download_beside_a_driver_is_slowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "SHARED_BYTES_S", 8 * PIECE_BYTES)
    with (folder / NAME).open("ab") as file:
        file.truncate(3 * PIECE_BYTES)
    for driven in (False, True):
        async with ask(folder, driven=driven) as client:
            began_s = time.monotonic()
            assert len(await (await client.get(URL)).read()) == 3 * PIECE_BYTES
            took_s = time.monotonic() - began_s
        assert not driven or took_s >= 2 / 8, "an eighth of a second for each piece"


async def test_file_truncated_during_download_ends_the_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread

    def cut(file: int, size: int, at: int) -> bytes:
        if at == 0:
            return real(file, min(size, 1000), at)
        if at < 2000:
            raise OSError(5, "Input/output error")
        return b""

    for end in (URL, URL + "?again"):
        async with ask(folder) as client:
            monkeypatch.setattr(os, "pread", cut)
            answer = await client.get(end)
            with pytest.raises(Exception, match="payload|Payload|reset|Connection"):
                await answer.read()
            monkeypatch.undo()
            await until(lambda: descriptors(folder) == 0)


async def test_answers_beyond_the_slots_wait_for_a_free_slot(folder: Path) -> None:
    served, held, most = Downloads(lambda: False, time.monotonic), 0, 0

    def make() -> bytes:
        nonlocal most
        most = max(most, held)
        return bytes(10)

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal held
        held += 1
        try:
            return await served.send(request, {}, make)
        finally:
            held -= 1

    app = web.Application()
    app.router.add_get("/", answer)
    async with TestClient(TestServer(app)) as client:
        slots = [Slot(lambda: None) for _ in range(AT_ONCE_MAX)]
        for slot in slots:
            await served._slots.enter(slot)
        waiting = [asyncio.create_task(client.get("/")) for _ in range(3)]
        await until(lambda: held == 3)
        assert most == 0
        served._slots.leave(slots[0])
        assert [(await one).status for one in waiting] == [200] * 3
    served.close()
    served.later(lambda: None)  # has no effect


async def test_four_slow_readers_do_not_keep_other_clients_out() -> None:
    served = Downloads(lambda: False, time.monotonic)
    served._slots._slow_s = 0.2
    sizes = {"/big": BIG, "/small": 1000}

    async def answer(request: web.Request) -> web.StreamResponse:
        return await served.send(request, {}, lambda: bytes(sizes[request.path]))

    app = web.Application()
    for path in sizes:
        app.router.add_get(path, answer)
    async with TestClient(TestServer(app)) as client:
        async with raw(client, "/big", AT_ONCE_MAX):
            await until(lambda: len(served._slots._held) == AT_ONCE_MAX)
            async with asyncio.timeout(20.0):
                for _ in range(2):
                    assert len(await (await client.get("/small")).read()) == 1000
            cut = AT_ONCE_MAX - len(served._slots._held)
            assert cut == 1, "one gives way, and only while a client waits"
        await until(lambda: not served._slots._held)
    served.close()


async def test_slowest_reader_gives_way() -> None:
    now_s, cut = 10.0, list[str]()
    slots = Slots(lambda: now_s, most=2, slow_s=5.0)
    slow, fast = Slot(lambda: cut.append("slow")), Slot(lambda: cut.append("fast"))
    for slot in (fast, slow):
        await slots.enter(slot)
    slow.blocked(0.0)
    slow.written(2.0)
    slow.blocked(6.0)
    fast.blocked(9.0)
    assert (slow.blocked_s(now_s), fast.blocked_s(now_s)) == (6.0, 1.0)
    newcomer = Slot(lambda: cut.append("newcomer"))
    await slots.enter(newcomer)
    assert cut == ["slow"] and slots._held == [fast, newcomer]
    slots.leave(slow)
    waiting = asyncio.create_task(slots.enter(Slot(lambda: None)))
    await asyncio.sleep(0)
    assert not waiting.done(), "its slot was given away once"
    slots.leave(newcomer)
    async with asyncio.timeout(20.0):  # the clock stands: not after slow_s
        await waiting
    assert cut == ["slow"]

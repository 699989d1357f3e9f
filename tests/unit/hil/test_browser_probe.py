"""Browser reports of its picture, and rejected origins. No browser needed."""

import asyncio
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from testkit.harness import wait_for
from testkit.network.ports import free_port

from fpvcar.hil import browser_probe, browsers
from fpvcar.hil.browser_probe import BrowserProbe, Picture
from fpvcar.hil.led_detector import COLUMNS, ROWS
from fpvcar.hil.rig import CheckFailed, MissingPart

CELLS = [7] * (COLUMNS * ROWS)
SHOWN = {"kind": "picture", "shown_us": 1500, "captured_us": 1400, "path": "mse", "cells": CELLS}


def test_ping_is_answered_with_the_clock_of_hil() -> None:
    said = browser_probe.answer('{"kind":"ping","t":2.5}', 77)
    assert json.loads(str(said)) == {"kind": "pong", "t": 2.5, "clock_us": 77}


def test_picture_report_needs_all_cells_in_range() -> None:
    heard = browser_probe.answer(json.dumps(SHOWN), 0)
    assert isinstance(heard, Picture) and heard.cells == tuple(map(float, CELLS))
    for wrong in (
        {**SHOWN, "cells": CELLS[1:]},
        {**SHOWN, "cells": [256, *CELLS[1:]]},
        {**SHOWN, "shown_us": "now"},
        {"kind": "drive"},
        {},
    ):
        with pytest.raises(msgspec.DecodeError):
            browser_probe.answer(json.dumps(wrong), 0)


async def _says(port: int, origin: str, *texts: str | bytes) -> list[str]:
    """Connect as a page of that origin; return the answers."""
    url = f"ws://127.0.0.1:{port}/"
    async with ClientSession() as session, session.ws_connect(url, origin=origin) as ws:
        for text in texts:
            await (ws.send_str(text) if isinstance(text, str) else ws.send_bytes(text))
        return [await ws.receive_str() for text in texts if "ping" in str(text)]


def test_report_of_the_cars_own_page_is_heard() -> None:
    port = free_port()
    with BrowserProbe("127.0.0.1", port) as heard:
        assert not heard.opened(0.0)
        ping, picture = '{"kind":"ping","t":1}', json.dumps(SHOWN)
        (pong,) = asyncio.run(_says(port, "http://127.0.0.1:8080", picture, picture, ping))
        assert json.loads(pong)["clock_us"] > 0
        assert heard.opened(5.0)
        assert next(heard.pictures()) == (1_500_000, 1_400_000, tuple(map(float, CELLS)))


def test_newer_page_ends_the_older() -> None:
    port = free_port()

    async def second() -> None:
        url, origin = f"ws://127.0.0.1:{port}/", "http://127.0.0.1:1"
        async with (
            ClientSession() as session,
            session.ws_connect(url, origin=origin) as older,
            session.ws_connect(url, origin=origin) as newer,
        ):
            assert (await older.receive(timeout=10.0)).type is WSMsgType.CLOSE
            await newer.send_str(json.dumps(SHOWN))

    with BrowserProbe("127.0.0.1", port) as heard:
        asyncio.run(second())
        assert heard.opened(5.0)


def test_own_page_has_the_host_of_the_request() -> None:
    assert browser_probe.own_page("http://192.0.2.1:8080", "192.0.2.1:41234")
    assert browser_probe.own_page("http://[::1]:8080", "[::1]:41234")
    for origin in ("", "null", "http://[", "http://192.0.2.2", "192.0.2.1"):
        assert not browser_probe.own_page(origin, "192.0.2.1:41234")
    assert not browser_probe.own_page("", "") and not browser_probe.own_page("http://a", "[")


def test_page_of_another_site_is_refused() -> None:
    port = free_port()
    with BrowserProbe("127.0.0.1", port):
        for origin in ("http://evil.example", "http://localhost:8080"):
            with pytest.raises(WSServerHandshakeError, match="403"):
                asyncio.run(_says(port, origin))


@pytest.mark.parametrize("nonsense", ["{}", b"{}"])
def test_page_sending_nonsense_is_closed(nonsense: str | bytes) -> None:
    port = free_port()
    with BrowserProbe("127.0.0.1", port) as heard:
        with pytest.raises(TypeError, match="not WSMsgType.TEXT"):
            origin = "http://127.0.0.1:1"
            asyncio.run(_says(port, origin, nonsense, '{"kind":"ping","t":1}'))
        assert not heard.opened(0.0)


def test_silent_page_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_probe, "SILENCE_S", 0.0)
    with BrowserProbe("127.0.0.1", free_port()) as heard:
        with pytest.raises(CheckFailed, match="no picture from the browser for 0 s"):
            next(heard.pictures())


def test_missing_browser_raises_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/no/chromium")
    assert browsers.program() is None
    with pytest.raises(MissingPart, match="no browser .*apt install chromium.*--browser"):
        with browsers.headless("http://localhost/"):
            pass


def test_browser_is_found_by_name_and_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    played = tmp_path / "chromium-browser"
    played.write_text(
        f'#!/bin/sh\necho $$ "$@" > {said}.new\nmv {said}.new {said}\nexec sleep 60\n'
    )
    played.chmod(0o755)
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browsers, "PROGRAMS", (str(tmp_path / "no"), str(played)))
    assert browsers.program() == str(played) and shutil.which(str(played))
    with browsers.headless("http://localhost:1/hil?port=2"):
        wait_for(said.exists, "no browser was started")
        pid, *words = said.read_text().split()
        assert "--headless=new" in words and words[-1] == "http://localhost:1/hil?port=2"
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_invitation_has_the_address_as_text_and_qr_code() -> None:
    words = browsers.invitation("http://192.0.2.1:8080/hil?port=9")
    assert words.startswith("Open http://192.0.2.1:8080/hil?port=9 in any browser")
    assert len(words.splitlines()) > 10, "and the picture of it"

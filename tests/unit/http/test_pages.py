"""Error pages for requests that the car refuses."""

import asyncio
import base64
import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.http.languages import translated
from fpvcar.http.pages import (
    HEADERS,
    POLICY,
    PROBLEM,
    errors_as_pages,
    packed,
    page_response,
    seat_response,
)
from fpvcar.http.responses import HEADER_MOST, TEXT_MOST, Problem, failed, refused
from fpvcar.runtime import paths
from fpvcar.runtime.child_process import SILENT
from fpvcar.runtime.texts import BOTH, FILE_MISSING, VERBATIM, Text

Client = TestClient[web.Request, web.Application]
RETRY = {"Retry-After": "7"}
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def refuse(request: web.Request) -> web.StreamResponse:
    raise web.HTTPTooManyRequests(text="<b>Wait</b>\n", headers=RETRY)


async def absent(request: web.Request) -> web.StreamResponse:
    return page_response(paths.WEB.resolve(), request.match_info["name"])


async def give(request: web.Request) -> web.StreamResponse:
    return web.Response(text="here")


async def move(request: web.Request) -> web.StreamResponse:
    raise refused(web.HTTPConflict, BOTH(first=SILENT(seconds=2), second="a=<b>"), RETRY)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Serve routes that refuse: "/" a text without a key, "/move" one with values, "/page" a
    file."""
    app = web.Application(middlewares=[errors_as_pages])
    for path, handler in (("/", refuse), ("/move", move), ("/given", give)):
        app.router.add_get(path, handler)
    app.router.add_get("/page/{name}", absent)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(("accept", "page"), [(BROWSER, True), ("*/*", False)])
async def test_refusal_is_a_page_for_browsers_and_text_for_programs(
    client: Client, accept: str, page: bool
) -> None:
    answer = await client.get("/", headers={"Accept": accept})
    text = await answer.text()
    given = await client.get("/given", headers={"Accept": accept})
    assert (given.status, await given.text()) == (200, "here")
    missing = await client.get("/none", headers={"Accept": accept})
    assert missing.status == 404
    assert answer.status == 429 and answer.headers["Retry-After"] == "7"
    if page:
        assert answer.content_type == "text/html" and "dark light" in text
        assert "&lt;b&gt;Wait" in text and "<b>" not in text
        assert answer.headers[POLICY] == HEADERS[POLICY]
    else:
        assert text == "<b>Wait</b>\n" and answer.content_type == "text/plain"


@pytest.mark.parametrize("accept", [PROBLEM, f"{PROBLEM}, */*;q=0.1", f"{BROWSER},{PROBLEM}"])
async def test_refusal_is_a_problem_for_programs_that_accept_it(
    client: Client, accept: str
) -> None:
    answer = await client.get("/move", headers={"Accept": accept})
    assert (answer.status, answer.content_type) == (409, PROBLEM)
    assert answer.headers["Retry-After"] == "7"
    assert json.loads(await answer.read()) == {
        "type": "urn:fpvcar:both",
        "title": "it has sent nothing for 2 s; a=<b>",
        "status": 409,
        "text": {
            "key": "both",
            "english": "{first}; {second}",
            "values": {
                "first": {
                    "key": "camera_silent",
                    "english": "it has sent nothing for {seconds} s",
                    "values": {"seconds": "2"},
                },
                "second": "a=<b>",
            },
        },
    }


@pytest.mark.parametrize(
    ("path", "status", "words"), [("/", 429, "<b>Wait</b>"), ("/none", 404, "404: Not Found")]
)
async def test_error_without_a_key_is_a_problem_in_english(
    client: Client, path: str, status: int, words: str
) -> None:
    answer = await client.get(path, headers={"Accept": PROBLEM})
    problem = msgspec.json.decode(await answer.read(), type=Problem)
    assert answer.status == status and answer.content_type == PROBLEM
    assert problem == Problem("urn:fpvcar:verbatim", words, status, VERBATIM(text=words))


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
async def test_refusal_is_english_with_key_and_values_in_a_header_for_other_programs(
    client: Client, accept: str
) -> None:
    answer = await client.get("/move", headers={"Accept": accept})
    assert (answer.status, answer.content_type) == (409, "text/plain")
    assert await answer.text() == "it has sent nothing for 2 s; a=<b>\n"
    values = dict(parse_qsl(answer.headers["X-Refusal"]))
    assert values == {"key": "both", "first": "key=camera_silent&seconds=2", "second": "a=<b>"}


async def test_refusal_with_values_is_a_page_in_the_language_of_the_browser(client: Client) -> None:
    headers = {"Accept": BROWSER, "Accept-Language": "de"}
    answer = await client.get("/move", headers=headers)
    assert (answer.status, answer.content_type) == (409, "text/html")
    assert "sie hat seit 2 s nichts gesendet; a=&lt;b&gt;" in await answer.text()


def test_refusal_is_short_whatever_the_request_contains() -> None:
    for name in ("x" * 60_000, "\u3164" * 500):
        answer = failed(web.HTTPNotFound, OSError(FILE_MISSING(name=name)))
        assert all(len(line) <= HEADER_MOST for line in answer.headers.values())
        assert len(answer.text or "") <= TEXT_MOST + 1


async def test_error_page_is_in_the_language_of_the_browser(client: Client) -> None:
    headers = {"Accept": BROWSER, "Accept-Language": "nl, de-CH;q=0.9"}
    text = await (await client.get("/page/x<b>.html", headers=headers)).text()
    assert '<html lang="de">' in text and "Das hat nicht geklappt" in text
    assert "Die Seite /x&lt;b&gt;.html gibt es hier nicht." in text
    text = await (await client.get("/", headers=headers)).text()
    assert "&lt;b&gt;Wait" in text, "a text without a key"


def test_text_is_translated_with_nested_ones_and_decimals() -> None:
    silent = BOTH(first=SILENT(seconds="2.5"), second="x")
    assert translated("de", silent) == "sie hat seit 2,5 s nichts gesendet; x"
    assert translated("fr", silent) == "elle n’a rien envoyé depuis 2,5 s\N{NO-BREAK SPACE}; x"
    assert translated("zh", silent) == "2.5 秒没有发送数据；x"
    assert translated("en", silent) == str(silent)
    assert translated("de", Text("newer", "too {age}", age="new")) == "too new"


@pytest.mark.parametrize(
    ("accepted", "language", "stop"),
    [
        ("de-CH,de;q=0.9,en;q=0.8", "de", "STOP"),
        ("fi", "fi", "SEIS"),
        ("nl, zh-TW", "zh", "停"),
        ("../etc, *;q=0.1", "en", "STOP"),
        ("", "en", "STOP"),
    ],
)
def test_seat_page_has_its_first_words_in_the_language_of_the_browser(
    accepted: str, language: str, stop: str
) -> None:
    answer = seat_response(paths.WEB, accepted)
    assert answer.text is not None and f'<html lang="{language}">' in answer.text
    assert f'data-t="stop">{stop}</text>' in answer.text
    assert '<span id="card-title" data-t="connecting"></span>' not in answer.text
    assert "Accept-Language" in answer.headers["Vary"]
    assert answer.headers["Cache-Control"] == HEADERS["Cache-Control"]


def test_seat_page_has_english_words_for_missing_ones(tmp_path: Path) -> None:
    for name, words in (("en", {"stop": "STOP", "menu": "A & B"}), ("nl", {"stop": "HALT"})):
        (tmp_path / "lang" / name).mkdir(parents=True)
        (tmp_path / "lang" / name / "seat.json").write_text(json.dumps(words))
    (tmp_path / "index.html").write_text(
        '<html lang="en"><b data-t="stop"></b><i data-t="menu"></i>'
    )
    text = seat_response(tmp_path, "nl").text
    assert text == '<html lang="nl"><b data-t="stop">HALT</b><i data-t="menu">A &amp; B</i>'


def test_language_without_a_file_of_sentences_is_in_english() -> None:
    assert translated("nl", Text("wrong_code", "That is not the code.")) == "That is not the code."


@pytest.mark.parametrize("name", sorted(path.name for path in paths.WEB.glob("*.html")))
def test_page_contains_the_script_that_loads_it_again(name: str) -> None:
    answer = page_response(paths.WEB.resolve(), name)
    assert isinstance(answer, web.Response) and answer.text
    scripts = re.findall(r"<script(.*?)>(.*?)</script>", answer.text, re.DOTALL)
    if name == "offline.html":
        return
    [(attributes, script)] = scripts
    assert "src" not in attributes and script == (paths.WEB / "boot.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}'" in answer.headers[POLICY]
    if '<link rel="stylesheet"' in answer.text:
        assert answer.text.index("<script") < answer.text.index('<link rel="stylesheet"')


async def test_packed_page_file_leaves_the_connection_in_order() -> None:
    """A browser asks again whether a file has changed, and sends more on that connection."""

    async def file(request: web.Request) -> web.StreamResponse:
        return packed(request, page_response(paths.WEB.resolve(), request.match_info["name"]))

    app = web.Application()
    app.router.add_get("/{name:.+}", file)
    text = (paths.WEB / "seat" / "seat.css").read_bytes()
    async with TestServer(app) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)

        async def ask(path: str, method: str = "GET", **headers: str) -> tuple[bytes, bytes]:
            lines = [f"{method} {path} HTTP/1.1", f"Host: {server.host}"]
            lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20.0)
            assert head.startswith(b"HTTP/1.1 "), head
            body = b""
            if method == "GET" and b"chunked" in head:
                while size := int(await reader.readline(), 16):
                    body += (await reader.readexactly(size + 2))[:-2]
                await reader.readline()
            elif method == "GET" and (found := re.search(rb"Content-Length: (\d+)", head)):
                body = await reader.readexactly(int(found[1]))
            return head, body

        head, body = await ask("/seat/seat.css", Accept_Encoding="gzip")
        assert b"Content-Encoding: gzip" in head and len(body) < len(text) / 2
        assert gzip.decompress(body) == text
        tag = re.search(rb"Etag: (\S+)", head, re.IGNORECASE)
        assert tag
        for _ in range(3):
            head, body = await ask(
                "/seat/seat.css", Accept_Encoding="gzip", If_None_Match=tag[1].decode()
            )
            assert head.startswith(b"HTTP/1.1 304 ") and body == b""
        head, _ = await ask("/seat/seat.css", "HEAD", Accept_Encoding="gzip")
        assert head.startswith(b"HTTP/1.1 200 ")
        head, body = await ask("/seat/seat.css", Accept_Encoding="gzip", range="bytes=3-9")
        assert head.startswith(b"HTTP/1.1 206 ") and body == text[3:10]
        head, body = await ask("/seat/seat.css")
        assert b"Content-Encoding" not in head and body == text
        head, body = await ask("/icons/192.png", Accept_Encoding="gzip")
        assert b"Content-Encoding" not in head and body.startswith(b"\x89PNG")
        writer.close()

"""Error pages for requests that the car refuses."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fpvcar.server.http.pages import HEADERS, errors_as_pages

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def refuse(request: web.Request) -> web.StreamResponse:
    raise web.HTTPTooManyRequests(text="<b>Wait</b>\n", headers={"Retry-After": "7"})


async def give(request: web.Request) -> web.StreamResponse:
    return web.Response(text="here")


@pytest.mark.parametrize(("accept", "page"), [(BROWSER, True), ("*/*", False)])
async def test_refusal_is_a_page_for_browsers_and_text_for_programs(
    accept: str, page: bool
) -> None:
    app = web.Application(middlewares=[errors_as_pages])
    app.router.add_get("/", refuse)
    app.router.add_get("/given", give)
    async with TestClient(TestServer(app)) as client:
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
        policy = "Content-Security-Policy"
        assert answer.headers[policy] == HEADERS[policy]
    else:
        assert text == "<b>Wait</b>\n" and answer.content_type == "text/plain"

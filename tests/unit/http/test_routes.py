"""Declarations of HTTP routes: right, query, answer."""

import json
from typing import Annotated, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from msgspec import Meta, Struct

from fpvcar.http.rights import Right
from fpvcar.http.routes import answers, query_of


class Part(Struct, rename={"from_s": "from"}):
    from_s: Annotated[float, Meta(ge=0.0, le=60.0)] = 5.0
    most: Annotated[int, Meta(ge=1, le=9)] = 3
    name: str = ""
    cause: tuple[str, ...] = ()


class Rights:
    def check(self, right: Right, request: web.Request) -> None:
        if right != Right.DRIVER or request.query.get("code") != "1":
            raise web.HTTPUnauthorized


class Api:
    def __init__(self, rights: Rights) -> None:
        self._rights, self.calls = rights, 0

    @answers(Right.DRIVER, query=Part, status=202)
    async def typed(self, request: web.Request) -> Part:
        self.calls += 1
        return query_of(request, Part)

    @answers(answer="text/plain")
    async def plain(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    @answers()
    async def empty(self, request: web.Request) -> dict[str, Any] | None:
        return None


def asks(query: str = "") -> web.Request:
    return make_mocked_request("GET", f"/api/part?{query}")


async def test_right_is_checked_before_the_handler_runs() -> None:
    api = Api(Rights())
    with pytest.raises(web.HTTPUnauthorized):
        await api.typed(asks())
    assert api.calls == 0
    assert (await api.typed(asks("code=1"))).status == 202


async def test_returned_value_is_sent_as_json_and_a_response_as_it_is() -> None:
    answer = await Api(Rights()).typed(asks("code=1&from=7.5&most=2&name=x&cause=a&cause=b"))
    assert isinstance(answer, web.Response) and isinstance(answer.body, bytes)
    assert json.loads(answer.body) == {"from": 7.5, "most": 2, "name": "x", "cause": ["a", "b"]}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    empty, plain = await Api(Rights()).empty(asks()), await Api(Rights()).plain(asks())
    assert isinstance(empty, web.Response) and empty.body == b"null"
    assert isinstance(plain, web.Response) and plain.text == "ok"


def test_absent_parameters_have_their_defaults() -> None:
    assert query_of(asks(), Part) == Part()


@pytest.mark.parametrize("query", ["from=-1", "from=61", "from=nan", "most=0", "most=ten"])
def test_number_out_of_bounds_is_refused(query: str) -> None:
    with pytest.raises(web.HTTPBadRequest):
        query_of(asks(query), Part)


def test_declaration_keeps_the_type_of_the_answer() -> None:
    declared = [vars(handler)["declaration"] for handler in (Api.typed, Api.plain)]
    assert [item.answer for item in declared] == [Part, "text/plain"]
    assert declared[0].query is Part and vars(Api.typed)["right"] == Right.DRIVER

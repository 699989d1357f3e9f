"""Declaration of an HTTP route at its handler: right, request and answer.

    @answers(Right.GROWN_UP, query=Joining)
    async def _join(self, request: web.Request) -> NetworkState:

The decorator checks the right and encodes the answer. `make docs` describes the car's API by the
declarations: docs/reference/openapi.json.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct, inspect

from fpvcar.http.responses import BYTES, JSON, number_of
from fpvcar.http.rights import Right, admits

S = TypeVar("S")
Q = TypeVar("Q", bound=Struct)
OBJECT = dict[str, Any]
"""Answer that is a JSON object."""
Handler = Callable[[S, web.Request], Awaitable[web.StreamResponse]]


class Declaration(NamedTuple):
    """Declared properties of a route. `answer`: a type, or the media type of bytes."""

    answer: Any
    query: type[Struct] | None
    headers: tuple[str, ...]
    body: type[Struct] | None
    status: int


def answers(
    right: Right = Right.ANYONE,
    answer: Any = BYTES["Content-Type"],
    *,
    query: type[Struct] | None = None,
    headers: tuple[str, ...] = (),
    body: type[Struct] | None = None,
    status: int = 200,
) -> Callable[[Callable[[S, web.Request], Awaitable[object]]], Handler[S]]:
    """Declare a handler. A value that it returns is sent as JSON, and its type is the answer's.

    `right`: see admits. `query`: see query_of. `headers`: headers that carry parameters.
    """

    def declared(handler: Callable[[S, web.Request], Awaitable[object]]) -> Handler[S]:
        @functools.wraps(handler)
        async def handle(owner: S, request: web.Request) -> web.StreamResponse:
            value = await handler(owner, request)
            if isinstance(value, web.StreamResponse):
                return value
            return web.Response(body=msgspec.json.encode(value), status=status, headers=JSON)

        own = handler.__annotations__["return"]
        sent = isinstance(own, type) and issubclass(own, web.StreamResponse)
        handle.declaration = Declaration(  # type: ignore[attr-defined]
            answer if sent else own, query, headers, body, status
        )
        return admits(right)(handle)

    return declared


def query_of(request: web.Request, kind: type[Q]) -> Q:
    """Return the parameters of a query. An absent text is empty. Raises HTTPBadRequest."""
    values: dict[str, object] = {}
    for field in fields_of(kind):
        name, usual = field.encode_name, field.default
        match field.type:
            case inspect.IntType(ge=least, le=most) | inspect.FloatType(ge=least, le=most):
                assert least is not None and most is not None
                number = number_of(request, name, usual, least, most)
                values[field.name] = int(number) if isinstance(usual, int) else number
            case inspect.VarTupleType():
                values[field.name] = tuple(request.query.getall(name, ()))
            case _:
                values[field.name] = request.query.get(name, "")
    return kind(**values)


@functools.cache
def fields_of(kind: type[Struct]) -> tuple[inspect.Field, ...]:
    """Return the fields of a query."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info.fields

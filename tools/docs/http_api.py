"""Generator of the HTTP API as OpenAPI 3.1: openapi.json and a table of wire.md in
docs/reference/.

`@answers` declares the calls at their handlers: pi/fpvcar/http/routes.py.
"""

import functools
import inspect
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeGuard

import msgspec
from aiohttp import web

from fpvcar.access.invitations_api import InvitationsApi
from fpvcar.access.remembered_browsers import COOKIE
from fpvcar.access.rights import DeviceRights
from fpvcar.calibration.api import CalibrationApi
from fpvcar.config import Depth
from fpvcar.datasets.api import DatasetsApi
from fpvcar.depth import camera
from fpvcar.doctor.api import DoctorApi
from fpvcar.http.rights import BY_COOKIE, Right
from fpvcar.http.routes import Declaration, fields_of
from fpvcar.http.trust_api import TrustApi
from fpvcar.library.api.drives_api import DrivesApi
from fpvcar.library.api.exports import ExportsApi
from fpvcar.library.api.recordings_api import RecordingsApi
from fpvcar.library.api.station_api import StationApi
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.live_api import LiveApi
from fpvcar.seat.routes import Server
from fpvcar.wifi.api import NetworkApi
from fpvcar.wire import station as wire

FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"
REF = "#/components/schemas/{name}"
NO_API = ("/ws/", "/trust", "/{path}")
"""Prefixes of paths that are sockets or pages."""
SIGNED = (wire.STATION, wire.NONCE, wire.MAC)
BY_SIGNATURE = (Right.STATION, Right.STATION_OR_LOCAL)
"""Headers of a request that a paired station signs."""
REFUSAL = "Refused; the text names the value and its limit, or the next step."
LOCKED = "The caller has to enter a code first; X-Opened-By is its kind."


class Call(NamedTuple):
    """Route of the API with its declaration."""

    method: str
    path: str
    summary: str
    right: Right
    declaration: Declaration

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """Return the parameters of path, query and headers."""
        names = re.findall(r"{(\w+)}", self.path)
        found = [parameter(name, "path", {"type": "string"}, True) for name in names]
        query = self.declaration.query
        if query is not None:
            schema = msgspec.json.schema(query)["$defs"][query.__name__]["properties"]
            for field in fields_of(query):
                name = field.encode_name
                found.append(parameter(name, "query", schema[name], field.required))
        headers = SIGNED if self.right in BY_SIGNATURE else self.declaration.headers
        needed = self.right != Right.STATION_OR_LOCAL
        return found + [parameter(name, "header", {"type": "string"}, needed) for name in headers]


def parameter(name: str, place: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """Return the description of a parameter."""
    shown = {}
    for key, value in schema.items():
        number = isinstance(value, float)
        if not number or math.isfinite(value):  # JSON has no infinity
            # typing caches Meta(ge=0) and Meta(ge=0.0) as one: the first decides.
            shown[key] = int(value) if number and value.is_integer() else value
    return {"name": name, "in": place, "required": required, "schema": shown}


def application(rights: DeviceRights, stations: Any = None) -> web.Application:
    """Return a car's routes; their objects have nothing but these rights."""
    part = functools.partial(bare, _rights=rights, _stations=stations)
    drives = part(DrivesApi, _repository=SimpleNamespace(editable=True))
    others = (
        *(DatasetsApi, StationApi, LiveApi, NetworkApi, DoctorApi),
        *(CalibrationApi, InvitationsApi, TrustApi),
    )
    parts = (
        part(RecordingsApi, _drives=drives, _exports=part(ExportsApi)),
        *(part(kind) for kind in others),
    )
    some = SimpleNamespace(depth=Depth(source="none"))
    core = bare(Core, profile=some, soc=None, ranges=some)
    features = [Feature(name="api", routes=api.add_to) for api in parts]
    features.append(camera.feature(core))
    app: web.Application = bare(Server, _features=features).application()
    return app


def calls() -> list[Call]:
    """Return the calls that a car's server registers, by path."""
    declared = _declared(application(bare(DeviceRights)))
    return sorted(declared, key=lambda call: (call.path, call.method))


def _declared(app: web.Application) -> Iterator[Call]:
    """Yield the calls. Raises AttributeError for a handler without @answers."""
    for route in app.router.routes():
        path = route.resource.canonical if route.resource else ""
        if route.method != "HEAD" and not path.startswith(NO_API):
            handler: Any = route.handler
            summary = " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())
            yield Call(route.method.lower(), path, summary, handler.right, handler.declaration)


def bare(kind: type, **fields: object) -> Any:
    """Return an object that only registers routes: its constructor is not run."""
    instance: Any = object.__new__(kind)
    vars(instance).update(fields)
    return instance


def document() -> dict[str, Any]:
    """Return the OpenAPI document as a dict."""
    found = calls()
    declared = [call.declaration for call in found]
    structs = {body for item in declared for body in (item.answer, item.body) if is_struct(body)}
    _, schemas = msgspec.json.schema_components(
        sorted(structs, key=lambda struct: struct.__name__), ref_template=REF
    )
    paths: dict[str, Any] = {}
    for call in found:
        paths.setdefault(call.path, {})[call.method] = operation(call)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fpvcar",
            "version": "1",
            "description": "Written by `make docs` from the handlers. The "
            "WebSockets, roles and Origin rules stand in docs/reference/wire.md.",
        },
        "servers": [{"url": "http://car.local:8080"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": COOKIE,
                    "description": "Over https its name begins with __Host-. The "
                    "car's own computer needs none to see recordings.",
                },
                "station": {"type": "apiKey", "in": "header", "name": wire.MAC},
            },
        },
    }


def operation(call: Call) -> dict[str, Any]:
    """Return one operation of a path."""
    declaration = call.declaration
    answer: dict[str, Any] = {"description": call.summary}
    if declaration.answer is not None:
        answer["content"] = content(declaration.answer)
    locked = {"401": {"description": LOCKED}} if call.right in BY_COOKIE else {}
    result: dict[str, Any] = {
        "summary": call.summary,
        "description": f"Right: {call.right}.",
        "parameters": call.parameters,
        "responses": {
            str(declaration.status): answer,
            **locked,
            "default": {"description": REFUSAL},
        },
    }
    if declaration.body is not None:
        result["requestBody"] = {"required": True, "content": content(declaration.body)}
    if call.right != Right.ANYONE:
        scheme = "station" if call.right in BY_SIGNATURE else "cookie"
        unsigned: list[dict[str, Any]] = [{}] if call.right == Right.STATION_OR_LOCAL else []
        result["security"] = [{scheme: []}, *unsigned]
    return result


def is_struct(kind: Any) -> TypeGuard[type[msgspec.Struct]]:
    """Return whether a type is a struct."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def content(answer: Any) -> dict[str, Any]:
    """Return the content of a body, from its type or its media type."""
    if isinstance(answer, str):
        return {answer: {"schema": {"type": "string"}}}
    schema = (
        {"$ref": REF.format(name=answer.__name__)}
        if is_struct(answer)
        else (msgspec.json.schema(answer))
    )
    return {"application/json": {"schema": schema}}


def table() -> str:
    """Return a table of all calls, for a page."""
    rows = [
        f"| `{call.method.upper()} {call.path}` | {call.right} | {shown(call)} | {call.summary} |"
        for call in calls()
    ]
    head = "| call | role | parameters | effect |\n|---|---|---|---|"
    return "\n".join([head, *rows])


def shown(call: Call) -> str:
    """Return the parameters of a call, except those of its path and of all of a station's."""
    names = [item["name"] for item in call.parameters if item["in"] != "path"]
    return ", ".join(f"`{name}`" for name in names if name not in SIGNED)


def text() -> str:
    """Return the content of docs/reference/openapi.json."""
    return _laid_out(document(), 0) + "\n"


def _laid_out(value: Any, depth: int) -> str:
    """Write JSON; an object or array that fits into 160 characters has one line."""
    line = json.dumps(value, ensure_ascii=False)
    if depth + len(line) <= 160 or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_laid_out(one, depth + 1)}" for key, one in value.items()]
    else:
        parts = [_laid_out(one, depth + 1) for one in value]
    indent = "\n" + " " * depth
    return f"{line[0]}{indent} " + f",{indent} ".join(parts) + indent + line[-1]

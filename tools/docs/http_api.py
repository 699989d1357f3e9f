"""Generator of the HTTP API as OpenAPI 3.1: openapi.json and a table of wire.md in
docs/reference/.

Summaries and parameters are in http_calls.py; `routes()` reads the paths of a server.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from tools.docs.http_calls import (
    ANYBODY,
    CALLS,
    CHANGER,
    DRIVER,
    GROWN_UP,
    SIGNED,
    STATION,
    TEXT,
    Call,
)

from fpvcar.access.invitations_api import InvitationsApi
from fpvcar.access.remembered_browsers import COOKIE
from fpvcar.access.rights import DeviceRights
from fpvcar.calibration.api import CalibrationApi
from fpvcar.doctor.api import DoctorApi
from fpvcar.http.trust_api import TrustApi
from fpvcar.library.api.drives_api import DrivesApi
from fpvcar.library.api.exports import ExportsApi
from fpvcar.library.api.recordings_api import RecordingsApi
from fpvcar.library.api.station_api import StationApi
from fpvcar.seat.routes import Server
from fpvcar.wifi.api import NetworkApi

FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"
NO_API = ("/ws/", "/trust", "/{path}")
"""Prefixes of paths that are sockets or pages."""
ACCESS = {
    ANYBODY: (),
    DRIVER: (401, 403),
    CHANGER: (401, 403),
    GROWN_UP: (401, 403),
    STATION: (401, 403),
}
"""Permitted callers -> the statuses that refuse all others."""
REFUSALS = {
    400: "A parameter is out of bounds; the text names value and limit.",
    401: "The caller has to enter a code first; X-Opened-By is its kind.",
    403: "Origin, Host, Sec-Fetch-Site, ticket or nonce refused.",
    404: "Nothing of this name is here.",
    409: "Not now: the car drives, or the file is being written.",
    412: "The file is another one than If-Match says.",
    416: "The range lies outside the file.",
    422: "The file is damaged.",
    429: "Too many tries or jobs; the text says how long to wait.",
    503: "This part of the car does not answer, or all places are taken.",
}


def routes() -> set[tuple[str, str]]:
    """Return (method, path) of each operation that a car's server registers."""
    repository = type("DriveRepository", (), {"editable": True})()
    drives, recordings = (
        bare(DrivesApi, _repository=repository),
        {"_rights": bare(DeviceRights), "_exports": bare(ExportsApi)},
    )
    parts = (
        bare(RecordingsApi, _drives=drives, **recordings),
        bare(StationApi),
        bare(NetworkApi),
        bare(DoctorApi),
        bare(CalibrationApi),
        bare(InvitationsApi),
        bare(TrustApi),
    )
    server = bare(Server, _panel=object(), _picture=object(), _intercom=None, _apis=parts)
    return set(_registered(server.application()))


def _registered(app: web.Application) -> Iterator[tuple[str, str]]:
    for route in app.router.routes():
        path = route.resource.canonical if route.resource else ""
        if route.method != "HEAD" and not path.startswith(NO_API):
            yield route.method.lower(), path


def bare(kind: type, **fields: object) -> Any:
    """Return an object that only registers routes: its constructor is not run."""
    instance: Any = object.__new__(kind)
    vars(instance).update(fields)
    return instance


def document() -> dict[str, Any]:
    """Return the OpenAPI document as a dict."""
    structs = {
        struct for call in CALLS for struct in (call.answer, call.body) if isinstance(struct, type)
    }
    ordered = sorted(structs, key=lambda struct: struct.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for call in CALLS:
        paths.setdefault(call.path, {})[call.method] = operation(call)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fpvcar",
            "version": "1",
            "description": "Written by `make docs` from tools/docs/http_api.py. The "
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
                "station": {"type": "apiKey", "in": "header", "name": "X-Mac"},
            },
        },
    }


def operation(call: Call) -> dict[str, Any]:
    """Return one operation of a path."""
    params = [
        {"name": name, "in": "path", "required": True, "schema": TEXT}
        for name in ("name", "id")
        if "{" + name + "}" in call.path
    ]
    parameters = (*call.params, *(SIGNED if call.who == STATION else ()))
    params += [
        {
            "name": item.name,
            "in": item.place,
            "required": item.required,
            "description": item.meaning,
            "schema": item.schema,
        }
        for item in parameters
    ]
    answer: dict[str, Any] = {"description": call.summary}
    if call.answer is not None:
        answer["content"] = content(call.answer)
    refused = sorted({*call.refusals, *ACCESS[call.who]})
    result: dict[str, Any] = {
        "summary": call.summary,
        "description": f"Who may: {call.who}.",
        "parameters": params,
        "responses": {
            str(call.status): answer,
            **{str(item): {"description": REFUSALS[item]} for item in refused},
        },
    }
    if call.body is not None:
        result["requestBody"] = {"required": True, "content": content(call.body)}
    if call.who != ANYBODY:
        scheme = "station" if call.who == STATION else "cookie"
        result["security"] = [{scheme: []}]
    return result


def content(answer: Any) -> dict[str, Any]:
    """Return the content of a body: a Struct's schema, a JSON schema, or a media type."""
    if isinstance(answer, type):
        ref = {"$ref": f"#/components/schemas/{answer.__name__}"}
        return {"application/json": {"schema": ref}}
    if isinstance(answer, dict):
        return {"application/json": {"schema": answer}}
    return {answer: {"schema": {"type": "string"}}}


def table() -> str:
    """Return a table of all calls, for a page."""
    rows = [
        f"| `{call.method.upper()} {call.path}` | {call.who} | "
        f"{', '.join(f'`{param.name}`' for param in call.params)} | {call.summary} |"
        for call in CALLS
    ]
    head = "| call | role | parameters | effect |\n|---|---|---|---|"
    return "\n".join([head, *rows])


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

"""Answers of routes: headers, refusals and faults, figures of a query.

raise refused(web.HTTPConflict, CAR_MOVES) -> pages.errors_as_pages, by the header Accept:
    application/problem+json    Problem (RFC 9457)
    text/html                   a page in the browser's language
    else                        English as text/plain, key and values in X-Refusal
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.texts import VERBATIM, Text, fault_text

CAR_MOVES = Text("car_moves", "The car is moving: wait until it stops, then try again.")
RECORDING_GONE = Text("recording_gone", "This recording no longer exists.")

PRIVATE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
BYTES = {**PRIVATE, "Content-Type": "application/octet-stream"}
JSON = {**PRIVATE, "Content-Type": "application/json"}
HEADER_MOST, TEXT_MOST = 4000, 4000
"""Most characters of a refusal: clients reject header lines above 8190 bytes."""
T = TypeVar("T")


class Problem(msgspec.Struct, frozen=True):
    """Refusal or fault as application/problem+json (RFC 9457). `title` is English; pages show
    `text` in their language."""

    type: str
    title: str
    status: int
    text: Text


def refused(
    kind: type[web.HTTPException], text: Text, headers: Mapping[str, str] | None = None
) -> web.HTTPException:
    """Return a refusal as an answer that clients can read, whatever a request has put into it."""
    sent = _as_query(text)
    header = {"X-Refusal": sent} if len(sent) <= HEADER_MOST else {}
    answer = kind(text=f"{str(text)[:TEXT_MOST]}\n", headers={**(headers or {}), **header})
    answer.args = (text,)
    return answer


def failed(kind: type[web.HTTPException], fault: Exception) -> web.HTTPException:
    """Return a fault as an answer."""
    return refused(kind, fault_text(fault))


def text_of(answer: web.HTTPException) -> Text:
    """Return the text of a refusal or an error."""
    if isinstance(answer.args[0], Text):
        return answer.args[0]
    return VERBATIM(text=(answer.text or answer.reason).strip())


def as_problem(answer: web.HTTPException) -> bytes:
    """Return a refusal or an error as the body of application/problem+json."""
    text, status = text_of(answer), answer.status
    return msgspec.json.encode(Problem(f"urn:fpvcar:{text.key}", str(text), status, text))


def _as_query(text: Text) -> str:
    """Return key and values as a query, for clients of the version before."""
    values = {
        name: _as_query(value) if isinstance(value, Text) else value
        for name, value in text.values.items()
    }
    return urlencode({"key": text.key, **values})


def answering(act: Callable[[], T]) -> Callable[[], T]:
    """Wrap `act` to turn faults into answers: HTTPNotFound, HTTPUnprocessableEntity."""

    def tried() -> T:
        try:
            return act()
        except FileNotFoundError:
            raise refused(web.HTTPNotFound, RECORDING_GONE) from None
        except (RecordingError, OSError) as fault:
            raise failed(web.HTTPUnprocessableEntity, fault) from None

    return tried


def number_of(request: web.Request, name: str, usual: float, least: float, most: float) -> float:
    """Return a figure from the query, or `usual` if absent. Raises HTTPBadRequest."""
    text = request.query.get(name)
    if text is None:
        return usual
    with suppress(ValueError):
        if least <= float(text) <= most:  # neither is NaN
            return float(text)
    raise web.HTTPBadRequest(
        text=f'{name} = "{quoted(text)}" refused: expected {least:g} to {most:g}.\n'
    )


def quoted(text: str) -> str:
    """Quote a received value: short, and in ASCII characters."""
    return text[:40].encode("ascii", "backslashreplace").decode()

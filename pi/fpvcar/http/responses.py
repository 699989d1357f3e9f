"""Helpers shared by the routes of recordings: headers, faults as answers, query figures."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from aiohttp import web

from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.sentences import fault_text, sent_as
from fpvcar.wire.refusals import Refusal

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


def refused(
    kind: type[web.HTTPException], refusal: Refusal, headers: Mapping[str, str] | None = None
) -> web.HTTPException:
    """Return a refusal as an answer."""
    return _answer(kind, str(refusal), {**(headers or {}), **refusal.header})


def failed(kind: type[web.HTTPException], fault: Exception) -> web.HTTPException:
    """Return a fault as an answer, with key and values of a sentence."""
    text = fault_text(fault)
    sent = sent_as(text)
    return _answer(kind, text, {"X-Refusal": sent} if sent else {})


def _answer(
    kind: type[web.HTTPException], text: str, headers: Mapping[str, str]
) -> web.HTTPException:
    """Return an answer that clients can read, whatever a request has put into it."""
    short = {name: value for name, value in headers.items() if len(value) <= HEADER_MOST}
    return kind(text=f"{text[:TEXT_MOST]}\n", headers=short)


def answering(act: Callable[[], T]) -> Callable[[], T]:
    """Wrap `act` to turn faults into answers: HTTPNotFound, HTTPUnprocessableEntity."""

    def tried() -> T:
        try:
            return act()
        except FileNotFoundError:
            raise refused(web.HTTPNotFound, Refusal("recording_gone")) from None
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

"""Page of the driver with a played car: any state at once, no randomness.

No server runs: the page's files come from web/, and played_car.js stands in for the sockets.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, Route

from fpvcar.http.pages import HEADERS, PAGE_TYPES
from fpvcar.runtime import paths

SECURE, PLAIN, HTTPS = "http://localhost/", "http://car.local/", "https://car.local/"
"""Addresses at which a browser has WebCodecs, has not, and has a certificate to judge."""
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
VECTORS = Path(__file__).parents[2] / "tests" / "vectors" / "drive_down.json"
_WELCOME, _STATE = (one["fields"] for one in json.loads(VECTORS.read_text())["good"][:2])
WELCOME = {**_WELCOME, "late_ms": 200, "https_port": 8081}
STATE: Mapping[str, Any] = {
    **_STATE,
    "throttle": 0.0,
    "steer": 0.0,
    "reason": "idle",
    "settings": {"head_lights": False},
    "ranges": [
        {"name": name, "bearing_deg": bearing, "range_m": range_m, "age_s": 0.01, "state": "ok"}
        for name, bearing, range_m in (
            ("front", 0.0, 0.42),
            ("left", 45.0, 1.2),
            ("right", -45.0, 0.25),
            ("rear", 180.0, 0.6),
        )
    ],
    "guard": {
        "mode": "limit",
        "stop_m": 0.15,
        "ahead": 1.0,
        "back": 1.0,
        "ahead_by": "front",
        "back_by": "rear",
    },
    "health": {**_STATE["health"], "faults": [], "wifi_dbm": -52.0},
    "asking": None,
}
"""State of a driver at the wheel of a healthy car."""


def play(context: BrowserContext, units: Sequence[bytes], welcome: Mapping[str, Any] = {}) -> Page:
    """Return a page that has not been opened yet; `units` is its film, a key frame first."""
    said = json.dumps(
        {
            "welcome": {**WELCOME, **welcome},
            "state": STATE,
            "film": [base64.b64encode(unit).decode() for unit in units],
        }
    )
    context.add_init_script(f"{SCRIPT}\nplayed.begin({said});")
    page = context.new_page()
    for origin in (SECURE, PLAIN, HTTPS):
        page.route(f"{origin}**", _answer)
    return page


def _answer(route: Route) -> None:
    name = route.request.url.split("/", 3)[3].partition("?")[0] or "index.html"
    file = paths.WEB / name
    if not file.is_file():
        route.fulfill(status=404)
        return
    kind = PAGE_TYPES[file.suffix]
    route.fulfill(body=file.read_bytes(), headers={**HEADERS, "Content-Type": kind})


def say(page: Page, state: Mapping[str, Any], **more: Any) -> None:
    """Change the car's messages; `more`: filming, linked, refuses, lateMs."""
    page.evaluate("([state, more]) => played.say(state, more)", [dict(state), more])

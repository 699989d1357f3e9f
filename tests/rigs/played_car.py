"""The driver's page with a car that is only played: any state at once, none by chance.

No server runs: the page's files come from web/, and played_car.js stands for the
sockets.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, Route

from fpvcar import paths
from fpvcar.server.pages import HEADERS, PAGE_TYPES

SECURE, PLAIN = "http://localhost/", "http://car.local/"
"""Where a browser has WebCodecs, and where it has not."""
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
WELCOME = {
    "kind": "welcome", "v": 1, "car": "Plague", "version": "0.1.0",
    "silence_ms": 250, "late_ms": 200, "drive_every_ms": 40, "width": 640,
    "height": 480, "fps": 30.0, "https_port": 8081, "code_needed": True,
    "has_lights": True, "has_horn": True,
}  # fmt: skip
STATE: Mapping[str, Any] = {
    "role": "driver", "may_drive": True, "grown_up": False, "driver": "Zoë",
    "seat_free": False, "throttle": 0.0, "steer": 0.0, "reason": "idle", "stop": None,
    "limit": 0.75, "head_lights": False, "viewers": 2,
    "battery": {
        "volts": 7.4, "amps": 1.25, "share": 0.6, "low": False, "age_s": 0.04,
        "state": "ok",
    },
    "ranges": [
        {"name": name, "bearing_deg": bearing, "range_m": range_m, "age_s": 0.01,
         "state": "ok"}
        for name, bearing, range_m in (
            ("front", 0.0, 0.42), ("left", 45.0, 1.2), ("right", -45.0, 0.25),
            ("rear", 180.0, 0.6),
        )
    ],
    "wheels": "ok", "camera": "ok",
    "guard": {
        "mode": "limit", "stop_m": 0.15, "ahead": 1.0, "back": 1.0, "ahead_by": "front",
        "back_by": "rear",
    },
    "health": {
        "faults": [], "celsius": 48.3, "throttled": 0, "wifi_dbm": -52.0,
        "wifi_mbps": 72.2, "disk_free_mb": 9000.0, "memory_free_mb": 210.5,
        "load": 0.35, "uptime_s": 3600.0, "age_s": 0.8,
    },
    "recording": {
        "on": True, "state": "ok", "seconds": 61.5, "free_mb": 11000.0, "kept": 1,
        "dropped": 0, "station": True,
    },
}  # fmt: skip
"""At the wheel of a car that is well."""


def play(
    context: BrowserContext, units: Sequence[bytes], welcome: Mapping[str, Any] = {}
) -> Page:
    """A page that has not been opened yet; `units` is its film, a key frame first."""
    said = json.dumps(
        {
            "welcome": {**WELCOME, **welcome},
            "state": STATE,
            "film": [base64.b64encode(unit).decode() for unit in units],
        }
    )
    context.add_init_script(f"{SCRIPT}\nplayed.begin({said});")
    page = context.new_page()
    for origin in (SECURE, PLAIN):
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
    """Changes what the car says; `more`: filming, linked, lateMs."""
    page.evaluate("([state, more]) => played.say(state, more)", [dict(state), more])

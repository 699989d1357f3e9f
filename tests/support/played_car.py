"""Page of the driver with a played car: any state at once, no randomness.

A server in this process has the files of web/; played_car.js stands in for the sockets.
"""

import base64
import functools
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

from fpvcar.runtime import paths
from fpvcar.server.http.pages import HEADERS, PAGE_TYPES
from tests.support.ports import free_port

PORT = free_port()
SECURE, PLAIN = f"http://localhost:{PORT}/", f"http://car.local:{PORT}/"
"""Addresses at which a browser has WebCodecs, or has not: see FLAGS in tests/e2e/conftest.py."""
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
VECTORS = Path(__file__).parents[1] / "vectors" / "drive_down.json"
_WELCOME, _STATE = (one["fields"] for one in json.loads(VECTORS.read_text())["good"][:2])
WELCOME = {**_WELCOME, "late_ms": 200, "https_port": 8081}
STATE: Mapping[str, Any] = {
    **_STATE,
    "throttle": 0.0,
    "steer": 0.0,
    "reason": "idle",
    "head_lights": False,
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
    serve()
    context.add_init_script(f"{SCRIPT}\nplayed.begin({said});")
    return context.new_page()


@functools.cache
def serve() -> ThreadingHTTPServer:
    """Start the server of the page's files, once."""
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Files(BaseHTTPRequestHandler):
    """Answers of the server. A browser context keeps each file: a page has some 80 of them."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        name = self.path[1:].partition("?")[0] or "index.html"
        file = paths.WEB / name
        kind = PAGE_TYPES.get(file.suffix)
        body = file.read_bytes() if kind and file.is_file() else b""
        self.send_response(200 if body else 404)
        headers = {**HEADERS, "Cache-Control": "max-age=3600", "Content-Length": str(len(body))}
        for header, value in {**headers, "Content-Type": kind or "text/plain"}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.close_connection = True  # its body is not read
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def say(page: Page, state: Mapping[str, Any], **more: Any) -> None:
    """Change the car's messages; `more`: filming, linked, lateMs."""
    page.evaluate("([state, more]) => played.say(state, more)", [dict(state), more])

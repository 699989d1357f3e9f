"""HTTP answers of a played car: every kind of calibration step, findings, an invitation, its
picture, its certificate, its Wi-Fi, its recordings."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from aiohttp import web
from playwright.sync_api import Page, Route

from fpvcar.calibration.calibrator import Calibrator
from fpvcar.calibration.store import History
from fpvcar.config import profiles
from fpvcar.doctor.checks.computer import THROTTLED_CPU
from fpvcar.http.pages import PROBLEM
from fpvcar.http.responses import as_problem, refused
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text

PROFILE = "mx1508-servo.toml"
MORE = (
    "sensors.tof.front.address = 0x29",
    "sensors.tof.front.bearing_deg = 0",
    "battery.address = 0x40",
)
"""Overrides that give the profile all kinds of steps."""
UTC_S = 1795437000.0
PEOPLE = [
    {
        "id": "a1234567",
        "name": "Mum",
        "where": "home network",
        "grown_up": True,
        "drives": False,
        "you": True,
    },
    {
        "id": "b1234567",
        "name": "Ann",
        "where": "elsewhere",
        "grown_up": False,
        "drives": True,
        "you": False,
        "left_s": 3600.0,
    },
    {
        "id": "c1234567",
        "name": "Bob",
        "where": "this computer",
        "grown_up": False,
        "drives": False,
        "you": False,
        "away_s": 7000.0,
    },
]
FINDINGS = {
    "about": "Rusty, Raspberry Pi 3 Model A Plus",
    "findings": [
        {**msgspec.to_builtins(THROTTLED_CPU.finding()), "severity": severity}
        for severity in ("fault", "warning", "note")
    ],
    "well": ["profile", "pins"],
    "not_asked": [{"part": "motors", "why": "nothing moves without --move"}],
}
INVITATION = {
    "link": "http://car.local/#invited=abc",
    "left_s": 3600,
    "qr": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>',
}
PICTURE = {
    "width": 640,
    "height": 480,
    "fps": 30,
    "flip": "none",
    "exposure": "normal",
    "brightness": 0.0,
    "night": False,
    "can": ["width", "fps", "view", "flip", "exposure", "brightness", "night"],
    "view": "whole",
    "mode": ["imx219: 1640x1232, 10 bits, 100 % x 100 % of it, 62° wide, at most 41.85 fps"],
    "sentences": {},
}
TRUST = {"https_port": 8081, "name": "Rusty's own authority", "fingerprint": "9f" * 32}
NETWORK = {
    "phase": "own",
    "own": {"ssid": "Rusty", "key": "four of a kind", "qr": ["1"]},
    "ssid": "Home",
    "reason": "",
    "seen_s": 7,
    "name": "",
    "driven": False,
    "join_s": 45,
    "address": "10.42.0.1",
    "networks": [
        {"ssid": "Home", "strength": 70, "security": "key"},
        {"ssid": "Café", "strength": 50, "security": "open"},
        {"ssid": "Office", "strength": 30, "security": "other"},
    ],
}
_PART = {
    "name": "Rusty-1-0001.mcap",
    "start_ms": UTC_S * 1000,
    "seconds": 65.0,
    "bytes": 9_300_000,
    "state": "closed",
    "lost": "",
    "pictures": 0,
    "from_s": 0.0,
    "marks": [{"t": 12.5, "text": ""}],
    "to_s": 65.0,
    "shared": False,
}
DRIVES = {
    "car": "Rusty",
    "seat": True,
    "station": True,
    "to_search": "",
    "parquet": True,
    "grown_up": True,
    "removable": True,
    "editable": True,
    "drivers": ["Ann"],
    "more": False,
    "unread": 2,
    "drives": [
        {
            "id": "Rusty-1",
            "start_ms": UTC_S * 1000,
            "seconds": 65.0,
            "parked": False,
            "drivers": ["Ann"],
            "stops": {"estop_grown_up": 2, "silence": 1},
            "metres": 42.0,
            "bytes": 9_300_000,
            "state": "damaged",
            "parts": [_PART],
            "title": "",
        }
    ],
    "copies": {
        "Rusty-1": [
            {"place": "car", "verified_s": UTC_S, "whole": True},
            {"place": "station", "verified_s": 0, "whole": False},
        ]
    },
}
TABLE = {
    "start_ms": UTC_S * 1000,
    "seconds": 65.0,
    "marks": [],
    "gaps": [],
    "reasons": [{"t": 0.0, "reason": "limited"}],
    "series": [{"group": "range", "name": "front", "unit": "m", "t": [0.0, 65.0], "v": [0.5, 2.0]}],
}
STORAGE = {
    "store": {
        "path": "/srv/cars",
        "sessions": 1,
        "segments": 12,
        "bytes": 108_000_000,
        "free": 40_200_000_000,
        "total": 64_000_000_000,
    },
    "cars": [
        {
            "name": "Rusty",
            "folder": "Rusty",
            "url": "",
            "state": "fetching",
            "waiting": 2,
            "bytes": 9e7,
            "waiting_bytes": 18_600_000,
            "rate": 4e6,
            "card_free": 3e9,
            "card_total": 16e9,
        }
    ],
    "offices": [
        {
            "place": "office:/cars",
            "state": "full",
            "waiting": 1,
            "bytes": 9e7,
            "waiting_bytes": 1.8e7,
            "rate": 0.0,
            "last_fault": "no answer",
            "fault_s": UTC_S,
        }
    ],
    "unread": 1,
    "why_anew": "",
    "chores": [],
}


class PlayedAnswers:
    """Answers to a page of `played_car`."""

    def __init__(self, page: Page) -> None:
        own = profiles.load(paths.HARDWARE / PROFILE, MORE)
        self._tuner = Calibrator(own, History())
        self._tuner.set("motors.drive.trim", 0.05, UTC_S)
        self.steps = list(self._tuner.offered())
        self._answers: dict[str, Callable[[dict[str, list[str]]], Any]] = {
            "calibration": lambda asked: self._tuner.as_json(),
            "calibration/begin": self._begin,
            "calibration/step": lambda asked: self._tuner.status(1.0, 7.4, 0.0),
            "calibration/end": lambda asked: self._tuner.end(),
            "doctor": lambda asked: FINDINGS,
            "invitations": lambda asked: INVITATION,
            "picture": lambda asked: PICTURE,
            "trust": lambda asked: TRUST,
            "network": lambda asked: NETWORK,
            "recordings/drives": lambda asked: DRIVES,
            f"recordings/{_PART['name']}/table": lambda asked: TABLE,
            "status": lambda asked: STORAGE,
        }
        page.route("**/api/**", self._answer)

    def _begin(self, asked: dict[str, list[str]]) -> Any:
        self._tuner.begin(asked["step"][0], asked.get("of", [""])[0], 0.0)
        return self._tuner.status(1.0, 7.4, 0.0)

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        answer = self._answers.get(url.path.removeprefix("/api/"))
        if answer is None:
            route.fulfill(status=404)
        else:
            said = answer(parse_qs(url.query))
            route.fulfill(body=json.dumps(said), content_type="application/json")


def refuse(route: Route, kind: type[web.HTTPException], text: Text) -> None:
    """Refuse a page's request as a car or a station does."""
    answer = refused(kind, text)
    route.fulfill(status=answer.status, body=as_problem(answer), content_type=PROBLEM)

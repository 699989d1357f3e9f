"""States of the driver's seat by name, on a simulated car, and the sizes of screen for the
checks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

from testkit.browsers.played_car import PLAIN, SECURE, STATE, say
from testkit.browsers.seat import until

TOUCH = {
    "320x568": (320, 568),
    "390x844": (390, 844),
    "568x320": (568, 320),
    "844x390": (844, 390),
    "768x1024": (768, 1024),
    "1024x768": (1024, 768),
}
KEYS = {"500x700-keys": (500, 700), "1024x768-keys": (1024, 768), "1440x900-keys": (1440, 900)}
WATCHING = {"role": "watching", "driver": "Ann"}
FREE = {**WATCHING, "driver": None, "seat_free": True}
LOCKED = {**FREE, "may_drive": False}
STOPPED = {"stop": {"cause": "estop", "clears": "resume", "by": "Ann"}}
BLIND = {"stop": {"cause": "blind", "clears": "neutral", "by": ""}}
PINS = {"stop": {"cause": "pins", "clears": "resume", "by": ""}}
LOW = {**STATE["battery"], "volts": 6.4, "share": 0.05, "low": True}
NEAR = {"throttle": 0.2, "reason": "guarded", "guard": {**STATE["guard"], "ahead": 0.2}}
NO_CAMERA = "no camera is connected: push its cable in, blue side to the clip"
GROWN_UP = {"grown_up": True}
INTERCOM = {"parts": {"intercom": {"on": True}}}
REAR = {"cameras": ["rear"]}
AIM = {"deg": 25.0, "least_deg": -70.0, "most_deg": 70.0, "rest_deg": 0.0}
SERVOS = {
    "parts": {
        **INTERCOM["parts"],
        "servos": {"servos": {"pan": AIM, "tilt": AIM, "grip": AIM}, "viewers": False},
    }
}
SERVOS_FAULT = {
    "key": "servo_fault",
    "english": "servo {name}: {reason}",
    "values": {"name": "pan", "reason": "PCA9685, tried twice: I2C bus 1 address 0x60: no answer"},
}
ASKS = {
    "asking": {"phase": "asks", "left_s": 30.0, "id": "a1234567", "name": "Quick Hedgehog (phone)"}
}
WAITS = {**WATCHING, "wait_s": 6.5, "asking": {"phase": "waits", "left_s": 30.0}}
LATER = {**WATCHING, "wait_s": 4.5, "asking": {"phase": "later", "left_s": 25.0}}
DRIVE, CAR, GROWN_UPS = (("#gear", f"#tab-{tab}") for tab in ("drive", "car", "grown-ups"))
"""The controls that open the menu at a tab."""
SAID = "document.getElementById('asking-says').textContent !== ''"
LOOKS_FAULTY = "document.getElementById('look')?.classList.contains('fault')"
LOOKS_AROUND = "document.getElementById('look') !== null"
SMALL = "document.getElementById('small-picture')?.hidden === false"


@dataclass(frozen=True)
class Look:
    """State of the seat: the car's messages, the controls to push, and the expected page."""

    says: Mapping[str, Any] = field(default_factory=dict)
    shows: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    push: tuple[str, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    new_here: bool = False
    origin: str = SECURE


def _faulty(servos: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a car whose servos get no pulses."""
    parts = servos["parts"]
    return {"parts": {**parts, "servos": {**parts["servos"], "state": SERVOS_FAULT}}}


def _situation(kind: str) -> str:
    return f"document.body.dataset.situation === '{kind}'"


def _open(panel: str) -> str:
    return f"document.getElementById('{panel}')?.hidden === false"


LOOKS = {
    "watching": Look(WATCHING, _situation("watching")),
    "free": Look(FREE, _situation("watching")),
    "locked": Look(LOCKED, _situation("locked")),
    "driving": Look({}, _situation("ready")),
    "stopped": Look(STOPPED, _situation("stopped")),
    "pins": Look(PINS, _situation("stopped")),
    "blind": Look(BLIND, _situation("stopped"), {"filming": False}),
    "camera-lost": Look({"camera": NO_CAMERA}, _situation("camera"), {"filming": False}),
    "link-lost": Look({}, _situation("lost"), {"linked": False}),
    "link-late": Look({}, _situation("late"), {"lateMs": 320}),
    "battery-low": Look({"battery": LOW}, _situation("battery")),
    "taken": Look(WATCHING, _situation("taken"), before={"role": "driver"}),
    "guard": Look(NEAR, "document.body.innerText.includes('slows down')"),
    "asked-guard": Look({**NEAR, **ASKS, **REAR}, SAID),
    "asked": Look(ASKS, SAID),
    "asked-stopped": Look({**STOPPED, **ASKS}, SAID),
    "asking": Look(WAITS, SAID),
    "refused": Look(LATER, SAID),
    "help": Look({}, _open("intro"), new_here=True),
    "help-free": Look(FREE, _open("intro"), new_here=True),
    "help-stopped": Look(STOPPED, _open("intro"), new_here=True),
    "help-asked-stopped": Look({**STOPPED, **ASKS}, SAID, new_here=True),
    "help-blind": Look(BLIND, _open("intro"), {"filming": False}, new_here=True),
    "help-plain-http": Look(FREE, _open("intro"), new_here=True, origin=PLAIN),
    "plain-http": Look(FREE, _open("secure"), origin=PLAIN),
    "plain-http-driving": Look({}, _open("secure"), origin=PLAIN),
    "plain-http-locked": Look(LOCKED, _open("secure"), origin=PLAIN),
    "naming": Look({"named": False}, _open("naming"), new_here=True),
    "naming-blind": Look({"named": False}, _open("naming"), {"filming": False}, new_here=True),
    "keys": Look({}, _open("keys"), push=(*DRIVE, "#show-keys")),
    "intercom": Look(INTERCOM, _open("talk")),
    "intercom-stopped": Look({**INTERCOM, **STOPPED}, _open("talk")),
    "menu-intercom": Look({**INTERCOM, **GROWN_UP}, _open("talk"), push=GROWN_UPS),
    "menu": Look({}, _open("menu"), push=DRIVE),
    "menu-stopped": Look(STOPPED, _open("menu"), push=DRIVE),
    "menu-asked-stopped": Look({**STOPPED, **ASKS}, SAID, push=CAR),
    "menu-car": Look(GROWN_UP, _open("menu"), push=CAR),
    "menu-grown-up": Look(GROWN_UP, _open("menu"), push=GROWN_UPS),
    "link-details": Look({}, _open("menu"), push=("#link-chip",)),
    "figures": Look({}, _open("figures"), push=("#link-chip", "#show-figures")),
    "code": Look(LOCKED, _open("unlock"), push=("#wheel",)),
    "code-asked": Look(ASKS, SAID, push=(*GROWN_UPS, "#grown-code")),
    "code-asked-stopped": Look({**STOPPED, **ASKS}, SAID, push=(*GROWN_UPS, "#grown-code")),
    "two-cameras": Look(REAR, SMALL),
    "two-cameras-watching": Look({**REAR, **WATCHING}, SMALL),
    "servos": Look({**SERVOS, **REAR}, LOOKS_AROUND),
    "servos-stopped": Look({**SERVOS, **STOPPED, **REAR}, LOOKS_AROUND),
    "servos-fault": Look({**_faulty(SERVOS), **REAR}, LOOKS_FAULTY),
    "servos-watching": Look({**SERVOS, **WATCHING}, LOOKS_AROUND),
    "menu-servos": Look({**SERVOS, **GROWN_UP}, _open("menu"), push=GROWN_UPS),
    "menu-sliders": Look(SERVOS, _open("menu"), push=DRIVE),
    "code-stopped": Look(STOPPED, _open("unlock"), push=(*GROWN_UPS, "#grown-code")),
}


def show(page: Page, look: Look) -> None:
    """Open the page again in that state."""
    page.goto(f"{look.origin}icon.svg")
    page.evaluate(
        "([seen, state]) => { localStorage.setItem('fpvcar.seen', seen);"
        " localStorage.setItem('fpvcar.path', 'yes');"
        " localStorage.setItem('fpvcar.small-picture', 'yes');"
        " localStorage.setItem('fpvcar.name', 'Blue Fox (phone)');"
        " sessionStorage.setItem('played', state); }",
        ["" if look.new_here else "yes", json.dumps(dict(look.before or look.says))],
    )
    page.goto(look.origin)
    until(page, "window.fpvcar?.video.shown > 3 && window.fpvcar.state?.role")
    until(page, "document.getElementById('secure') !== null")  # the menu has come
    if look.before:
        until(page, "window.fpvcar.state.role === 'driver'")
    say(page, look.says, **look.more)
    for selector in look.push:
        if selector == "#show-keys":  # shown once a key has driven
            page.evaluate("document.body.dataset.input = 'keys'")
        page.locator(selector).click()
    until(page, look.shows)
    if look.more.get("filming") is False:
        until(page, "document.body.dataset.picture === 'old'")

"""State machine of the Wi-Fi: when to open an access point, and how joining ends. Pure.

    searching --known network--> known --lost--> searching
        |  30 s                    |
        v                          | join
     opening --> own --join--> joining --> known
        ^         |  5 min unused  |
        |         v                | wrong key, not in range, 45 s
        |     searching            v
        +---------------------- failed (the reason stays until a network is joined)

The owner of the radio reports its state (`update`) and carries out each `Act`.
"""

from dataclasses import dataclass
from typing import Literal

from fpvcar.runtime.texts import BOTH, Text
from fpvcar.wire.network import Phase

FAR = Text("wifi_far", "the network is out of range")
KEY_WRONG = Text("wifi_key_wrong", "wrong key")

SEARCH_S = 30.0
"""Time to find a known network before the car opens its own."""
OWN_S = 300.0
"""Time without users after which the car's own network closes to search for known ones."""
JOIN_S = 45.0
"""Time limit for joining before the car opens its own network again."""
RETRY_S = 30.0
"""Retry interval for a network that did not open."""

Kind = Literal["none", "idle", "network", "own"]


@dataclass(frozen=True)
class Link:
    """State of the radio. `none`: unusable, `reason` states the fault and the next
    step; `idle`: in no network, or about to join one."""

    kind: Kind
    ssid: str = ""
    reason: Text | None = None


@dataclass(frozen=True)
class Open:
    """Open the car's own network."""


@dataclass(frozen=True)
class Search:
    """Close the own network; the owner of the radio then finds known networks by itself."""


Act = Open | Search


@dataclass(frozen=True)
class State:
    """Phase and its start time; `ssid` and `reason` as in NetworkState."""

    phase: Phase
    since_s: float
    ssid: str = ""
    reason: Text | None = None


class Machine:
    """Current state and its transitions."""

    def __init__(self, opens: bool, now_s: float) -> None:
        """`opens`: the car may open a network of its own."""
        self._opens, self._left_known = opens, False
        self.state = State("searching", now_s)

    def due_s(self) -> float | None:
        """Return the time of the next timed transition; None for never."""
        state = self.state
        waits = {"searching": SEARCH_S, "own": OWN_S, "failed": RETRY_S}
        if state.phase == "searching" and not self._opens:
            return None
        wait_s = waits.get(state.phase)
        return None if wait_s is None else state.since_s + wait_s

    def update(self, link: Link, used: bool, now_s: float) -> Act | None:
        """Process the radio's state. `used`: a page is open in the car's own network."""
        phase = self.state.phase
        if link.kind == "none":
            self._enter("absent", now_s, reason=link.reason)
        elif link.kind == "network":
            self._enter("known", now_s, link.ssid)
        elif link.kind == "own":
            self._enter("own", now_s, self.state.ssid, self.state.reason)
            if used:
                self.state = State("own", now_s, self.state.ssid, self.state.reason)
            elif self._is_due(now_s):
                return self._search(now_s)
        elif phase not in ("searching", "failed"):
            self._search(now_s)
        elif self._is_due(now_s):
            return self._open(now_s)
        return None

    def join(self, ssid: str, now_s: float) -> None:
        """Start joining another network, on request."""
        self._left_known = self.state.phase == "known"
        self.state = State("joining", now_s, ssid)

    def joined(self, ssid: str, now_s: float) -> None:
        """Record that the network has been joined."""
        self.state = State("known", now_s, ssid)

    def not_joined(self, reason: Text, now_s: float) -> Act:
        """Record a failed attempt and its reason, and return to the previous network."""
        self.state = State("failed", now_s, self.state.ssid, reason)
        own = self._opens and not self._left_known
        return self._open(now_s) if own else self._search(now_s)

    def not_opened(self, reason: Text, now_s: float) -> None:
        """Record that the car's own network did not open; it is retried later."""
        reasons = self.state.reason
        if reasons is None or str(reason) not in str(reasons):
            reasons = BOTH(first=reasons, second=reason) if reasons else reason
        self.state = State("failed", now_s, self.state.ssid, reasons)

    def _enter(
        self, phase: Phase, now_s: float, ssid: str = "", reason: Text | None = None
    ) -> None:
        """Enter a phase; keep its start time if it has not changed."""
        same = self.state.phase == phase
        self.state = State(phase, self.state.since_s if same else now_s, ssid, reason)

    def _is_due(self, now_s: float) -> bool:
        due_s = self.due_s()
        return due_s is not None and now_s >= due_s

    def _search(self, now_s: float) -> Search:
        self.state = State("searching", now_s, self.state.ssid, self.state.reason)
        return Search()

    def _open(self, now_s: float) -> Open:
        self.state = State("opening", now_s, self.state.ssid, self.state.reason)
        return Open()

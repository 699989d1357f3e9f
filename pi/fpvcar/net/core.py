"""When the car opens a network of its own, and what becomes of joining another. Pure.

    searching --known network--> known --lost--> searching
        |  30 s                    |
        v                          | join
     opening --> own --join--> joining --> known
        ^         |  5 min unused  |
        |         v                | wrong key, not in range, 45 s
        |     searching            v
        +---------------------- failed (the reason stays until something is joined)

Whoever holds the radio tells what it is at (`look`), and does what it is told (`Act`).
"""

from dataclasses import dataclass
from typing import Literal

from fpvcar.wire.network import Phase

SEARCH_S = 30.0
"""How long known networks have to be found before the car opens its own."""
OWN_S = 300.0
"""So long nobody uses the car's own network before it looks for known ones again."""
JOIN_S = 45.0
"""How long joining may take before the car opens its own network again."""
AGAIN_S = 30.0
"""When a network that did not open is tried again."""

Kind = Literal["none", "idle", "network", "own"]


@dataclass(frozen=True)
class Link:
    """What the radio is at. `none`: it cannot be used, `words` say why and what next;
    `idle`: it is in no network, or on its way into one."""

    kind: Kind
    ssid: str = ""
    words: str = ""


@dataclass(frozen=True)
class Open:
    """Open the car's own network."""


@dataclass(frozen=True)
class Search:
    """Close it; whoever holds the radio finds known networks by itself."""


Act = Open | Search


@dataclass(frozen=True)
class State:
    """A phase, since when; `ssid` and `reason` as NetworkState has them."""

    phase: Phase
    since_s: float
    ssid: str = ""
    reason: str = ""


class Machine:
    """The state, and what follows from what is seen."""

    def __init__(self, opens: bool, now_s: float) -> None:
        """`opens`: may it open a network of its own?"""
        self._opens, self._left_known = opens, False
        self.state = State("searching", now_s)

    def due_s(self) -> float | None:
        """When it does something by itself; None: never."""
        state = self.state
        waits = {"searching": SEARCH_S, "own": OWN_S, "failed": AGAIN_S}
        if state.phase == "searching" and not self._opens:
            return None
        wait_s = waits.get(state.phase)
        return None if wait_s is None else state.since_s + wait_s

    def look(self, link: Link, used: bool, now_s: float) -> Act | None:
        """Takes what the radio is at; `used`: somebody looks at pages of the car."""
        phase = self.state.phase
        if link.kind == "none":
            self._be("absent", now_s, reason=link.words)
        elif link.kind == "network":
            self._be("known", now_s, link.ssid)
        elif link.kind == "own":
            self._be("own", now_s, self.state.ssid, self.state.reason)
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
        """Somebody wants to be in another network; the radio is about to try."""
        self._left_known = self.state.phase == "known"
        self.state = State("joining", now_s, ssid)

    def joined(self, ssid: str, now_s: float) -> None:
        """The radio is in it."""
        self.state = State("known", now_s, ssid)

    def not_joined(self, reason: str, now_s: float) -> Act:
        """The radio is not, for this reason: back to where it was."""
        self.state = State("failed", now_s, self.state.ssid, reason)
        own = self._opens and not self._left_known
        return self._open(now_s) if own else self._search(now_s)

    def not_opened(self, reason: str, now_s: float) -> None:
        """The car's own network did not open; it is tried again later."""
        before = self.state.reason
        if reason not in before:
            before = f"{before}; {reason}" if before else reason
        self.state = State("failed", now_s, self.state.ssid, before)

    def _be(self, phase: Phase, now_s: float, ssid: str = "", reason: str = "") -> None:
        """Stays what it is, since when it is, or becomes it."""
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

"""Children's buttons: glowing, the rainbow, the memory game. Pure.

    the car's contacts --+
                         +-> Play.hold -> pushes -> lit buttons, and the mode
    pages' fingers ------+

Every time is an argument. States hold the times at which something is due, so the
result does not depend on how often or how late they are read.
"""

import math
from dataclasses import dataclass, replace
from random import Random

from fpvcar.wire.buttons import View

GLOW_S = 0.25
"""Minimum glow of a push; no button flashes faster than 4 times a second."""
LONG_S = 2.0
"""Holding one button of the car this long starts the game, two buttons the rainbow."""
CHOOSE_S = 0.6
"""Minimum interval between choices: endless tapping must not become a strobe light."""
RAINBOW_STEP_S = 0.2
PARTY_S = 3.2
"""Duration of the rainbow after a record: a whole number of rounds."""
PATIENCE_S = 10.0
"""Time without a push after which the game counts as abandoned."""
LONGEST = 32
"""Longest pattern of the game."""
LEAD_S, GAP_S = 0.6, 0.2
SHOW_S, SHOW_LEAST_S, FASTER_S = 0.55, 0.25, 0.03
"""Duration of one step of a pattern; longer patterns have shorter steps."""
CAR = "car"
"""Source of pushes at the buttons wired to the car."""


@dataclass(frozen=True)
class FreePlay:
    """Free play: a button glows while it is held."""


@dataclass(frozen=True)
class PlayerTurn:
    """Player's turn; the first `done` steps of the pattern have been repeated."""

    pattern: tuple[int, ...]
    done: int
    until_s: float


@dataclass(frozen=True)
class Scene:
    """Scripted scene. `beats`: (start, lit buttons), in order, until `end_s`."""

    mode: str
    beats: tuple[tuple[float, int], ...]
    end_s: float
    pattern: tuple[int, ...] = ()
    done: int = 0
    until_s: float = math.inf
    """End of the rainbow, after several rounds."""

    def lit(self, now_s: float) -> int:
        """Return the bits of the buttons lit now."""
        return next((lit for at_s, lit in reversed(self.beats) if at_s <= now_s), 0)

    def next_s(self, now_s: float) -> float:
        """Return the time of the next beat, or of the end."""
        return next((at_s for at_s, _ in self.beats if at_s > now_s), self.end_s)


class Play:
    """Combined play of `count` buttons from all sources."""

    def __init__(self, count: int, dice: Random) -> None:
        self._count, self._dice = count, dice
        self._all = (1 << count) - 1
        self._state: FreePlay | PlayerTurn | Scene = FreePlay()
        self._held: dict[str, int] = {}
        self._glow_until_s = [-math.inf] * count
        self._long_s, self._chosen_s = math.inf, -math.inf
        self._best, self._beaten = 0, False
        self._now_s = -math.inf

    # Players' actions

    def hold(self, source: str, held: int, now_s: float) -> None:
        """Set the buttons held by one source; newly held ones count as pushes."""
        self.tick(now_s)
        held &= self._all
        earlier = self._held.pop(source, 0)
        if held:
            self._held[source] = held
        if source == CAR and held != earlier:
            starts_long = held & ~earlier and held.bit_count() <= 2
            self._long_s = self._now_s + LONG_S if starts_long else math.inf
        for button in range(self._count):
            if (held & ~earlier) >> button & 1:
                self._push(button)

    def choose(self, mode: str, now_s: float) -> None:
        """Choose a mode from a page: "game", "rainbow", or "free"."""
        self.tick(now_s)
        if self._now_s >= self._chosen_s + CHOOSE_S:
            self._chosen_s = self._now_s
            self._begin(mode)

    def _begin(self, mode: str) -> None:
        if mode == "game":
            self._beaten = False
            self._state = self._show(())
        elif mode == "rainbow":
            self._state = self._rainbow(math.inf)
        else:
            self._state = FreePlay()

    def _push(self, button: int) -> None:
        state = self._state
        if isinstance(state, Scene) and state.mode != "rainbow":
            return  # pushes do not count while the car plays
        self._glow_until_s[button] = self._now_s + GLOW_S
        if isinstance(state, PlayerTurn):
            self._state = self._answer(state, button)
        else:
            self._state = FreePlay()

    def _answer(self, turn: PlayerTurn, button: int) -> PlayerTurn | Scene:
        right, done = turn.pattern[turn.done], turn.done + 1
        if button != right:
            return self._sad(turn, right)
        if done < len(turn.pattern):
            return PlayerTurn(turn.pattern, done, self._now_s + PATIENCE_S)
        return self._cheer(turn.pattern)

    # The car's turn

    def _scene(
        self,
        mode: str,
        beats: tuple[tuple[float, int], ...],
        length_s: float,
        pattern: tuple[int, ...] = (),
        done: int = 0,
    ) -> Scene:
        start_s = self._now_s
        timed = tuple((start_s + after_s, lit) for after_s, lit in beats)
        return Scene(mode, timed, start_s + length_s, pattern, done)

    def _show(self, pattern: tuple[int, ...]) -> Scene:
        """Start a pattern that is one step longer."""
        pattern = (*pattern, self._dice.randrange(self._count))
        on_s = max(SHOW_LEAST_S, SHOW_S - FASTER_S * len(pattern))
        beats, at_s = [(0.0, 0)], LEAD_S
        for button in pattern:
            beats += [(at_s, 1 << button), (at_s + on_s, 0)]
            at_s += on_s + GAP_S
        return self._scene("show", tuple(beats), at_s, pattern)

    def _cheer(self, pattern: tuple[int, ...]) -> Scene:
        self._beaten |= len(pattern) > self._best
        self._best = max(self._best, len(pattern))
        last_button = 1 << pattern[-1]
        beats = ((0.0, last_button), (0.3, 0), (0.45, self._all), (0.75, 0))
        return self._scene("cheer", beats, 1.2, pattern, len(pattern))

    def _sad(self, turn: PlayerTurn, right: int) -> Scene:
        """Blink the expected button three times."""
        lit = 1 << right
        beats = [(0.3 * half, lit if half % 2 else 0) for half in range(7)]
        return self._scene("sad", tuple(beats), 2.2, turn.pattern, turn.done)

    def _rainbow(self, until_s: float) -> Scene:
        """Start one round; it repeats until `until_s`."""
        beats = tuple((number * RAINBOW_STEP_S, 1 << number) for number in range(self._count))
        scene = self._scene("rainbow", beats, self._count * RAINBOW_STEP_S)
        return replace(scene, until_s=until_s)

    # Time

    def tick(self, now_s: float) -> None:
        """Process everything due until now, in order."""
        while (due_s := min(self._long_s, self._end_s())) <= now_s:
            self._now_s = max(self._now_s, due_s)
            if due_s == self._long_s:
                self._long()
            else:
                self._state = self._after()
        self._now_s = max(self._now_s, now_s)

    def _end_s(self) -> float:
        state = self._state
        if isinstance(state, FreePlay):
            return math.inf
        return state.until_s if isinstance(state, PlayerTurn) else state.end_s

    def _long(self) -> None:
        """Handle a long push at the car's own buttons: start or end a mode."""
        self._long_s = math.inf
        if not isinstance(self._state, FreePlay):
            self._state = FreePlay()
        else:
            two = self._held.get(CAR, 0).bit_count() == 2
            self._begin("rainbow" if two else "game")

    def _after(self) -> FreePlay | PlayerTurn | Scene:
        """Return the state after a turn that timed out or a scene that ended."""
        state = self._state
        if not isinstance(state, Scene):
            return FreePlay()
        if state.mode == "show":
            return PlayerTurn(state.pattern, 0, self._now_s + PATIENCE_S)
        if state.mode == "cheer" and len(state.pattern) < LONGEST:
            return self._show(state.pattern)
        if state.mode == "rainbow":
            goes_on, until_s = state.until_s > self._now_s, state.until_s
        else:  # the game is over
            goes_on, until_s = self._beaten, self._now_s + PARTY_S
        return self._rainbow(until_s) if goes_on else FreePlay()

    @property
    def due_s(self) -> float:
        """Return the time at which `view` changes by itself."""
        state = self._state
        if isinstance(state, Scene):
            return min(self._long_s, state.next_s(self._now_s))
        glows = [until_s for until_s in self._glow_until_s if until_s > self._now_s]
        return min(self._long_s, self._end_s(), *glows)

    @property
    def view(self) -> View:
        """State shown to everybody, as of the last tick."""
        state = self._state
        if isinstance(state, FreePlay):
            return View(self._glow(), best=self._best)
        if isinstance(state, PlayerTurn):
            lit, mode = self._glow(), "turn"
        else:
            lit, mode = state.lit(self._now_s), state.mode
        return View(lit, mode, len(state.pattern), state.done, self._best)

    def _glow(self) -> int:
        lit = 0
        for held in self._held.values():
            lit |= held
        for button, until_s in enumerate(self._glow_until_s):
            lit |= (until_s > self._now_s) << button
        return lit

"""Feed of the recorder, with inputs under control."""

from typing import Any

from fpvcar.drive import gate, mixing
from fpvcar.drive.control import GateRun
from fpvcar.drive.gate import Latches, World
from fpvcar.recorder.feed import Feed
from fpvcar.recordings import messages
from fpvcar.wire import telemetry
from testkit.recorder.recorder import Rig
from testkit.recorder.recording import played_sources

FREE = Latches(None)


class Car:
    """Feed of the recorder with its inputs."""

    def __init__(self, **settings: object) -> None:
        self.rig = Rig(**settings)
        self.ranges: tuple[telemetry.Range, ...] = ()
        self.measured: list[telemetry.Measured] = []
        self.battery: telemetry.Battery | None = None
        self.keys = 0
        self.feed = Feed(
            self.rig.recorder,
            played_sources(
                lambda _: self.ranges,
                self._take,
                lambda _: self.battery,
                self._key,
                ("red", "green", "blue"),
            ),
            {"front": (0.1, 0.0, 0.05)},
        )

    def second(self) -> None:
        """Run the feed's work of one second."""
        self.feed._second(lambda: messages.Health("ok", "ok", "ok", 1))

    def measure(self, range_m: float | None, ago_s: float = 0.01) -> None:
        """Let the front sensor measure."""
        at_s = self.rig.now_ns / 1e9 - ago_s
        self.measured.append(telemetry.Measured("front", 0.0, range_m, at_s))
        self.ranges = (telemetry.Range("front", 0.0, range_m, ago_s),)

    def _take(self) -> list[telemetry.Measured]:
        taken, self.measured = self.measured, []
        return taken

    def _key(self) -> bool:
        self.keys += 1
        return True

    def step(
        self,
        throttle: float = 0.5,
        reason: gate.Reason = "driving",
        latches: Latches = FREE,
        seconds: float = 0.02,
    ) -> GateRun:
        """Run the gate once; return its step."""
        self.rig.wait(seconds)
        decision = gate.Decision(throttle, 0.0, reason, latches)
        stepped = GateRun(
            self.rig.now_ns,
            gate.Wish(throttle, 0.0, self.rig.now_ns / 1e9),
            latches,
            World(0.01, None, 1.0),
            "off",
            (),
            7.4,
            mixing.Slew(),
            decision,
            (throttle, 0.0),
        )
        self.feed.step(stepped)
        return stepped

    def said(self, topic: str) -> list[Any]:
        """Return the recorded messages of a topic so far."""
        self.rig.thread.turn()
        return self.rig.said(topic)

    def events(self) -> list[tuple[str, int, str]]:
        """Return text, level and name of each event so far."""
        return [(one.text, one.level, one.name) for one in self.said(messages.EVENT)]

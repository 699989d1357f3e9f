"""Recorder for tests: without a thread, on a card and clocks of their own."""

from collections.abc import Iterator
from typing import Any

from fpvcar import config
from fpvcar.recorder.handover import Handover
from fpvcar.recorder.recorder import Recorder
from fpvcar.recorder.rotation import Rotation
from fpvcar.recorder.thread import Clock, RecorderThread
from fpvcar.recordings import codec, messages
from fpvcar.recordings.reader import Message
from fpvcar.runtime.units import SECOND_NS
from testkit.recorder.recording import CATALOGUE, DELTA, KEY, UTC_NS, FakeFolder, about, step


class Rig:
    """Recorder without a thread, on clocks that stand still."""

    def __init__(self, **settings: object) -> None:
        self.now_ns, self.utc_ns = 50 * SECOND_NS, UTC_NS
        self.disk = FakeFolder()
        chosen = config.Recording(**{"segment_s": 5.0, **settings})  # type: ignore
        self.salvaged: list[str] = []
        self.salvage_steps, self.salvage_s = 0, 0.05
        self.salvage_fault: Exception | None = None
        self.handover = Handover()
        self.rotation = Rotation(self.disk, chosen, CATALOGUE)
        clock = Clock(lambda: self.now_ns, lambda: self.utc_ns)
        self.thread = RecorderThread(
            self.handover, self.rotation, self._salvage, chosen.sync_s, clock
        )
        self.recorder = Recorder(chosen, about(0), CATALOGUE, self.handover, self.thread, clock)
        self.pictures = 0

    def _salvage(self, name: str) -> Iterator[None]:
        """Salvage on a card that takes some time."""
        for _ in range(self.salvage_steps):
            self.wait(self.salvage_s)
            yield
        if self.salvage_fault is not None:
            raise self.salvage_fault
        self.salvaged.append(name)

    def wait(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND_NS)
        self.utc_ns += round(seconds * SECOND_NS)

    def picture(self, size: int = 100) -> None:
        """Record a picture; one of ten is key."""
        key = self.pictures % 10 == 0
        self.pictures += 1
        unit = (KEY if key else DELTA) + bytes(size)
        self.recorder.picture(key, self.now_ns - 5_000_000, unit)

    def drive(self, seconds: int, turns: bool = True) -> None:
        """Record ten pictures and ten steps a second."""
        for _ in range(seconds * 10):
            self.picture()
            self.recorder.put(messages.STEP, step(self.now_ns))
            self.wait(0.1)
            if turns and self.pictures % 10 == 0:
                self.thread.turn()

    def messages(self) -> list[Message]:
        """Return the messages of all files."""
        return [
            one
            for name in self.disk.names
            if ".mcap" in name and self.disk.files[name]
            for one in self.disk.recording(name).messages()
        ]

    def said(self, topic: str) -> list[Any]:
        """Return the messages of a topic, decoded."""
        return [codec.decode(topic, one.data) for one in self.messages() if one.topic == topic]

    def events(self) -> list[str]:
        """Return the texts of the log."""
        return [one.text for one in self.said(messages.EVENT)]

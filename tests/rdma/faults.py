"""Both sides of rdcp with a faulty line between them."""

import os
import random
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PIECE = 1 << 16


@dataclass
class Outcome:
    source: int
    sink: int
    said: str
    moved: int  # bytes from the source to the sink


@dataclass(frozen=True)
class Fault:
    """Fault at an offset of the bytes to the sink (or back)."""

    kind: str  # flip, drop, cut, kill-source, kill-sink, none
    at: int = 0
    back: bool = False


def faulty(fault: Fault, data: bytes, begin: int) -> bytes | None:
    """Return `data`, which begins at an offset, after the fault; None if it cuts the line."""
    place = fault.at - begin
    if not 0 <= place < len(data):
        return data
    if fault.kind == "flip":
        bit = bytes([data[place] ^ 1 << fault.at % 8])
        return data[:place] + bit + data[place + 1 :]
    if fault.kind == "drop":
        return data[:place] + data[place + 1 :]
    return None if fault.kind == "cut" else data


class Line:
    """A source and a sink, in a folder, joined by this process."""

    def __init__(
        self,
        tools: Path,
        place: Path,
        source: Sequence[str],
        sink: Sequence[str],
        before: Callable[[], None] | None = None,
    ) -> None:
        def start(words: Sequence[str]) -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                [str(tools / "rdcp"), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=place,
                preexec_fn=before,
            )

        self.source = start(["--serve-source", *source])
        self.sink = start(["--serve-sink", "--no-sync", *sink])
        self.moved = 0

    def run(self, *faults: Fault, within_s: float = 30) -> Outcome:
        """Join them until both have ended; a process left after that has hung."""
        until = time.monotonic() + within_s
        pairs = {
            self.source.stdout: (self.sink.stdin, False),
            self.sink.stdout: (self.source.stdin, True),
        }
        counts = {False: 0, True: 0}
        with selectors.DefaultSelector() as chosen:
            for out in pairs:
                assert out
                chosen.register(out, selectors.EVENT_READ)
            while chosen.get_map():
                assert time.monotonic() < until, f"hangs after {faults}"
                for key, _ in chosen.select(1):
                    into, back = pairs[key.fileobj]  # type: ignore[index]
                    assert into
                    data = os.read(key.fd, PIECE)
                    begin, counts[back] = counts[back], counts[back] + len(data)
                    sent: bytes | None = data
                    for fault in faults:
                        if back == fault.back and sent is not None:
                            sent = faulty(fault, sent, begin)
                            if begin <= fault.at < counts[back]:
                                self._kill(fault.kind)
                    try:
                        if sent:
                            into.write(sent)
                            into.flush()
                    except BrokenPipeError:
                        sent = None
                    if not data or sent is None:
                        chosen.unregister(key.fileobj)
                        self._close(into)
                        self._close(key.fileobj)
        self.moved = counts[False]
        return self._ended(until)

    def _kill(self, kind: str) -> None:
        if kind == "kill-source":
            self.source.kill()
        elif kind == "kill-sink":
            self.sink.kill()

    @staticmethod
    def _close(file: object) -> None:
        try:
            file.close()  # type: ignore[attr-defined]
        except BrokenPipeError:
            pass

    def _ended(self, until: float) -> Outcome:
        said = ""
        for end in (self.source, self.sink):
            assert end.stderr
            said += end.stderr.read().decode(errors="replace")
            end.stderr.close()
            end.wait(timeout=max(until - time.monotonic(), 1))
        return Outcome(self.source.returncode, self.sink.returncode, said, self.moved)


def chosen_fault(chance: random.Random, most: int) -> Fault:
    kind = chance.choice(["flip", "flip", "drop", "cut", "kill-source", "kill-sink"])
    return Fault(kind, chance.randrange(most), chance.random() < 0.1)

"""Dataset that a process of its own makes: request, progress and control.

    api.py -> Order on stdin -> worker.py -> Steps on stdout -> DatasetJob -> page

The process has the lowest priority, is the first to go when memory is short, and does not run while
the car is driven. It may be killed at any time: part.py keeps whole episodes.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from fpvcar.runtime.child_process import KILLED, signal_name
from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import PROGRAM_EXIT, Text, fault_text
from fpvcar.runtime.units import counted

Kind = Literal["lerobot", "donkey"]
LOOK_S = 0.2
"""Time between two looks at the wheel."""
NICEST, FIRST_TO_GO = 19, 1000
LINE_MOST, MISSING_MOST = 1 << 20, 50
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
PART, PIXELS_LEAST = ".part", 16


class ChosenDrive(Struct, frozen=True, forbid_unknown_fields=True):
    """Drive of a request: its files, and its time range within them in ms, UTC."""

    files: list[str]
    from_ms: float
    to_ms: float


class DatasetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Request of a dataset. `fps` 0: the camera's rate; `width` 0: as recorded.

    `copy` takes the video as it is where the rows allow it; `marks` makes an episode per mark.
    """

    name: Annotated[str, Meta(pattern=NAME)]
    kind: Kind
    drives: Annotated[list[ChosenDrive], Meta(min_length=1)]
    fps: Annotated[int, Meta(ge=0, le=240)] = 0
    width: Annotated[int, Meta(ge=0, le=4096, multiple_of=2)] = 0
    height: Annotated[int, Meta(ge=0, le=4096, multiple_of=2)] = 0
    copy: bool = True
    marks: bool = False


class Order(Struct):
    """Order to the process. Without a request it continues the dataset that was begun at `out`.

    `reserve` are bytes that stay free on the disk.
    """

    out: str
    request: DatasetRequest | None
    paths: list[str]
    reserve: int


class DatasetSummary(Struct, frozen=True):
    """Contents of a complete dataset; `copied` are the episodes whose video was not encoded."""

    episodes: int
    frames: int
    doubled: int
    dropped: int
    copied: int
    fps: int

    def __str__(self) -> str:
        return (
            f"{counted(self.episodes, 'episode')}, {counted(self.frames, 'frame')} at "
            f"{self.fps} fps ({self.doubled:,} doubled, {self.dropped:,} dropped), "
            f"{self.frames / self.fps:,.1f} s; {self.copied} copied, "
            f"{self.episodes - self.copied} encoded"
        )


class Step(Struct, omit_defaults=True):
    """Line from the process: bytes read of `total`, a loss, or the end with a summary or fault."""

    done: int = 0
    total: int = 0
    lost: Text | None = None
    summary: DatasetSummary | None = None
    fault: Text | None = None


State = Literal["working", "waiting", "ready", "unfinished", "failed"]


class Dataset(Struct):
    """Dataset of the page's list. `bytes` are on the disk; `done` of `total` have been read.

    waiting: the car is driven. unfinished, failed: it can be continued, or removed.
    """

    name: str
    kind: str
    state: State
    bytes: int = 0
    done: int = 0
    total: int = 0
    missing: list[Text] = []
    summary: DatasetSummary | None = None
    fault: Text | None = None


class DatasetJob:
    """Process that makes one dataset. `driven()` returns whether it has to wait."""

    def __init__(
        self, argv: Sequence[str], order: Order, kind: str, driven: Callable[[], bool]
    ) -> None:
        self._argv, self._order, self._driven = with_pdeathsig(argv), order, driven
        self.dataset = Dataset(Path(order.out).name, kind, "working")
        self._process: asyncio.subprocess.Process | None = None
        self._cancelled = False

    @property
    def active(self) -> bool:
        """Return whether the process is to run on."""
        return self.dataset.state in ("working", "waiting")

    async def run(self) -> None:
        """Run the process to its end; the dataset has the result."""
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._argv, stdin=pipe, stdout=pipe, limit=LINE_MOST
            )
        except OSError as fault:
            self.dataset.state, self.dataset.fault = "failed", fault_text(fault)
            return
        looks = asyncio.create_task(self._pause(process.pid), name="wait of a dataset")
        try:
            if self._cancelled:
                self.cancel()
            _yield_to_all(process.pid)
            assert process.stdin and process.stdout
            with contextlib.suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode(self._order))
                await process.stdin.drain()
            process.stdin.close()
            async for line in process.stdout:
                self._take(msgspec.json.decode(line, type=Step))
            status = await process.wait()
        finally:
            looks.cancel()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        self._end(status)

    def _take(self, step: Step) -> None:
        dataset = self.dataset
        if step.lost is not None:
            dataset.missing = [*dataset.missing, step.lost][:MISSING_MOST]
        elif step.fault or step.summary:
            dataset.fault, dataset.summary = step.fault, step.summary
        else:
            dataset.done, dataset.total = step.done, step.total

    def _end(self, status: int) -> None:
        """Set the result of a process that has ended."""
        dataset = self.dataset
        if dataset.summary:
            dataset.state = "ready"
        elif self._cancelled and not dataset.fault:
            dataset.state = "unfinished"
        else:
            dataset.state = "failed"
            killed = KILLED(signal=signal_name(-status))
            exited = PROGRAM_EXIT(program="fpvcar.datasets", status=status)
            dataset.fault = dataset.fault or (killed if status < 0 else exited)

    async def _pause(self, pid: int) -> None:
        """Stop the process during a drive."""
        stopped = False
        while True:
            if self._driven() != stopped:
                stopped = not stopped
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP if stopped else signal.SIGCONT)
                if self.active:
                    self.dataset.state = "waiting" if stopped else "working"
            await asyncio.sleep(LOOK_S)

    def cancel(self) -> None:
        """Kill the process; whole episodes are kept."""
        self._cancelled = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


def _yield_to_all(pid: int) -> None:
    """Give a process the lowest priority, also for memory, before it starts threads."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICEST)
        Path(f"/proc/{pid}/oom_score_adj").write_text(f"{FIRST_TO_GO}", "ascii")

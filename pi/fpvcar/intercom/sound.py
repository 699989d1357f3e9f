"""Speaker and microphone of the car: a program of alsa-utils for each, run only while in use."""

import asyncio
from collections.abc import Sequence

from fpvcar.runtime.child_process import ChildProcess
from fpvcar.runtime.service import Event
from fpvcar.runtime.texts import PROGRAM_EXIT, SAYS, Text, os_reason

SAMPLES = ("-q", "-t", "raw", "-f", "MU_LAW", "-c", "1", "-r", "16000", "-F", "20000")
SPEAKER_BUFFER_US, MICROPHONE_BUFFER_US = 80_000, 200_000
PIPE_BYTES = 4096
"""Size of the pipe to the speaker's program, the least of the kernel: 0.26 s of sound."""
REST_S = 0.03
"""Interval of reads, so that a broken driver without pace costs little."""
LOOK_S = 0.05


def speaker_argv(device: str) -> tuple[str, ...]:
    """Return the command that plays the mu-law of its stdin."""
    return ("aplay", "-D", device, *SAMPLES, "-B", str(SPEAKER_BUFFER_US))


def microphone_argv(device: str) -> tuple[str, ...]:
    """Return the command that writes mu-law to its stdout."""
    return ("arecord", "-D", device, *SAMPLES, "-B", str(MICROPHONE_BUFFER_US))


class SoundProgram:
    """Program of a sound card, which runs while its lease is renewed.

    It is ended, by SIGTERM and then SIGKILL, when the lease is over; nothing waits for that.
    It publishes `failed` with the reason if it cannot start or ends by itself, and `recorded` with
    each piece of sound.
    """

    def __init__(self, argv: Sequence[str], lease_s: float, plays: bool) -> None:
        self.argv = argv
        self.failed, self.recorded = Event[Text](), Event[bytes]()
        self._lease_s, self._plays = lease_s, plays
        self._until_s = 0.0
        self._process: ChildProcess | None = None
        self._task: asyncio.Task[None] | None = None

    def renew(self) -> None:
        """Renew the lease, and start the program if necessary."""
        loop = asyncio.get_running_loop()
        self._until_s = loop.time() + self._lease_s
        if self._task is None:
            self._task = loop.create_task(self._run(loop))

    def end(self) -> None:
        """End the lease at once."""
        self._until_s = 0.0

    def write(self, data: bytes) -> bool:
        """Write sound to the program; return False if it does not take any."""
        return self._process is not None and self._process.write(data)

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the program again if the lease is renewed while it ends."""
        try:
            while loop.time() < self._until_s:
                await self._live(loop)
        finally:
            self._task = None

    async def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            process = ChildProcess(
                self.argv, self._plays, self.recorded.publish, lambda: REST_S, PIPE_BYTES
            )
        except OSError as fault:
            self._fail(SAYS(place=self.argv[0], reason=os_reason(fault)))
            return
        self._process = process
        try:
            while loop.time() < self._until_s and not process.exited.done():
                await asyncio.wait([process.exited], timeout=LOOK_S)
            if process.exited.done():
                program, status = self.argv[0], process.exited.result()
                line = process.last_line
                self._fail(
                    SAYS(place=program, reason=line)
                    if line
                    else PROGRAM_EXIT(program=program, status=status)
                )
        finally:
            self._process = None
            process.close_stdin()  # a read goes on after a signal to aplay
            await process.end()

    def _fail(self, reason: Text) -> None:
        self.end()
        self.failed.publish(reason)

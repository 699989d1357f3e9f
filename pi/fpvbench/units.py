"""Stand-ins for systemd units on the bench: start, supervise, restart, end; release pins.

A unit is one child process. It gets SIGTERM when the bench dies, for any reason.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fpvbench import soc as chip
from fpvbench.chips.pca9685 import Pca9685
from fpvcar.config.motors import ChipStop
from fpvcar.devices.linux import pins_off

RESTART_S = 0.2
STOP_S = 3.0
SHORT_S, SHORT_LIVES = 1.0, 5
"""Number of consecutive lives shorter than this after which a unit gives up."""
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
GROUP = Path("/proc/self/autogroup")
log = logging.getLogger("fpvbench")
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def leash(nice: int) -> None:
    """Set up a child before exec: SIGTERM at the bench's death, and its nice value."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with contextlib.suppress(OSError):  # only root may lower a nice value
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        # If sessions are scheduled as groups (sched(7), autogroup), each unit is a group. A nice
        # value counts within its session only, so the group needs it too.
        GROUP.write_text(str(nice))


class UnitFailed(RuntimeError):
    """Raised when a unit ended too often; its last output is on stderr."""


class Unit:
    """Process of the bench.

    `ended()` is called at once when it ends, `changed()` when its pid changes. A unit that
    `may_exit` is restarted after a signal only: it has logged why it exited.
    """

    def __init__(
        self,
        name: str,
        module: Sequence[str],
        env: dict[str, str],
        changed: Callable[[], None],
        ended: Callable[[], None] = lambda: None,
        nice: int = 0,
        may_exit: bool = False,
    ) -> None:
        self.name = name
        self.process: asyncio.subprocess.Process | None = None
        self._argv = (sys.executable, "-m", *module)
        self._env, self._changed, self._ended = env, changed, ended
        self._nice, self._may_exit, self._stopping = nice, may_exit, False

    async def run(self) -> None:
        """Keep the process running until `stop`. Raises UnitFailed."""
        loop, short = asyncio.get_running_loop(), 0
        while not self._stopping:
            born_s = loop.time()
            self.process = await asyncio.create_subprocess_exec(
                *self._argv,
                env=self._env,
                preexec_fn=lambda: leash(self._nice),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            self._changed()
            status = await self.process.wait()
            self._ended()
            self._changed()
            if self._may_exit and status >= 0:
                return
            by_itself = status != -signal.SIGKILL  # a SIGKILL comes from a test
            too_short = by_itself and loop.time() - born_s < SHORT_S
            short = short + 1 if too_short else 0
            if short == SHORT_LIVES:
                raise UnitFailed(f"{self.name} ended {short} times in a row")
            if not self._stopping:
                log.warning("%s ended (%s); starting it again", self.name, status)
                await asyncio.sleep(RESTART_S)

    @property
    def pid(self) -> int | None:
        """Process id, or None while it is not running."""
        alive = self.process is not None and self.process.returncode is None
        return self.process.pid if self.process and alive else None

    def kill(self) -> None:
        """Send SIGKILL: a hung process handles no other signal."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after 3 s."""
        self._stopping = True
        if self.process is None or self.pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            # a stopped process does not handle SIGTERM
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), STOP_S)
        except TimeoutError:
            self.kill()
            await self.process.wait()


def let_go(soc: chip.Soc, pins: Sequence[int], chips: Sequence[ChipStop] = ()) -> None:
    """Emulate devices/linux/pins_off.py: a HAT off, after neutral for its ESC; then inputs with
    pull-down.

    An input ignores all writes by DMA.
    """
    if not soc.hat.broken:
        escs = [(address, *esc) for _, address, *esc in chips if esc]
        for address, channel, neutral_us in escs:
            pins_off.hat_neutral(*_registers_of(soc, address), channel, neutral_us)
        soc.hat.all_off()
        if escs:
            time.sleep(pins_off.CYCLE_S)
    for gpio in pins:
        soc.pin[gpio].pull = chip.PULL_DOWN
        soc.pin[gpio].mode = chip.MODE_INPUT


def _registers_of(
    soc: chip.Soc, address: int
) -> tuple[Callable[[int], int], Callable[..., object]]:
    """Return functions that read a register of a PCA9685, and write a register and its data."""
    hat = Pca9685(soc, address)

    def read(register: int) -> int:
        hat.write(bytes((register,)))
        return hat.read(1)[0]

    return read, lambda *data: hat.write(bytes(data))

"""Rescue for `run`: calls the helper if `wheels` is mute, unless the motors are proven off.

The helper ends the pin daemon, and with it sensors and buttons. After `wheels` was killed, the dead
man has stopped the motors, and the daemon confirms it. A daemon that hangs or has ended does not
answer; then the helper is called.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger("fpvcar.wheels")


class Rescue:
    """Check for motors that are still on, one at a time; needs a running event loop."""

    def __init__(
        self, motors_off: Callable[[], Awaitable[bool]], call_helper: Callable[[int], object]
    ) -> None:
        """Create the check. `motors_off()` may take 0.1 s; `call_helper(pid)` does not wait."""
        self._motors_off, self._call_helper = motors_off, call_helper
        self._check: asyncio.Task[None] | None = None

    def __call__(self, pid: int) -> None:
        """Start a check of `wheels`, process `pid`, unless one is under way."""
        if self._check is None or self._check.done():
            self._check = asyncio.get_running_loop().create_task(self._run(pid))

    async def _run(self, pid: int) -> None:
        try:
            off = await self._motors_off()
        except Exception as fault:
            log.error("cannot check whether the motors are off: %r", fault)
            off = False
        if not off:
            self._call_helper(pid)

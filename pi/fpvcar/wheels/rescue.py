"""Calls the helper for `run` when `wheels` is mute, unless the motors are proven off.

The helper ends the pin daemon, and with it sensors and buttons. After a `wheels` that
was killed the dead man has stopped the motors: the daemon itself says so. One that
hangs, or is gone, does not answer; then the helper is asked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger("fpvcar.wheels")


class Rescue:
    """One look at a time; needs a running event loop."""

    def __init__(
        self, motors_off: Callable[[], Awaitable[bool]], ask: Callable[[], object]
    ) -> None:
        """`motors_off()` may take 0.1 s; `ask()` calls the helper and does not wait."""
        self._motors_off, self._ask = motors_off, ask
        self._look: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        """Starts a look; does nothing while one is under way."""
        if self._look is None or self._look.done():
            self._look = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            off = await self._motors_off()
        except Exception as fault:
            log.error("cannot see whether the motors are off: %r", fault)
            off = False
        if not off:
            self._ask()

"""Does one thing while the next one comes: never more than one."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol


class Begun(Awaitable[None], Protocol):
    """What was begun: an asyncio.Task; tests have another one."""

    def cancel(self) -> object:
        """It need not end."""


Begin = Callable[[Coroutine[Any, Any, None]], Begun]


class Beside:
    """For `async with`, which waits for the last one; it ends with a cancellation."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._begun: Begun | None = None

    async def then(self, act: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Waits for the one before, and begins this one. Raises what that raised."""
        await self.end()
        self._begun = self._begin(act(*arguments))

    async def end(self) -> None:
        """Waits for what was begun. Raises what that raises."""
        begun, self._begun = self._begun, None
        if begun is not None:
            try:
                await begun
            except BaseException:
                begun.cancel()
                raise

    async def __aenter__(self) -> "Beside":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.end()
            return
        if self._begun is not None and not issubclass(kind, Exception):
            self._begun.cancel()
        # The fault that is on its way says more than a second one.
        with suppress(Exception):
            await self.end()

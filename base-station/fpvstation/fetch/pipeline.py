"""Pipeline of depth one: an action runs while the next item arrives."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol


class RunningTask(Awaitable[None], Protocol):
    """Running action: an asyncio.Task; tests use another class."""

    def cancel(self) -> object:
        """Request cancellation; the action may still complete."""


CreateTask = Callable[[Coroutine[Any, Any, None]], RunningTask]


class OneInFlight:
    """Context for `async with` that waits for the last action on exit; an exit by cancellation
    cancels the action."""

    def __init__(self, begin: CreateTask) -> None:
        self._begin = begin
        self._begun: RunningTask | None = None

    async def then(self, act: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Wait for the previous action, then start this one. Raises the previous one's
        exception."""
        await self.end()
        self._begun = self._begin(act(*arguments))

    async def end(self) -> None:
        """Wait for the running action. Raises its exception."""
        begun, self._begun = self._begun, None
        if begun is not None:
            try:
                await begun
            except BaseException:
                begun.cancel()
                raise

    async def __aenter__(self) -> "OneInFlight":
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
        # The exception that is being raised has precedence over a second one.
        with suppress(Exception):
            await self.end()

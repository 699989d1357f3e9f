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

    def __init__(self, create_task: CreateTask) -> None:
        self._create_task = create_task
        self._task: RunningTask | None = None

    async def start(
        self, action: Callable[..., Coroutine[Any, Any, None]], *arguments: Any
    ) -> None:
        """Wait for the previous action, then start this one. Raises the previous one's
        exception."""
        await self.wait()
        self._task = self._create_task(action(*arguments))

    async def wait(self) -> None:
        """Wait for the running action. Raises its exception."""
        task, self._task = self._task, None
        if task is not None:
            try:
                await task
            except BaseException:
                task.cancel()
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
            await self.wait()
            return
        if self._task is not None and not issubclass(kind, Exception):
            self._task.cancel()
        # The exception that is being raised has precedence over a second one.
        with suppress(Exception):
            await self.wait()

"""Tasks and calls of a station without a loop."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from testkit.base_station.disk import Killed
from testkit.base_station.links import Step


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that would block, in place of a thread."""
    await Step()
    return function(*arguments)


class Side:
    """Side task of a station beside its round: an asyncio.Task without a loop."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work, self.done = work, False
        self._fault: BaseException | None = None

    def step(self) -> None:
        """Run one step, maybe the last one. Raises Killed."""
        try:
            self._work.send(None)
        except StopIteration:
            self.done = True
        except Exception as fault:
            self.done, self._fault = True, fault

    def cancel(self) -> None:
        """Cancel the task for good."""
        if not self.done:
            self.done, self._fault = True, Killed()
            self._work.close()

    def __await__(self) -> Generator[None, None, None]:
        while not self.done:
            yield
        if self._fault is not None:
            raise self._fault

"""Stand-in for `run` in a process of its own, to be stopped and killed by tests.

`python -m testkit.pins.wheels_driver RUNTIME DUTY` sends zeros until the wheels have taken
five, then DUTY. It prints "driving" once they have applied that; from then on it sends DUTY every
20 ms, for any answer of the wheels.
"""

import asyncio
import sys
import time
from pathlib import Path

from fpvcar.drive.control import Control
from fpvcar.runtime.texts import Text
from fpvcar.wheels.client import Rescue, WheelsClient
from fpvcar.wire.wheels import Answer, Status


class NoRescue(Rescue):
    """Rescue that calls nobody."""

    def __init__(self) -> None:
        pass

    def call(self, pid: int) -> None:
        pass


class Driver(Control):
    """Gate's owner that only counts the answers."""

    def __init__(self) -> None:
        self.applied, self.driving = 0, False

    def wheels_answer(self, answer: Answer) -> None:
        self.applied = self.applied + 1 if answer.status == Status.APPLIED else 0
        if self.applied == 10 and not self.driving:
            self.driving = True
            print("driving", flush=True)

    def wheels_state(self, state: str) -> None:
        pass

    def wheels_fault(self, text: Text | None) -> None:
        pass


async def main(runtime: Path, duty: float) -> None:
    """Drive for ever, or until killed."""
    driver = Driver()
    client = WheelsClient(runtime / "wheels.sock", NoRescue())
    reading = asyncio.create_task(client.run(driver))
    while not reading.done():
        client.read_answers()
        wanted = duty if driver.driving or driver.applied >= 5 else 0.0
        client.send((wanted, 0.0), time.monotonic_ns())
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))

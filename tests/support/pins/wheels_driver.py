"""Stand-in for `run` in a process of its own, to be stopped and killed by tests.

`python -m tests.support.pins.wheels_driver RUNTIME DUTY` sends zeros until the wheels have taken
five, then DUTY. It prints "driving" once they have applied that; from then on it sends DUTY every
20 ms, for any answer of the wheels.
"""

import asyncio
import sys
import time
from pathlib import Path

from fpvcar.wheels.client import WheelsClient
from fpvcar.wire.wheels import Answer, Status


async def main(runtime: Path, duty: float) -> None:
    """Drive for ever, or until killed."""
    applied, driving = 0, False

    def heard(answer: Answer) -> None:
        nonlocal applied, driving
        applied = applied + 1 if answer.status == Status.APPLIED else 0
        if applied == 10 and not driving:
            driving = True
            print("driving", flush=True)

    client = WheelsClient(runtime / "wheels.sock", lambda pid: None)
    reading = asyncio.create_task(client.run(heard, lambda state: None, lambda why: None))
    while not reading.done():
        client.read_answers()
        wanted = duty if driving or applied >= 5 else 0.0
        client.send((wanted, 0.0), time.monotonic_ns())
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))

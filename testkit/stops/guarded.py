"""The collision guard on, for one run on a bench that measures stops without it."""

from collections.abc import Iterator
from contextlib import contextmanager

from fpvbench.soc import nearest_range
from testkit.driver import Driver, free
from testkit.harness import RunningBench, wait_for

ROOM_M = 0.8
"""Free distance with which the guard lets a standing car drive off."""
ROOM_S = 20.0


@contextmanager
def guarding(
    bench: RunningBench, driver: Driver, code: str, mode: str, way: float
) -> Iterator[None]:
    """Run the block with the guard set by a grown-up, and free space in that direction (1 ahead,
    -1 behind). After the block the guard is off again. With "off" this does nothing."""
    if mode == "off":
        yield
        return
    make_room(bench, driver, way)
    set_guard(bench, driver, code, mode)
    try:
        wait_for(
            lambda: all(one["state"] == "ok" for one in driver.state["ranges"]),
            f"a sensor is silent: {driver.state}",
        )
        yield
    finally:
        set_guard(bench, driver, code, "off")


def make_room(bench: RunningBench, driver: Driver, way: float) -> None:
    """Drive away from the wall, while the guard is off."""
    sees = nearest_range(0.0 if way > 0.0 else 180.0)

    def room() -> bool:
        if driver.stop_cause() is not None:  # a busy machine was silent
            free(driver)
        driver.drive(-way, 0.0)
        return bool(bench.world().range_m[sees] > ROOM_M)

    wait_for(room, "no room to drive", ROOM_S, every_s=0.02)
    free(driver)


def set_guard(bench: RunningBench, driver: Driver, code: str, mode: str) -> None:
    """Set the guard as a grown-up; return once the driver has received the change."""
    with Driver(bench.port, name="Mum", code=code) as mum:
        mum.say(kind="guard", mode=mode)
        wait_for(lambda: bool(driver.state["guard"]["mode"] == mode), "the guard is not set")

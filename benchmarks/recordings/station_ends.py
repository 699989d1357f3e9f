"""Processes of both ends for `benchmarks/recordings/station.py`.

python -m benchmarks.recordings.station_ends cars FOLDER HOST COUNT   serves so many cars, each
                                                its folder; prints their list, JSON
python -m benchmarks.recordings.station_ends pull STATE STORE COUNT   fetches so many segments
                                                from the cars of STATE; prints s
"""

import asyncio
import sys
import time
from pathlib import Path

import msgspec
from aiohttp import web
from testkit.base_station.station import car_application
from testkit.recordings import CODES

from fpvcar.access.stations import FILE, Stations
from fpvstation.fetch.cars import Car, Cars
from fpvstation.fetch.scheduler import FetchScheduler
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

LOOK_S = 0.02


async def cars(folder: Path, host: str, count: int) -> None:
    """Serve the cars until killed."""
    served = []
    for number in range(count):
        home = folder / f"Car{number}"
        stations = Stations(bytes([number] * 32), CODES, folder / f"{number}-{FILE}")
        station = stations.pair("benchmark", host, time.time())
        runner = web.AppRunner(car_application(home, stations, home.name))
        await runner.setup()
        site = web.TCPSite(runner, host, 0)
        await site.start()
        port = runner.addresses[0][1]
        key = stations.key_of(station.id).hex()
        served.append(
            Car(home.name, stations.car, f"http://{host}:{port}", "", station.id, key, home.name)
        )
    print(msgspec.json.encode(served).decode(), flush=True)
    await asyncio.Event().wait()


async def pull(state: Path, root: Path, count: int) -> None:
    """Fetch like `fpvstation run`, but without a page."""
    store = Store(Folder(root))
    store.open("")
    keeper = FetchScheduler(Cars(state), store)
    began_s = time.monotonic()
    keeping = asyncio.create_task(keeper.run())
    while sum(car.stored for car in keeper.states.values()) < count:
        await asyncio.sleep(LOOK_S)
        if keeping.done():
            keeping.result()
    print(time.monotonic() - began_s, flush=True)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


def main(argv: list[str]) -> None:
    """Run one of the two ends."""
    if argv[0] == "cars":
        asyncio.run(cars(Path(argv[1]), argv[2], int(argv[3])))
    else:
        Path(argv[2]).mkdir(exist_ok=True)
        asyncio.run(pull(Path(argv[1]), Path(argv[2]), int(argv[3])))


if __name__ == "__main__":
    main(sys.argv[1:])

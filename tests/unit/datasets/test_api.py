"""Route /api/datasets: the page's datasets, by a process that yields to the driver."""

import asyncio
import io
import os
import signal
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import BEGAN_NS, McapFile
from testkit.recorder import datasets
from testkit.recorder.datasets import driven, filmed
from testkit.recordings import CODES, no_devices, routes_of

from fpvcar.access.codes import CodeCheck
from fpvcar.access.rights import DeviceRights, RecordingRights
from fpvcar.datasets import jobs
from fpvcar.datasets.api import DATASETS, DatasetsApi
from fpvcar.recordings import messages

Client = TestClient[Any, Any]
DRIVES = 8


class GrownUp(RecordingRights):
    """Rights of a browser in which a grown-up's code was entered."""

    def let_change(self, request: web.Request) -> None: ...

    def grown_up(self, request: web.Request) -> bool:
        return True


class Setup:
    """Routes over a folder of recordings; `driven` is whether a driver has the wheel."""

    def __init__(self, card: Path) -> None:
        self.card, self.driven = card, False
        self.rights: RecordingRights = GrownUp()
        self.reserve = 0

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        app = web.Application()
        recordings = routes_of(self.card, self.rights)
        self.api = DatasetsApi(
            recordings.repository,
            recordings.downloads,
            self.rights,
            self.card / "datasets",
            lambda: self.driven,
            self.reserve,
        )
        self.api.add_to(app)
        recordings.add_to(app)
        async with TestClient(TestServer(app)) as client:
            yield client

    @property
    def pid(self) -> int:
        assert self.api._job and self.api._job._process
        return self.api._job._process.pid


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Make a folder of drives, of one file each."""
    card = tmp_path / "card"
    card.mkdir()
    for number in range(DRIVES):
        datasets.drive(card, number, seconds=3.0)
    return Setup(card)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the process the usual priority: at the lowest, other tests delay it by minutes."""
    monkeypatch.setattr(jobs, "NICEST", 0)


def asked(setup: Setup, **more: Any) -> dict[str, Any]:
    """Return a request of all drives."""
    files = sorted(path.name for path in setup.card.glob("*.mcap"))
    drives = [{"files": files, "from_ms": 0.0, "to_ms": 1e15}]
    return {"name": "laps", "kind": "lerobot", "drives": drives, **more}


async def begun(client: Client, setup: Setup, **more: Any) -> None:
    answer = await client.post(DATASETS, json=asked(setup, **more))
    assert answer.status == 201, await answer.text()


async def one(client: Client) -> Any:
    (dataset,) = (await (await client.get(DATASETS)).json())["datasets"]
    return dataset


async def until(client: Client, met: Callable[[Any], bool]) -> Any:
    """Wait for a state. The worker has the lowest priority: a busy machine lets it wait long."""
    for _ in range(15_000):
        dataset = await one(client)
        if met(dataset):
            return dataset
        await asyncio.sleep(0.02)
    raise AssertionError(dataset)


async def ended(client: Client) -> Any:
    return await until(client, lambda it: it["state"] not in ("working", "waiting"))


PIXELS = (".mp4", ".jpg", "stats.json", "meta/episodes/chunk-000/file-000.parquet")
"""Ends of the files that have pixels, or their statistics: on a busy machine two processes encode
some blocks of a picture differently, in one dataset of about sixteen."""


def steady(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files by name; of those with pixels only whether there is anything in them."""
    return {
        name: data[:1] and b"pixels" if name.endswith(PIXELS) else data
        for name, data in files.items()
    }


def contents(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar}
        return steady({name: file.read() for name, file in files.items() if file})


def in_folder(out: Path, name: str) -> dict[str, bytes]:
    paths = [path for path in out.rglob("*") if path.is_file()]
    return steady({f"{name}/{path.relative_to(out)}": path.read_bytes() for path in paths})


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["lerobot", "donkey"])
async def test_download_is_the_dataset_of_the_command_line(
    setup: Setup, tmp_path: Path, command: Command, kind: str
) -> None:
    async with setup.client() as client:
        await begun(client, setup, kind=kind, width=80, height=64, fps=10)
        setup.driven = True  # the process stays until it is looked at
        await until(client, lambda it: it["state"] == "waiting")
        setup.driven = False
        dataset = await ended(client)
        assert dataset["state"] == "ready" and dataset["missing"] == [], dataset
        assert dataset["summary"]["episodes"] == DRIVES and dataset["bytes"] > 1000
        answer = await client.get(f"{DATASETS}/laps/file")
        data = await answer.read()
        assert answer.content_length == len(data)
        assert 'filename="laps.tar"' in answer.headers["Content-Disposition"]
        made = contents(data)
        out = tmp_path / "same"
        options = ("--size=80x64", "--fps=10")
        command("log", "export", f"--{kind}", out, *options, setup.card)
        assert made == in_folder(out, "laps")
        (listed,) = (await (await client.post(f"{DATASETS}/laps/remove")).json())["datasets"] or [0]
        assert listed == 0 and list((setup.card / "datasets").iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
async def test_killed_process_leaves_a_part_that_is_resumed(
    setup: Setup, tmp_path: Path, command: Command
) -> None:
    folder = setup.card / "datasets"
    async with setup.client() as client:
        await begun(client, setup, copy=False)
        while not (folder / "laps.part/episodes/1.json").exists():
            await asyncio.sleep(0.005)
        os.kill(setup.pid, signal.SIGKILL)
        dataset = await ended(client)
        assert dataset["state"] == "failed" and dataset["fault"]["values"] == {"signal": "SIGKILL"}
        assert [path.name for path in folder.iterdir()] == ["laps.part"]
        assert (await client.get(f"{DATASETS}/laps/file")).status == 409
    async with setup.client() as client:  # after a restart of the car
        assert (await one(client))["state"] == "unfinished"
        answer = await client.post(DATASETS, json=asked(setup))
        assert answer.status == 409 and "laps exists" in await answer.text()
        assert (await client.post(f"{DATASETS}/laps/resume")).status == 200
        assert (await ended(client))["state"] == "ready"
        made = contents(await (await client.get(f"{DATASETS}/laps/file")).read())
    command("log", "export", "--lerobot", tmp_path / "whole", setup.card)
    assert made == in_folder(tmp_path / "whole", "laps")


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
async def test_process_waits_during_a_drive(setup: Setup) -> None:
    async with setup.client() as client:
        setup.driven = True
        answer = await client.post(DATASETS, json=asked(setup))
        assert answer.status == 409 and "is being driven" in await answer.text()
        setup.driven = False
        await begun(client, setup, copy=False)
        await until(client, lambda it: it["done"] > 0)
        setup.driven = True
        await until(client, lambda it: it["state"] == "waiting")
        stat = Path(f"/proc/{setup.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            await asyncio.sleep(0.02)
        setup.driven = False
        assert (await ended(client))["state"] == "ready"
        assert not stat.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
async def test_cancelled_dataset_is_kept_and_can_be_removed(setup: Setup) -> None:
    async with setup.client() as client:
        await begun(client, setup, copy=False)
        while not (setup.card / "datasets/laps.part/episodes/0.json").exists():
            await asyncio.sleep(0.005)
        busy = await client.post(DATASETS, json=asked(setup, name="other"))
        assert busy.status == 409 and "laps is being made" in await busy.text()
        assert (await client.post(f"{DATASETS}/laps/remove")).status == 409
        setup.driven = True  # its process may be stopped
        await until(client, lambda it: it["state"] == "waiting")
        pid = setup.pid
        assert (await client.post(f"{DATASETS}/laps/cancel")).status == 200
        assert (await one(client))["state"] == "unfinished"
        assert not Path(f"/proc/{pid}").exists()
        assert (await client.post(f"{DATASETS}/laps/remove")).status == 200
        assert list((setup.card / "datasets").iterdir()) == []


@pytest.mark.slow
async def test_end_of_the_car_ends_the_process(setup: Setup) -> None:
    async with setup.client() as client:
        await begun(client, setup, copy=False)
        await until(client, lambda it: it["done"] > 0)
        pid = setup.pid
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"
    assert not Path(f"/proc/{pid}").exists()
    assert not (setup.card / "datasets/laps").exists()


async def test_too_small_disk_is_refused_with_both_numbers(setup: Setup) -> None:
    setup.reserve = 10**18
    async with setup.client() as client:
        await begun(client, setup, width=64, height=64)
        dataset = await ended(client)
        fault = dataset["fault"]
        assert dataset["state"] == "failed" and fault["key"] == "dataset_full"
        assert int(fault["values"]["need_mb"]) > 0 and fault["values"]["free_mb"] == "0"
        assert (await client.post(f"{DATASETS}/laps/remove")).status == 200
        assert (await (await client.get(DATASETS)).json())["datasets"] == []


async def test_only_grown_ups_begin_and_remove(setup: Setup) -> None:
    setup.rights = DeviceRights(CodeCheck(CODES), no_devices())
    async with setup.client() as client:
        assert (await client.get(DATASETS)).status == 200
        assert (await client.post(DATASETS, json=asked(setup))).status == 401
        for verb in ("resume", "cancel", "remove"):
            assert (await client.post(f"{DATASETS}/laps/{verb}")).status == 401


@pytest.mark.parametrize(
    ("more", "status", "text"),
    [
        ({"name": "../laps"}, 400, "Refused"),
        ({"name": "laps.part"}, 400, "refused"),
        ({"name": "datasets" * 9}, 400, "Refused"),
        ({"width": 64}, 400, "64x0 refused: expected at least 16"),
        ({"width": 63, "height": 64}, 400, "Refused"),
        ({"drives": []}, 400, "Refused"),
        ({"drives": [{"files": ["no.mcap"], "from_ms": 0, "to_ms": 1}]}, 404, "no.mcap: not found"),
    ],
)
async def test_bad_request_is_refused(
    setup: Setup, more: dict[str, Any], status: int, text: str
) -> None:
    async with setup.client() as client:
        answer = await client.post(DATASETS, json=asked(setup, **more))
        assert answer.status == status and text in await answer.text()
        assert not (setup.card / "datasets").exists()


async def test_only_chosen_drives_of_a_shared_file_and_marks_are_episodes(
    setup: Setup, tmp_path: Path
) -> None:
    card = Setup(tmp_path / "shared")
    card.card.mkdir()
    turns = [*driven(3.0, 0.0, "Ann"), *driven(3.0, 4.0, "Zoë", seed=2)]
    for at_s in (0.5, 4.2, 5.6):
        mark = messages.Event(0, messages.INFO, f"lap {at_s}", "Ann")
        turns.append(mcaps.logged(messages.MARK, at_s, mark))
    McapFile([*filmed(7.0), *turns]).to(card.card / "Plague-20251121T200000Z-0001.mcap")
    began_ms = BEGAN_NS / 1e6
    async with card.client() as client:
        drives = asked(card)["drives"]
        drives[0] |= {"from_ms": began_ms + 3500, "to_ms": began_ms + 8000}
        for marks, episodes in ((False, 1), (True, 2)):
            name = f"set-{marks}"
            answer = await client.post(
                DATASETS, json=asked(card, name=name, drives=drives, marks=marks, copy=False)
            )
            assert answer.status == 201
            while True:
                listed = (await (await client.get(DATASETS)).json())["datasets"]
                (dataset,) = [it for it in listed if it["name"] == name]
                if dataset["state"] != "working":
                    break
                await asyncio.sleep(0.02)
            assert dataset["summary"] and dataset["summary"]["episodes"] == episodes, dataset

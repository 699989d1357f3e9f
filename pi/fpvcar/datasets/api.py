"""/api/datasets: datasets for training, made of drives by a process of its own: jobs.py.

    POST -> working <-> waiting -> ready | failed | unfinished
    POST .../resume, .../cancel, .../remove

One at a time, and not begun during a drive. Only grown-ups begin and remove datasets, since these
take the space of new recordings.
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from aiohttp import web
from msgspec import Struct

from fpvcar.access.rights import RecordingRights
from fpvcar.datasets import folder as folders
from fpvcar.datasets import libraries
from fpvcar.datasets.folder import DatasetFolder
from fpvcar.datasets.jobs import PIXELS_LEAST, Dataset, DatasetJob, DatasetRequest, Order
from fpvcar.http.responses import PRIVATE, answering, failed, quoted, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers
from fpvcar.library.api.downloads import CpuThrottle, Downloads, Driven, as_file
from fpvcar.library.drive_repository import DriveRepository
from fpvcar.runtime.texts import FILE_MISSING, Phrase, Text

DATASETS = "/api/datasets"
BODY_MAX = 256 * 1024
DRIVEN = Text(
    "dataset_driven", "The car is being driven: begin the dataset when the wheel is free."
)
BUSY = Phrase("dataset_busy", "{name} is being made: wait for its end, or cancel it.")
TAKEN = Phrase("dataset_taken", "{name} exists: choose another name, or remove it first.")
GONE = Text("dataset_gone", "This dataset no longer exists: reload the page.")
HALF = Text("dataset_half", "This dataset is not complete: resume it first.")
OPEN = Phrase("dataset_open", "{name} is still being recorded: wait a minute, or leave it out.")
log = logging.getLogger("fpvcar.datasets")


class Datasets(Struct):
    """Datasets of the list, and bytes free for others. `path` is their folder.

    `install` has, for each kind that needs libraries, how to install them.
    """

    path: str
    free: int
    install: dict[str, Text]
    datasets: list[Dataset]


def worker() -> list[str]:
    """Return the command line of the process that makes a dataset."""
    return [libraries.interpreter(), "-m", "fpvcar.datasets.worker"]


class DatasetsApi:
    """Routes of datasets in a folder. `driven()` returns whether a driver has the wheel."""

    def __init__(
        self,
        repository: DriveRepository,
        downloads: Downloads,
        rights: RecordingRights,
        folder: Path,
        driven: Driven = lambda: False,
        reserve: int = 0,
        argv: Callable[[], Sequence[str]] = worker,
    ) -> None:
        """`reserve`: bytes of the disk that stay free. `argv` returns the process's command."""
        self._repository, self._downloads, self._rights = repository, downloads, rights
        self._folder, self._driven = DatasetFolder(folder.absolute()), driven
        self._reserve, self._argv = reserve, argv
        self._rest = CpuThrottle(driven).rest
        self._job: DatasetJob | None = None
        self._task: asyncio.Task[None] | None = None

    def add_to(self, app: web.Application) -> None:
        """Add the routes. The process ends with the application."""
        app.router.add_get(DATASETS, self._list)
        app.router.add_post(DATASETS, self._begin)
        for verb, handler in (
            ("resume", self._resume),
            ("cancel", self._cancel),
            ("remove", self._remove),
        ):
            app.router.add_post(DATASETS + "/{name}/" + verb, handler)
        app.router.add_get(DATASETS + "/{name}/file", self._send)
        app.on_shutdown.append(self._end)

    async def _end(self, _: web.Application) -> None:
        """Kill the process; the next start lists its dataset as unfinished."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    # --- the routes ---

    @answers(Right.DRIVER)
    async def _list(self, request: web.Request) -> Datasets:
        """List the datasets that were made here."""
        return await self._answer()

    async def _answer(self) -> Datasets:
        job = self._job
        own = msgspec.structs.replace(job.dataset) if job else None  # it may end meanwhile
        busy = own.name if own and job and job.active else ""

        def listed() -> Datasets:
            install = {kind: libraries.to_install(kind) for kind in libraries.NEEDED}
            return Datasets(
                path=str(self._folder.path),
                free=self._free(),
                install={kind: text for kind, text in install.items() if text},
                datasets=self._folder.datasets(busy),
            )

        answer = await self._downloads.in_thread(answering(listed))
        if own is not None:
            answer.datasets = _with(answer.datasets, own)
        return answer

    def _free(self) -> int:
        path = self._folder.path
        disk = shutil.disk_usage(next(filter(Path.exists, (path, *path.parents))))
        return max(0, disk.free - self._reserve)

    @answers(Right.GROWN_UP, body=DatasetRequest, status=201)
    async def _begin(self, request: web.Request) -> Datasets:
        """Begin a dataset of some drives."""
        wanted = await _parsed(request)
        self._rights.let_grown_up(request)  # rights may end during a slow upload
        self._refuse_busy()
        if install := libraries.to_install(wanted.kind):
            raise refused(web.HTTPConflict, install)

        def order() -> Order:
            if self._folder.exists(wanted.name):
                raise refused(web.HTTPConflict, TAKEN(name=wanted.name))
            names = {name for drive in wanted.drives for name in drive.files}
            paths = self._repository.paths(names)
            for name in names:
                if name not in paths:
                    raise refused(web.HTTPNotFound, FILE_MISSING(name=name[:80]))
                if self._repository.writing(paths[name]):
                    raise refused(web.HTTPConflict, OPEN(name=name[:80]))
            drives = [
                msgspec.structs.replace(drive, files=[paths[name].name for name in drive.files])
                for drive in wanted.drives
            ]
            self._folder.path.mkdir(parents=True, exist_ok=True)
            out = str(self._folder.path / wanted.name)
            asked = msgspec.structs.replace(wanted, drives=drives)
            return Order(out, asked, sorted(map(str, set(paths.values()))), self._reserve)

        try:
            made = await self._downloads.in_thread(order)
        except OSError as fault:
            raise failed(web.HTTPUnprocessableEntity, fault) from None
        self._refuse_busy()
        self._start(made, wanted.kind)
        log.info("%s began the dataset %s", request.remote, made.out)
        return await self._answer()

    @answers(Right.GROWN_UP)
    async def _resume(self, request: web.Request) -> Datasets:
        """Continue an unfinished dataset after its last whole episode."""
        dataset = await self._look_up(request)
        self._refuse_busy()
        if dataset.state in ("unfinished", "failed"):
            out = str(self._folder.path / dataset.name)
            self._start(Order(out, None, [], self._reserve), dataset.kind)
        return await self._answer()

    @answers(Right.GROWN_UP)
    async def _cancel(self, request: web.Request) -> Datasets:
        """End the work for a dataset; its whole episodes are kept."""
        job, name = self._job, request.match_info["name"]
        if job and job.active and job.dataset.name == name and self._task:
            job.cancel()
            await asyncio.shield(self._task)
        return await self._answer()

    @answers(Right.GROWN_UP)
    async def _remove(self, request: web.Request) -> Datasets:
        """Remove a dataset, complete or not."""
        dataset = await self._look_up(request)
        job = self._job
        if job and job.dataset.name == dataset.name:
            if job.active:
                raise refused(web.HTTPConflict, BUSY(name=dataset.name))
            self._job = None
        try:
            await self._downloads.in_thread(partial(self._folder.remove, dataset.name))
        except FileNotFoundError:  # a job that failed before it wrote anything
            pass
        except OSError as fault:
            raise failed(web.HTTPUnprocessableEntity, fault) from None
        log.info("%s removed the dataset %s", request.remote, dataset.name)
        return await self._answer()

    @answers(Right.DRIVER, "application/x-tar")
    async def _send(self, request: web.Request) -> web.StreamResponse:
        """Return a complete dataset as a tar file."""
        dataset = await self._look_up(request)
        if dataset.state != "ready":
            raise refused(web.HTTPConflict, HALF)
        path = self._folder.path / dataset.name
        headers = {
            **PRIVATE,
            "Content-Type": "application/x-tar",
            "Content-Disposition": as_file(f"{dataset.name}.tar"),
        }
        try:
            size = await self._downloads.in_thread(partial(folders.tar_size, path))
            pieces = folders.tar_of(path, self._rest)
            return await self._downloads.stream(request, headers, pieces, size, lambda _: None)
        except ConnectionError:
            raise
        except OSError as fault:
            raise ConnectionResetError("the dataset was removed") from fault

    # --- the work ---

    async def _look_up(self, request: web.Request) -> Dataset:
        """Return the dataset of a request. Raises HTTPNotFound."""
        name = request.match_info["name"]
        for dataset in (await self._answer()).datasets:
            if dataset.name == name:
                return dataset
        raise refused(web.HTTPNotFound, GONE)

    def _refuse_busy(self) -> None:
        """Raise HTTPConflict during a drive, or while another dataset is being made."""
        if self._job and self._job.active:
            raise refused(web.HTTPConflict, BUSY(name=self._job.dataset.name))
        if self._driven():
            raise refused(web.HTTPConflict, DRIVEN)

    def _start(self, order: Order, kind: str) -> None:
        self._job = DatasetJob(self._argv(), order, kind, self._driven)
        self._task = asyncio.create_task(self._job.run(), name="dataset")


def _with(listed: Sequence[Dataset], own: Dataset) -> list[Dataset]:
    """Return the list with the job's progress; `bytes` are those on the disk."""
    on_disk = next((one for one in listed if one.name == own.name), None)
    others = [one for one in listed if one.name != own.name]
    if on_disk is None and own.state == "ready":  # removed by hand
        return others
    size = on_disk.bytes if on_disk else 0
    return sorted([*others, msgspec.structs.replace(own, bytes=size)], key=lambda one: one.name)


async def _parsed(request: web.Request) -> DatasetRequest:
    """Read and validate a request. Raises HTTPBadRequest, HTTPRequestEntityTooLarge."""
    body = b""
    async for piece in request.content.iter_chunked(BODY_MAX):
        body += piece
        if len(body) > BODY_MAX:
            raise web.HTTPRequestEntityTooLarge(
                BODY_MAX, len(body), text=f"More than {BODY_MAX} bytes: choose fewer drives.\n"
            )
    try:
        wanted = msgspec.json.decode(body, type=DatasetRequest)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise web.HTTPBadRequest(text=f"Refused: {fault}.\n") from None
    if not folders.is_name(wanted.name):
        raise web.HTTPBadRequest(text=f'name = "{quoted(wanted.name)}" refused.\n')
    sides = (wanted.width, wanted.height)
    if any(sides) and min(sides) < PIXELS_LEAST:
        raise web.HTTPBadRequest(
            text=f"Pictures of {sides[0]}x{sides[1]} refused: expected at least {PIXELS_LEAST} "
            "pixels on each side, or 0x0 as recorded.\n"
        )
    return wanted

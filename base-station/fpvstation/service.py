"""Wiring of `fpvstation run`: store, cars, page."""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import importlib
import logging
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fpvcar.access.codes import load_codes, load_key
from fpvcar.access.remembered_browsers import FILE as DEVICES
from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import RecordingRights
from fpvcar.config import Mqtt
from fpvcar.http.addresses import is_loopback, lan_address
from fpvcar.http.endpoints import Address, Site, address
from fpvcar.http.limits import Places
from fpvcar.recordings.export.table_writers import has_parquet
from fpvcar.runtime import files, paths, sd_notify
from fpvcar.runtime.texts import NOT_INSTALLED, Text
from fpvstation.catalogue.catalogue import FILE, Catalogue, OnProgress
from fpvstation.errors import StationError
from fpvstation.fetch import client
from fpvstation.fetch.cars import Cars
from fpvstation.fetch.pull import CarFault
from fpvstation.fetch.scheduler import FetchScheduler
from fpvstation.housekeeping import Chores, chores_of, keep_tiers
from fpvstation.query.keeper import SidecarKeeper
from fpvstation.replicas.recalls import Recalls
from fpvstation.replicas.remotes import Remotes, remotes_of
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.settings import Settings
from fpvstation.store.bound import Bound
from fpvstation.store.disk import Folder
from fpvstation.store.identity import LOCK
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.web import password
from fpvstation.web.page import Page
from fpvstation.web.password import PasswordCheck, PasswordRights

AGAIN_S, REFUSED_S, PAIRED_S = 2.0, 60.0, 20.0
CONNECTIONS = 64
ID_FILE = "store"
BESIDE = "this computer"
MQTT_LIBRARIES = "MQTT needs it: pip install 'fpvcar[mqtt]'"
STORE = Path.home() / "fpvstation"
OTHERS = "stores"
"""Folder of the states of stations beside a car whose store is another folder than STORE."""
log = logging.getLogger("fpvstation")


class Options(NamedTuple):
    """Options of the command line. `beside`: the URL of a car on this machine; `most`: limit for
    the bytes of all segments, 0 for no limit."""

    store: Path
    host: str
    port: int
    beside: str = ""
    store_changed: bool = False
    settings: Settings = Settings()
    most: int = 0


def state_directory() -> Path:
    """Return $STATE_DIRECTORY (set by systemd) or ~/.local/state/fpvstation; create it with mode
    0700."""
    assigned, base = os.environ.get("STATE_DIRECTORY"), os.environ.get("XDG_STATE_HOME")
    default = Path(base) if base else Path.home() / ".local" / "state"
    path = Path(assigned) if assigned else default / "fpvstation"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def state_of(root: Path, own: bool = False) -> Path:
    """Return the state directory of a store's station; with `own`, create one for this store.

    A store thus keeps its id by its path: its unmounted disk is not taken for a new store.
    """
    name = hashlib.sha256(os.fsencode(root.expanduser().absolute())).hexdigest()[:16]
    path = state_directory() / OTHERS / name
    if own:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path if path.exists() else state_directory()


async def run(options: Options) -> None:
    """Run until SIGTERM or SIGINT. Raises StationError, OSError."""
    root = options.store.expanduser().absolute()
    state = state_of(root, own=bool(options.beside) and root != STORE)
    rights = _rights(options.host, state)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with lock_store(root):
        disk, cars, configured = Folder(root), Cars(state), options.settings.replicas
        places = remotes_of(configured, root)
        replicas = ReplicaLog(disk)
        remotes = Remotes(places, configured.copies_required, replicas, windows=configured.windows)
        store = Store(disk, remotes.queue)
        store_id = _open(store, root, state, options.store_changed)
        remotes.open(store, asyncio.to_thread)
        scheduler = FetchScheduler(cars, store, remotes.safe)
        catalogue = Catalogue(state / FILE, root, store, store_id, scheduler.inventory)
        await asyncio.to_thread(catalogue.open)
        bound = Bound(store, disk, replicas, options.most, remotes.places, remotes.verify_soon)
        tier_settings, archiving = options.settings.tiers, None
        tiers: Tiers | None = None
        if tier_settings.archive:
            archive = archive_of(tier_settings.archive, root)
            sources = remotes_of(configured, root, "recall")
            tiers = Tiers(store, disk, archive, remotes.places, asyncio.to_thread, remotes=sources)
            archiving = partial(keep_tiers, tiers, tier_settings)
        limit = bound if options.most else None
        sidecars = SidecarKeeper(state, root, store, catalogue, replicas) if has_parquet() else None
        chores = Chores(chores_of(store, root, limit, catalogue, archiving, sidecars))
        recalls = Recalls(tiers)
        page = Page(catalogue, scheduler, remotes, chores, rights, state, recalls)
        endpoint = address(options.host, options.port, state, socket.gethostname())
        connections = Places(CONNECTIONS, CONNECTIONS)
        print_url = partial(_greet, endpoint, root)
        site = Site(page.application, connections, endpoint, print_url)
        paired = asyncio.Event()
        fetching = _after(paired, scheduler.run)
        endless = {"fetching": fetching, "page": _serve(site), "chores": chores.run()}
        endless["recalls"] = recalls.run()
        if places:
            endless["remotes"] = remotes.run()
        if options.settings.mqtt.broker:
            endless["mqtt"] = _feed_broker(options.settings.mqtt, cars, state)
        ending = {"watchdog": _feed_watchdog()}
        if options.beside:
            ending["pairing"] = _pair_beside(options.beside, cars, paired)
        else:
            paired.set()
        try:
            await until(stop, endless, ending)
        finally:
            if sidecars:
                sidecars.end()


async def _feed_broker(settings: Mqtt, cars: Cars, state: Path) -> None:
    """Publish state and events of the cars. Raises StationError if a library is missing."""
    try:
        from fpvstation.bridge import Bridge

        if settings.stills:
            importlib.import_module("av")
    except ImportError as fault:
        raise StationError(NOT_INSTALLED(program=fault.name, command=MQTT_LIBRARIES)) from None
    try:
        bridge = Bridge(settings, cars, state)
    except sqlite3.Error as fault:
        raise StationError(
            f"{state}: events cannot be saved for MQTT: {fault}: end another station with this "
            "folder, or make room there"
        ) from None
    await bridge.run()


async def _serve(site: Site) -> None:
    """Serve the page. Raises OSError, and StationError with the next step for a busy port."""
    try:
        await site.run()
    except OSError as fault:
        if fault.errno != errno.EADDRINUSE:
            raise
        raise StationError(
            f"{fault.strerror}: is another station open? End it, or name another port with --port "
            "8110 (make run STATION_PORT=8110)"
        ) from None


Tasks = Mapping[str, Coroutine[Any, Any, None]]


async def until(stop: asyncio.Event, endless: Tasks, ending: Tasks) -> None:
    """Run tasks until `stop` is set; then cancel them all.

    Raises the exception of the first task that fails, and StationError if one of `endless`
    returns: no part of a station ends while the others go on.
    """
    tasks = {asyncio.create_task(work): name for name, work in endless.items()}
    tasks |= {asyncio.create_task(work): "" for work in ending.values()}
    waiting = asyncio.create_task(stop.wait())
    pending: set[asyncio.Task[Any]] = {waiting, *tasks}
    try:
        while not waiting.done():
            done, pending = await asyncio.wait(pending, return_when="FIRST_COMPLETED")
            for task in done - {waiting}:
                task.result()
                if tasks[task]:
                    raise StationError(f"{tasks[task]} ended unexpectedly: restart the station")
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


def _rights(host: str, state: Path) -> RecordingRights:
    """Return the access rights of the page. At a loopback address every client may view; elsewhere
    a client needs the password. The password also allows removals. Raises StationError."""
    saved = password.load(state)
    if saved is None and is_loopback(host):
        return RecordingRights()
    if saved is None:
        raise StationError(
            f"--host {host} refused: other machines would see all recordings; set a "
            "password first: fpvstation passwd"
        )
    browsers = Devices(load_key(state), password.codes_of(saved), state / DEVICES)
    return PasswordRights(PasswordCheck(saved), browsers)


def greeting(endpoint: Address, root: Path) -> str:
    """Return the line with the page's URL; other machines need https."""
    url = f"http://localhost:{endpoint.port}/"
    if endpoint.tls:
        url = f"https://{lan_address()}:{endpoint.https_port}/"
    elif not is_loopback(endpoint.host):
        url += " (this machine only: https is off, and other machines need it)"
    return f"  The station's page: {url}   (store: {root})"


def _greet(endpoint: Address, root: Path) -> None:
    print(greeting(endpoint, root), flush=True)


async def _feed_watchdog() -> None:
    """Feed the systemd watchdog, if the unit has one, while the event loop runs."""
    beat = sd_notify.Heartbeat(sd_notify.watchdog_ns())
    while beat.due_ns is not None:
        beat.beat(time.monotonic_ns())
        await asyncio.sleep(1.0)


def rebuild(root: Path, on_progress: OnProgress) -> int:
    """Rebuild the catalogue; return its number of sessions. Raises StationError, OSError."""
    with _catalogue_of(root) as (_, catalogue):
        catalogue.reset(None)
        return catalogue.sync(on_progress)


def rebuild_sidecars(root: Path, on_progress: OnProgress) -> list[Text]:
    """Check all sidecars, and write those that are lost, stale or damaged; return the faults.
    Raises StationError, OSError, sqlite3.Error."""
    with _catalogue_of(root) as (store, catalogue):
        replicas = ReplicaLog(Folder(root))
        keeper = SidecarKeeper(state_of(root), root.absolute(), store, catalogue, replicas)
        return keeper.rebuild(on_progress)


@contextlib.contextmanager
def _catalogue_of(root: Path) -> Iterator[tuple[Store, Catalogue]]:
    """Yield a locked store and its catalogue. Raises StationError."""
    state = state_of(root)
    with lock_store(root):
        store = Store(Folder(root))
        catalogue = Catalogue(state / FILE, root, store, _open(store, root, state, False))
        try:
            yield store, catalogue
        finally:
            catalogue.close()


def _open(store: Store, root: Path, state: Path, accept_changed: bool) -> str:
    """Open the store and check that it is the store of the last start; return its id. Raises
    StationError."""
    path = state / ID_FILE
    last_id = ""
    if not accept_changed:
        with contextlib.suppress(FileNotFoundError):
            last_id = path.read_text()
    try:
        store_id = store.open(last_id)
        store.try_out()
    except StationError as fault:
        raise StationError(f"{root}: {fault}") from None
    if store_id != last_id:
        files.write_whole(path, [store_id.encode()])
    return store_id


@contextlib.contextmanager
def lock_store(root: Path) -> Iterator[None]:
    """Lock the store, so that two stations never write into it. Raises StationError."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise StationError(
            f"{root}: {fault.strerror}: expected a folder that this user may write "
            "to; name one with --store DIR"
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StationError(
                f"{root}: another station uses this folder: end it, or name another one with "
                "--store DIR (make run STORE=DIR STATION_PORT=8110)"
            ) from None
        except OSError as fault:
            raise StationError(
                f"{root}: its file system does not lock a file ({fault.strerror}); "
                "name another folder with --store DIR"
            ) from None
        yield
    finally:
        os.close(lock)


async def _after(paired: asyncio.Event, run: Callable[[], Awaitable[None]]) -> None:
    """Run once the car beside is paired, since its address may be new, or after PAIRED_S."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PAIRED_S):
            await paired.wait()
    await run()


async def _pair_beside(
    url: str,
    cars: Cars,
    paired: asyncio.Event,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Pair with a car of this machine and user; its code is readable here."""
    logged = ""
    while True:
        try:
            # Check on each attempt: the car may have been replaced, or its state removed.
            if not await _is_paired(url, cars):
                codes = load_codes(paths.state_directory())
                pairing = await client.pair(url, "", codes.grown_up, BESIDE)
                cars.add(pairing, url, "")
                log.info("paired with %s", pairing.car)
            paired.set()
            return
        except CarFault:
            wait_s = AGAIN_S
        except Exception as fault:  # each attempt uses up one try of the code
            wait_s = REFUSED_S
            if logged != (logged := str(fault) or repr(fault)):
                log.warning("not paired with %s, retrying: %s", url, logged)
        await sleep(wait_s)


async def _is_paired(url: str, cars: Cars) -> bool:
    """Return whether the car at `url` still has this station's pairing. Raises CarFault if the
    car is unreachable."""
    for car in cars.all():
        if car.url == url:
            async with client.session(url, car.fingerprint) as session:
                return await client.HttpCar(car, session).is_paired()
    return False

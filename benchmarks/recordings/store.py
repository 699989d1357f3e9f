"""Bucket, archive and snapshots of a base station, beside plain copies of the same bytes. The
station's memory with very many sessions.

Loop devices lie in /var/tmp, so that both sides of a pair use one disk.
"""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
from testkit.harness import wait_for
from testkit.mcaps import BEGAN_NS, FPS, FRAME_NS, GOP, Logged, McapFile
from testkit.network.ports import free_port
from testkit.network.versitygw import BUCKET, Gateway
from testkit.recorder.card import image, mounted, run

from benchmarks.rdma import pipes
from benchmarks.rig import Settings, say
from benchmarks.rows import RATIO, Aim, Note, Result, Row, row
from fpvcar.recordings import codec, messages, names
from fpvcar.runtime.units import MB, MIB, SECOND_NS
from fpvstation.catalogue.catalogue import FILE
from fpvstation.catalogue.probe import ProbeJob, key_of, probe
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import CopyProgress
from fpvstation.replicas.s3 import S3
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.snapshots.send import Sender, Target
from fpvstation.store.archived import ArchivedSession, path_of
from fpvstation.store.disk import Folder, sha256_of
from fpvstation.store.identity import MARKER
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, text_of

PART = "store"
PLACE = Path("/var/tmp")
SEGMENT_S, PICTURE_BYTES, SEGMENTS, REPEATS = 60, 9000, 12, 5
"""Length of a segment, size of its pictures (2.2 Mbit/s), and segments of a session."""
DISK_MB, SENT_BYTES, CUT_RATE = 2500, 1 << 30, "96M"
SESSIONS, LIMIT_S = 100_000, 600.0
SESSION = "Plague/2026-11-21/Plague-20261121T193100Z"


def filled_store(root: Path) -> tuple[Store, list[StoredSegment]]:
    """Make a store with a session as a car records one."""
    root.mkdir(exist_ok=True)
    store = Store(Folder(root))
    store.open("")
    folder, dice, listed = root / SESSION, random.Random(1), []
    folder.mkdir(parents=True)
    for number in range(SEGMENTS):
        times_ns = [
            BEGAN_NS + number * SEGMENT_S * SECOND_NS + picture * FRAME_NS
            for picture in range(SEGMENT_S * FPS)
        ]
        film = [
            Logged(
                time_ns,
                messages.CAMERA,
                codec.encode(messages.Picture(time_ns, dice.randbytes(PICTURE_BYTES))),
                picture % GOP == 0,
            )
            for picture, time_ns in enumerate(times_ns)
        ]
        path = McapFile(film).to(folder / f"{folder.name}-{number + 1:04d}.mcap")
        listed.append(StoredSegment(str(path.relative_to(root)), sha256_of(path)))
    (folder / SUMS_FILE).write_bytes(text_of(listed))
    return store, listed


def took_s(work: Callable[[], object]) -> float:
    """Return the time of some work; pending writes are flushed first."""
    os.sync()
    began_s = time.monotonic()
    work()
    return time.monotonic() - began_s


def forget(folder: Path) -> None:
    """Drop the files of a folder from the page cache."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def beside(name: str, ours: list[float], theirs: list[float], their_name: str, aim: Aim) -> Row:
    """Return the ratios of two rates, pair by pair, from the times."""
    ratios = [their_s / our_s for our_s, their_s in zip(ours, theirs, strict=True)]
    note = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return row(PART, f"{name} / {their_name}", RATIO, ratios, aim, note)


def rate(name: str, times_s: list[float]) -> Row:
    """Return a row of rates of the session."""
    size = SEGMENTS * SEGMENT_S * FPS * PICTURE_BYTES / MB
    return row(PART, name, "MB/s", [size / one_s for one_s in times_s])


def bucket_rows(repeats: int) -> Iterator[Row]:
    """Upload to a server on this machine, with checksums verified by the server; beside boto3's own
    upload of the same files."""
    with tempfile.TemporaryDirectory(dir=PLACE) as folder, Gateway(Path(folder, "s3")) as gateway:
        root = Path(folder, "store")
        _, listed = filled_store(root)
        with environment(gateway.environment(gateway.port)):
            import boto3

            client = boto3.client("s3")

            def ours(number: int) -> None:
                office = S3(f"s3://{BUCKET}/ours{number}", root)
                asyncio.run(office.put(SESSION, listed))

            def theirs(number: int) -> None:
                for segment in listed:
                    path = str(root / segment.path)
                    client.upload_file(path, BUCKET, f"theirs{number}/{segment.path}")

            our_s, their_s = pairs(ours, theirs, repeats, lambda: empty(gateway.files))
    yield from (rate("to a bucket", our_s), rate("boto3's upload", their_s))
    yield beside("to a bucket", our_s, their_s, "boto3's upload", Aim(least=0.8))


def empty(folder: Path) -> None:
    """Remove the contents of a folder."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables within the context."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def pairs(
    ours: Callable[[int], object],
    theirs: Callable[[int], object],
    repeats: int,
    between: Callable[[], object],
) -> tuple[list[float], list[float]]:
    """Measure two ways in turn, ABBA, after a first run of each; return the times in s."""
    times_s: tuple[list[float], list[float]] = [], []
    for number in range(repeats + 1):
        say(f"{PART}: pair {number} of {repeats}")
        for way in (0, 1) if number % 2 else (1, 0):
            between()
            one_s = took_s(lambda: (ours, theirs)[way](number))  # noqa: B023
            if number:
                times_s[way].append(one_s)
    return times_s


def tier_rows(repeats: int) -> Iterator[Row]:
    """Archive and recall between two loop devices, beside `cp` and a sync of each file."""
    times_s: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=PLACE)))
        fast, slow = (
            stack.enter_context(
                mounted(image(home / f"{name}.img", DISK_MB, "mkfs.ext4", "-qF"), home / name)
            )
            for name in ("fast", "slow")
        )
        root, there, plain = fast / "store", slow / "archive", fast / "plain"
        there.mkdir()
        store, _ = filled_store(root)
        shutil.copytree(root / SESSION, plain)

        def move(way: str) -> None:
            archive = archive_of(str(there), root)
            tiers = Tiers(store, Folder(root), archive, (), asyncio.to_thread)
            asyncio.run(getattr(tiers, way)(SESSION))

        for number in range(repeats + 1):
            say(f"{PART}: archive and recall, {number} of {repeats}")
            for way, session, source, target in (
                ("archive", root / SESSION, plain, slow / "plain"),
                ("recall", there / SESSION, slow / "plain", fast / "copy"),
            ):
                works = {way: partial(move, way), f"cp, as {way}": partial(cp, source, target)}
                for name in sorted(works, reverse=bool(number % 2)):
                    forget(source if name != way else session)
                    one_s = took_s(works[name])
                    if number:  # the first ones warm up
                        times_s.setdefault(name, []).append(one_s)
            shutil.rmtree(slow / "plain")
            shutil.rmtree(fast / "copy")
    for way in ("archive", "recall"):
        yield from (rate(name, times_s[name]) for name in (way, f"cp, as {way}"))
        yield beside(way, times_s[way], times_s[f"cp, as {way}"], "cp", Aim(least=0.7))


def cp(source: Path, target: Path) -> None:
    """Copy a folder, and sync each file."""
    run("cp", "-r", source, target)
    run("sync", *target.iterdir())


class Cut(Exception):
    """End of a transfer in its middle."""


def send_row() -> Row:
    """Cut a sent snapshot at half, and send it again."""
    say(f"{PART}: a snapshot cut at half")
    subprocess.run(["make", "-s", "-C", str(pipes.SOURCE)], check=True)
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=PLACE)))
        path = f"{pipes.SOURCE}:{os.environ['PATH']}"
        stack.enter_context(environment({"PATH": path}))
        near, far = (
            stack.enter_context(
                mounted(image(home / f"{name}.img", 2 * DISK_MB, "mkfs.btrfs", "-qf"), home / name)
            )
            for name in ("near", "far")
        )
        root, there = near / "store", far / "snapshots"
        for subvolume in (root, root / ".snapshots"):
            run("btrfs", "subvolume", "create", subvolume)
        there.mkdir()
        dice = random.Random(1)
        with (root / "data").open("wb") as file:
            for _ in range(SENT_BYTES // MIB):
                file.write(dice.randbytes(MIB))
        made = root / ".snapshots/store.20261127T100000+0000"
        run("btrfs", "subvolume", "snapshot", "-r", root, made)

        def send(*options: str, on_progress: Callable[[CopyProgress], None]) -> int:
            rdcp = Rdcp(str(there), root, options)
            sender = Sender(root, "benchmark", Target(str(there)), rdcp)
            (sent,) = sender.run(on_progress)
            return sent.moved

        size = 0

        def cut(progress: CopyProgress) -> None:
            nonlocal size
            size = progress.total or 0
            if size and 2 * progress.done >= size:
                raise Cut

        try:
            send("--rate", CUT_RATE, on_progress=cut)
        except Cut:
            pass
        else:
            raise RuntimeError("the transfer ended before it was cut")
        moved = send(on_progress=lambda progress: None)
    name = f"btrfs send of {SENT_BYTES // MIB} MiB, cut at 50 %: moved again"
    return row(PART, name, RATIO, [moved / size], Aim(median=0.51))


def fill_tiers(root: Path, there: Path, count: int) -> None:
    """Write very many sessions of five cars; each second one is in the archive `there`."""
    Store(Folder(root)).open("")
    shutil.copyfile(root / MARKER, there / MARKER)
    mark = messages.Event(BEGAN_NS, messages.INFO, "puddle", "Ada")
    data = b"".join(McapFile([Logged(BEGAN_NS, messages.MARK, codec.encode(mark))]).chunks())
    entry, key = b"", ""
    for number in range(count):
        car, began_ns = f"Car{number % 5}", BEGAN_NS + number * 600 * SECOND_NS
        recording = names.recording_name(car, began_ns)
        day = f"{recording[-16:-12]}-{recording[-12:-10]}-{recording[-10:-8]}"
        session, name = f"{car}/{day}/{recording}", names.file_name(recording, 1)
        folder = (there if number % 2 else root) / session
        folder.mkdir(parents=True)
        (folder / name).write_bytes(data)
        segment = StoredSegment(f"{session}/{name}", f"{number:064x}")
        (folder / SUMS_FILE).write_bytes(text_of([segment]))
        if not number % 2:
            continue
        if not entry:
            key = key_of(segment.path)
            entry = probe(ProbeJob(str(folder / name), key))
        own = msgspec.Raw(entry.replace(key.encode(), key_of(segment.path).encode()))
        record = ArchivedSession(
            str(there), time.time(), {name: segment.sha256}, {name: len(data)}, {name: own}
        )
        path, link = root / path_of(session), root / session
        for parent in (path.parent, link.parent):
            parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(record))
        link.symlink_to(os.path.relpath(folder, link.parent))


def memory_row(count: int) -> Row:
    """Measure `fpvstation run` with its page, its catalogue and its chores."""
    say(f"{PART}: memory with {count:,} sessions in two tiers")
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        home = Path(folder)
        root, there, state = home / "store", home / "archive", home / "state"
        for made in (root, there, state):
            made.mkdir()
        fill_tiers(root, there, count)
        config = home / "station.toml"
        config.write_text(f'[tiers]\narchive = "{there}"\nafter = "9999 days"\n')
        options = [f"--port={free_port()}", f"--store={root}", f"--config={config}"]
        argv = [sys.executable, "-m", "fpvstation", "run", *options]
        env = {**os.environ, "STATE_DIRECTORY": str(state)}
        process = subprocess.Popen(
            argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(
                lambda: process.poll() is not None or listed(state / FILE) == count,
                "the catalogue is not complete",
                LIMIT_S,
                every_s=1.0,
            )
            status = Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    name = f"memory of the station, {count:,} sessions in 2 tiers"
    return row(PART, name, "MB", [int(peak) * 1024 / MIB], Aim(worst=150.0), "its peak")


def listed(catalogue: Path) -> int:
    """Return the number of sessions in a catalogue; 0 before it is made."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(catalogue)) as db:
        return int(db.execute("SELECT count(*) FROM session").fetchone()[0])
    return 0


def rows(settings: Settings, sessions: int = SESSIONS) -> Iterator[Result]:
    """Measure all parts of the store."""
    repeats = min(REPEATS, settings.runs)
    yield from bucket_rows(repeats)
    if os.geteuid() != 0:
        yield Note(PART, "loop devices need root")
    else:
        yield from tier_rows(repeats)
        yield send_row()
    yield memory_row(sessions)

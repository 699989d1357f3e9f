"""Measurement of a disk by fio: four fixed jobs, the same for each tier.

sequential   1 MiB writes, then 1 MiB reads     an archive, a verification, a restore
append       1 MiB writes, each synced          segments that arrive
latency      4 KiB random reads, one at a time  lists and catalogue
random       64 KiB random reads                a jump in the player
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fpvcar.runtime import files
from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import FILE_DAMAGED
from fpvcar.runtime.units import MIB
from fpvstation.errors import StationError, require
from fpvstation.store.disk import locked
from fpvstation.store.identity import LOCK, MARKER

FILE, FOLDER = "measured.json", ".fpvstation-measure"
SIZE = 256 * MIB
JOBS = {
    "write": ("write", "1M"),
    "read": ("read", "1M"),
    "append": ("write", "1M", "--fsync=1"),
    "latency": ("randread", "4k", "--iodepth=1"),
    "random": ("randread", "64k"),
}
"""Kind, size of a block, and more options of fio; `write` and `read` are the sequential job."""


class Measured(msgspec.Struct):
    """Measured figures of one disk, in bytes a second. `at_s`: time, UTC."""

    folder: str
    latency_s: float
    read: float
    write: float
    append: float
    random: float
    at_s: float


def load(state: Path) -> list[Measured]:
    """Return all saved figures; [] before the first measurement. Raises StationError, OSError."""
    path = state / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Measured])
    except FileNotFoundError:
        return []
    except (ValueError, msgspec.DecodeError) as fault:
        command = "fpvstation measure DIR"
        raise StationError(FILE_DAMAGED(path=path, reason=fault, command=command)) from None


def save(state: Path, new: Measured) -> None:
    """Save figures in place of older ones of the same folder."""
    others = [measured for measured in load(state) if measured.folder != new.folder]
    files.write_whole(state / FILE, [msgspec.json.encode([*others, new])])


def measure(
    folder: Path, seconds: int, stores: list[Path], on_progress: Callable[[float], None]
) -> Measured:
    """Measure the disk of a folder; `seconds` for each of JOBS. `on_progress` gets the share
    that is done. `stores`: stores that may be on this disk; a running station refuses the
    measurement, and none can start before its end. Leaves no file behind. Raises StationError,
    OSError."""
    require("fio")
    if not folder.is_dir():
        raise StationError(f"{folder} is no folder: name one on the disk to measure")
    free = shutil.disk_usage(folder).free
    if free < 2 * SIZE:
        raise StationError(
            f"{folder} has {free / MIB:.0f} MiB free: a measurement needs {2 * SIZE / MIB:.0f} MiB"
        )
    with contextlib.ExitStack() as stack:
        for store in {*stores, *(p for p in (folder, *folder.parents) if (p / MARKER).exists())}:
            if (store / MARKER).exists() and store.stat().st_dev == folder.stat().st_dev:
                stack.enter_context(locked(store / LOCK, _busy(f"a station fetches into {store}")))
        work = folder / FOLDER
        work.mkdir(exist_ok=True)
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        stack.enter_context(locked(work / LOCK, _busy(f"{folder} is being measured")))
        results = {}
        for number, name in enumerate(JOBS):

            def report(share: float, number: int = number) -> None:
                on_progress((number + share) / len(JOBS))

            results[name] = _run(work, name, seconds, report)
    latency_s = results["latency"]["read"]["clat_ns"]["mean"] / 1e9
    rates = {
        name: results[name][kind]["bw_bytes"]
        for name, kind in (
            ("read", "read"),
            ("write", "write"),
            ("append", "write"),
            ("random", "read"),
        )
    }
    return Measured(str(folder), latency_s, at_s=time.time(), **rates)


def _busy(reason: str) -> StationError:
    return StationError(f"{reason}: end that first, or measure another disk")


def _run(
    work: Path, name: str, seconds: int, on_progress: Callable[[float], None]
) -> dict[str, Any]:
    """Run one job; return its result."""
    kind, block, *more = JOBS[name]
    report = work / "report.json"
    argv = [
        *("fio", f"--name={name}", f"--rw={kind}", f"--bs={block}", *more),
        *(f"--filename={work}/data", f"--size={SIZE}", f"--direct={_direct(work)}"),
        *("--time_based", f"--runtime={seconds}", "--ioengine=psync", "--thread"),
        *("--output-format=json", f"--output={report}"),
    ]
    began_s = time.monotonic()
    with subprocess.Popen(with_pdeathsig(argv), stderr=subprocess.PIPE, cwd=work) as process:
        try:
            while process.poll() is None:
                on_progress(min((time.monotonic() - began_s) / seconds, 1.0))
                time.sleep(0.1)
        except BaseException:
            process.kill()
            raise
        assert process.stderr
        errors = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise StationError(f"{work.parent}: fio: {errors.splitlines()[-1][:300] if errors else ''}")
    text = report.read_text()
    result: dict[str, Any] = msgspec.json.decode(text[text.index("{") :])["jobs"][0]
    return result


def _direct(work: Path) -> int:
    """Return 1 if the file system can bypass the page cache."""
    try:
        os.close(os.open(work / "data", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600))
    except OSError:
        return 0
    return 1

"""Verb `fpvcar log list|info|verify|recover|release|export`: contents and integrity of recordings.

Exit status: 0 all is well, 1 a file is damaged or missing, 2 wrong usage.
"""

import argparse
import errno
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fpvcar.library.recording_index import RecordingIndex
from fpvcar.recorder import folder
from fpvcar.recordings import names, reader
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair import damage, salvage, verify
from fpvcar.runtime.units import MB, SECOND_NS, counted

DAMAGE_SHOWN = 20
RECOVERED = ".recovered"


def run(action: str, paths: Sequence[Path], out: Path | None = None) -> int:
    """Run one verb over all files; a folder stands for its recordings."""
    if action == "recover":
        return _recover(paths, out)
    if action == "list":
        return 0 if all([_list(path) for path in paths]) else 1
    act, good = {"info": _info, "verify": _verify, "release": _release}[action], True
    for path in names.files(paths, _warn):
        try:
            good = act(path) and good
        except BrokenPipeError:
            raise
        except (RecordingError, OSError) as fault:
            print(f"{_named(path, fault)}", file=sys.stderr)
            good = False
    return 0 if good else 1


def refuses(arguments: argparse.Namespace) -> bool:
    """Return whether a dataset is missing for `export`, or given to another action; print that."""
    dataset = arguments.lerobot or arguments.donkey
    if bool(dataset) == (arguments.action == "export"):
        return False
    wanted = "add --lerobot DIR or --donkey DIR" if dataset is None else "use fpvcar log export"
    print(f"fpvcar log {arguments.action}: {wanted}", file=sys.stderr)
    return True


def _warn(message: str) -> None:
    print(message, file=sys.stderr)


def _named(path: Path, fault: Exception) -> str:
    if isinstance(fault, OSError):
        return f"{path}: {fault.strerror or fault}"
    return str(fault)  # the text already contains the file's name


def utc(time_ns: int) -> str:
    """Return a time as text, like 2026-11-21 19:31:00 UTC."""
    when = time.gmtime(max(0, time_ns) // SECOND_NS)
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", when)


def _span(start_ns: int, end_ns: int) -> str:
    seconds = max(0, end_ns - start_ns) / SECOND_NS
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def _list(path: Path) -> bool:
    """Print one line per file, from the folder's index where possible. Return False if a file is
    unreadable."""
    good, folder = True, path if path.is_dir() else None
    try:
        paths = {file.name: file for file in names.files([path], _warn)}
        if folder is None:
            path.stat()
        entries = RecordingIndex(paths.values, folder=folder).entries()
    except OSError as fault:
        print(_named(path, fault), file=sys.stderr)
        return False
    for entry in entries:
        if entry.unreadable:
            print(f"{paths[entry.name]}: {entry.lost}", file=sys.stderr)
            good = False
            continue
        start_ns = round(entry.start_ms * 1e6)
        span = _span(start_ns, start_ns + round(entry.seconds * SECOND_NS))
        state = {"open": "  being written", "damaged": f"  {entry.lost}"}
        kept = "  kept" if _keep_mark(paths[entry.name]).exists() else ""
        print(
            f"{paths[entry.name]}  {utc(start_ns)}  {span:>8}  "
            f"{entry.bytes / MB:7.1f} MB  {counted(entry.pictures, 'picture')} of "
            f"{counted(entry.messages, 'message')}{state.get(entry.state, '')}{kept}"
        )
    return good


def _info(path: Path) -> bool:
    """Print the contents of a file, topic by topic."""
    with reader.read(path) as recording:
        _print_summary(path, recording)
        seconds = max(1e-9, (recording.end_ns - recording.start_ns) / SECOND_NS)
        for topic, count in sorted(recording.counts.items()):
            print(f"  {topic:20} {count:8}  {count / seconds:7.1f} a second")
        _print_damage(recording)
    return True


def _keep_mark(path: Path) -> Path:
    return path.with_name(path.name + names.KEPT)


def _release(path: Path) -> bool:
    """Allow the ring to remove a kept file again."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if _keep_mark(path).exists():
        _keep_mark(path).unlink(missing_ok=True)
        print(f"{path}: released")
    return True


def _verify(path: Path) -> bool:
    """Check every CRC and every index; return False if data was lost. A file that is still being
    recorded is good if it is intact so far."""
    with reader.read(path) as recording:
        size = f"{recording.size / MB:.1f} MB"
        good = f"{len(recording.chunks)} chunks, {sum(recording.counts.values())}"
        bad_indexes = list(verify.index_faults(recording)) if recording.whole else []
        doubts = list(verify.metadata_faults(recording)) if recording.whole else []
        intact = recording.whole and not bad_indexes and not doubts
        if intact and not recording.gaps:
            bare = f"no CRC covers {recording.unverified} bytes of messages"
            crcs = bare if recording.unverified else "every CRC holds"
            print(f"{path}: whole: {good} messages, {size}, {crcs}")
            return True
        if _being_recorded(path, recording):
            print(f"{path}: being recorded: so far {good} messages, {size}, no damage")
            return True
        print(f"{path}: {_verdict(recording, bool(bad_indexes), bool(doubts), good)}")
        for fault in [*doubts, *bad_indexes][:DAMAGE_SHOWN]:
            print(f"  {fault}")
        _print_damage(recording)
    if not intact:
        print(f"  a clean file: fpvcar log recover {path}")
    return False


def _being_recorded(path: Path, recording: Recording) -> bool:
    """Return whether this file is currently being recorded, and intact so far."""
    unclosed = path.name.endswith((names.OPEN, names.ROLLING))
    sound = not (recording.was_closed or recording.gaps or recording.damage)
    return unclosed and sound and folder.recorded_into(path.parent)


def _verdict(recording: Recording, bad_indexes: bool, doubts: bool, good: str) -> str:
    if recording.damage:
        lost = sum(span.length for span in recording.damage)
        return f"{lost} bytes cannot be used; {good} messages can"
    if recording.gaps:
        lost = sum(gap.lost for gap in recording.gaps)
        return f"{lost} messages are missing; {good} messages are intact"
    if bad_indexes or doubts:
        fault = "some checks fail" if doubts else "its indexes are wrong"
        return f"complete, but {fault}: {good} messages"
    if recording.was_closed:
        return f"its summary does not hold, but nothing else is damaged: {good} messages"
    return f"never closed, but nothing is damaged: {good} messages"


def _print_summary(path: Path, recording: Recording) -> None:
    print(
        f"{path}: {utc(recording.start_ns)}, "
        f"{_span(recording.start_ns, recording.end_ns)} minutes, "
        f"{recording.size / MB:.1f} MB, "
        f"{damage.unclosed(recording) or 'closed'}"
    )
    about = recording.about
    if about is None:
        print("  not written by fpvcar, or its description is damaged")
        return
    print(
        f"  {about.car}, fpvcar {about.version}, recording {about.recording}, file {about.segment}"
    )


def _print_damage(recording: Recording) -> None:
    """Print the damaged parts and the missing messages."""
    for span in recording.damage[:DAMAGE_SHOWN]:
        print(f"  at byte {span.at}: {span.length} bytes: {span.reason}")
    if len(recording.damage) > DAMAGE_SHOWN:
        print(f"  and {len(recording.damage) - DAMAGE_SHOWN} more places")
    missing = list(damage.missing_messages(recording))
    for gap in missing[:DAMAGE_SHOWN]:
        print(f"  {gap}")
    if len(missing) > DAMAGE_SHOWN:
        print(f"  and {len(missing) - DAMAGE_SHOWN} more gaps")


def _recover(paths: Sequence[Path], out: Path | None) -> int:
    """Write repaired files beside damaged ones, or in `out`; replace no file."""
    if out is not None and not out.is_dir():
        print(f"fpvcar log: --out {out}: expected a folder", file=sys.stderr)
        return 2
    status = 0
    for path in names.files(paths, _warn):
        target = (out or path.parent) / recovered_name(path.name)
        try:
            with reader.read(path) as recording:
                if not recording.counts:
                    print(f"{path}: contains no usable message", file=sys.stderr)
                    status = 1
                    continue
                size = salvage.write_clean(recording, target)
                lost = sum(span.length for span in recording.damage)
                print(
                    f"{target}: {sum(recording.counts.values())} messages, "
                    f"{size / MB:.1f} MB; {lost} bytes of {path.name} were unusable"
                )
                _print_damage(recording)
        except BrokenPipeError:
            raise
        except FileExistsError:
            print(f"{target}: already exists; move it away first", file=sys.stderr)
            status = 1
        except (RecordingError, OSError) as fault:
            print(f"{_named(path, fault)}", file=sys.stderr)
            status = 1
    return status


def recovered_name(name: str) -> str:
    """Return the name of the repaired file: NAME.recovered.mcap beside NAME.mcap."""
    return f"{name.partition(names.SEALED)[0]}{RECOVERED}{names.SEALED}"

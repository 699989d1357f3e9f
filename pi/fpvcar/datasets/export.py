"""Export of many recordings as one dataset, which can be interrupted and continued.

    files -> Session.read -> grid.stretches -> grid.ticks -> rows, pictures -> Part -> OUT

A continued export reads all recordings again, but writes only the missing episodes.
"""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import msgspec

from fpvcar.datasets import donkey, grid, lerobot, libraries
from fpvcar.datasets.grid import Size, Span, Stretch
from fpvcar.datasets.jobs import DatasetSummary
from fpvcar.datasets.part import Episode, Part, Shape, opened, request_of
from fpvcar.datasets.session import Session, state_columns
from fpvcar.datasets.video import NumberedFrames
from fpvcar.library.notes import Notes
from fpvcar.library.titles import NAME as TITLES
from fpvcar.library.titles import TitlesByFile
from fpvcar.recordings import names
from fpvcar.recordings.export.export import NOTE, File, Report, in_order, one_by_one
from fpvcar.recordings.export.progress import Progress
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.texts import Phrase
from fpvcar.runtime.units import MB, SECOND_NS, counted

TASK = "Drive the car"
PICTURE_BYTES_PER_PIXEL, BLOCK = 0.3, 4096
"""Upper estimates of the bytes of an encoded picture, and of those that a small file takes more."""


DATASET_FULL = Phrase(
    "dataset_full",
    "{name} needs up to {need_mb} MB, and {free_mb} MB are free in {folder}: make room, or choose "
    "fewer drives or smaller pictures",
)


class Drive(msgspec.Struct, frozen=True):
    """Part of recordings: names of files, and a UTC range within them in ns."""

    files: list[str]
    start_ns: int
    end_ns: int


class Settings(msgspec.Struct, frozen=True):
    """Options of an export. `fps` 0: the camera's own rate; `size` None: the recorded one.

    `drives` limits the episodes to those of some drives; files may have others, too.
    """

    kind: str
    fps: int = 0
    size: Size | None = None
    copy: bool = False
    marks: bool = False
    task: str = ""
    least_s: float = 1.0
    drives: list[Drive] = []


class Display(Protocol):
    """Progress display of an export."""

    def to(self, done: float, now_s: float) -> None:
        """Update the number of bytes read so far."""

    def end(self) -> None:
        """Clear the display, so that a line can be printed."""


def run(
    program: str, settings: Settings, out: Path, paths: Sequence[Path], accept_losses: bool
) -> int:
    """Export recordings; return the exit status. Raises OSError.

    With `accept_losses`, losses give status 0 instead of damage.INCOMPLETE.
    """
    report = Report(lambda text: print(f"{program}: {text}", file=sys.stderr))
    out = out.absolute()
    kept = out.with_name(f"{out.name}.part")
    try:
        if install := libraries.use(settings.kind, program.split()[0]):
            raise RecordingError(install)
        summary = write(settings, out, paths, report, _bar)
    except RecordingError as fault:
        print(f"{program}: {fault}", file=sys.stderr)
        return 1
    except BaseException:
        if kept.exists():
            print(f"{program}: {kept} is kept: the same command continues it", file=sys.stderr)
        raise
    print(f"{out}: {summary}")
    if report.incomplete:
        verb = "accepted" if accept_losses else "--partial accepts that"
        report.out(f"recorded data is missing in {out}: {verb}")
    return report.status(accept_losses)


def _bar(total: int) -> Progress:
    return Progress(sys.stderr, total, time.monotonic())


def write(
    settings: Settings,
    out: Path,
    paths: Sequence[Path],
    report: Report,
    display: Callable[[int], Display],
    reserve: int = 0,
) -> DatasetSummary:
    """Write a dataset, or continue it; return its summary. Raises RecordingError, OSError.

    `display` makes the display of a number of bytes. `reserve` bytes of the disk stay free.
    """
    ordered = in_order(paths, report.say, report.lost)
    inputs = [(str(file.path), file.size, file.start_ns) for file in ordered]
    with opened(out, (settings, inputs)) as part:
        return _Export(settings, ordered, part, report, display).run(reserve)


def begun(out: Path) -> tuple[Settings, list[Path]]:
    """Return options and recordings of an unfinished dataset. Raises RecordingError, OSError."""
    try:
        request = msgspec.json.decode(
            request_of(out).read_bytes(), type=tuple[Settings, list[tuple[str, int, int]]]
        )
    except msgspec.DecodeError as fault:
        raise RecordingError(f"{request_of(out)}: {fault}: delete its folder") from None
    return request[0], [Path(path) for path, _, _ in request[1]]


def needed_bytes(settings: Settings, size: int, seconds: float) -> int:
    """Return an upper estimate of a dataset's bytes; `size` is that of its recordings.

    A copied episode is there twice while it is written.
    """
    donkeys = settings.kind == "donkey"
    pixels = settings.size or (donkey.SIZE if donkeys else None)
    if pixels is None:
        return 2 * size
    each = pixels.width * pixels.height * PICTURE_BYTES_PER_PIXEL + BLOCK * donkeys
    return round(seconds * (settings.fps or 30) * each)


class _Export:
    """Run of an export, into a part that may already have episodes."""

    def __init__(
        self,
        settings: Settings,
        ordered: Sequence[File],
        part: Part,
        report: Report,
        display: Callable[[int], Display],
    ) -> None:
        self._settings, self._ordered = settings, ordered
        self._part, self._report = part, report
        self._total = 2 * sum(file.size for file in ordered)
        self._progress = display(self._total)
        self._done = 0
        self._episodes = part.episodes()
        self._shape: Shape | None = None
        self._titles: dict[Path, TitlesByFile] = {}

    def run(self, reserve: int) -> DatasetSummary:
        """Write the episodes that are missing, and the metadata; return a summary.

        Raises RecordingError, OSError.
        """
        self._refuse_full(reserve)
        if self._episodes:
            self._report.out(f"continuing after {counted(len(self._episodes), 'episode')}")
        says, part = self._report.out, self._part

        def say(text: str) -> None:
            self._progress.end()
            says(text)

        self._report.out = say
        first = done = 0
        try:
            for name, files in self._recordings().items():
                first += self._session(Session(name, files), first)
                done += 2 * sum(file.size for file in files)
                self._done = done
        finally:
            self._progress.end()
            self._report.out = says
        episodes, shape = [one for one in self._episodes if one.length], self._shape
        if not episodes or shape is None:
            raise RecordingError("no episode in these recordings: no driver with a picture")
        finish = donkey.finish if self._settings.kind == "donkey" else lerobot.finish
        finish(part.dataset, episodes, shape)
        if self._report.lines:
            note = "\n".join([*self._report.lines, ""])
            (part.dataset / NOTE).write_text(note, "utf-8")
        part.publish()
        return _summary(episodes, shape)

    def _recordings(self) -> dict[str, list[File]]:
        """Return the files of each recording; those of several cars may alternate."""
        recordings: dict[str, list[File]] = {}
        for file in self._ordered:
            files = recordings.setdefault(file.recording or file.path.stem, [])
            if any(other[2:] == file[2:] for other in files):
                self._report.say(f"{file.path}: left out, as a copy of it is in the dataset")
            else:
                files.append(file)
        return recordings

    def _refuse_full(self, reserve: int) -> None:
        """Raise RecordingError if the disk is too small."""
        seconds = sum(file.end_ns - file.start_ns for file in self._ordered) / SECOND_NS
        need = needed_bytes(self._settings, self._total // 2, seconds)
        out = self._part.out
        free = shutil.disk_usage(out.parent).free + self._part.size() - reserve
        if need > free:
            texts = {"need_mb": f"{need / MB:.0f}", "free_mb": f"{max(0, free) / MB:.0f}"}
            raise RecordingError(DATASET_FULL(name=out.name, folder=out.parent, **texts))

    def _tell(self, size: int) -> None:
        self._done += size
        self._progress.to(self._done, time.monotonic())

    def _session(self, session: Session, first: int) -> int:
        """Write the episodes of a recording that are missing; return the number of all of them.

        `first` is the number of the first one.
        """
        report, cuts = self._report, list[Stretch]()
        try:
            with closing(one_by_one(session.files, report.say)) as files:
                for size in session.read(report.judged(files)):
                    self._tell(size)
            cuts = self._stretches(session)
        except RecordingError as fault:
            report.lost(str(fault))
        if cuts and self._shape is None:
            self._shape = self._shape_of(session)
        for cut in cuts[max(0, len(self._episodes) - first) :]:
            assert self._shape is not None
            episode = self._write(session, cut, self._shape)
            self._part.save(len(self._episodes), episode)
            self._episodes.append(episode)
        return len(cuts)

    def _shape_of(self, session: Session) -> Shape:
        """Return the properties of all episodes from the first recording with one."""
        settings, usual = self._settings, session.size
        if settings.kind == "donkey":
            usual = donkey.SIZE
        fps = settings.fps or max(1, grid.rate_of(session.captures))
        columns = state_columns([file.path for file in self._ordered])
        return Shape(fps, *(settings.size or usual), columns)

    def _stretches(self, session: Session) -> list[Stretch]:
        """Return the episodes of a recording; report its holes, and what is too short."""
        settings, say = self._settings, self._report.say
        spans = _of_drives(settings.drives, session)
        if settings.marks:
            spans = grid.marked(spans, session.marks)
        captures, least_ns = session.captures, settings.least_s * SECOND_NS
        cuts = grid.stretches(spans, captures, session.keys, settings.copy)
        long = [cut for cut in cuts if captures[cut.end - 1] - captures[cut.first] >= least_ns]
        if holes := sum(count - 1 for count in Counter(cut.span for cut in cuts).values()):
            text = counted(holes, "hole")
            say(f"{session.name}: {text} in its video: a new episode begins after each")
        if short := len(cuts) - len(long):
            text = counted(short, "episode")
            say(f"{session.name}: {text} shorter than {settings.least_s:g} s left out")
        return long

    def _write(self, session: Session, cut: Stretch, shape: Shape) -> Episode:
        """Write an episode; one whose video cannot be decoded gets the length 0."""
        ticks = grid.ticks(session.captures, cut.first, cut.end, shape.fps)
        rows = [session.row(time_ns, shape.columns) for time_ns in ticks.times_ns]
        good = [episode for episode in self._episodes if episode.length]
        tasks = list(dict.fromkeys(episode.task for episode in good))
        task = self._task(session, cut.span)
        stops = enumerate(pairwise(["", *(row.stop for row in rows)]))
        unknown = Counter(name for row in rows for name in row.unknown)
        episode = Episode(
            number=len(good),
            index=sum(episode.length for episode in good),
            length=len(rows),
            task=task,
            task_index=tasks.index(task) if task in tasks else len(tasks),
            driver=cut.span.driver,
            stops=[
                f"{stop} at {number / shape.fps:.1f} s"
                for number, (before, stop) in stops
                if stop and stop != before
            ],
            unknown=[f"{name} in {counted(count, 'row')}" for name, count in unknown.items()],
            car=session.car,
            recording=session.name,
            start_ns=session.captures[cut.first],
            doubled=ticks.doubled,
            dropped=ticks.dropped,
            copied=False,
        )

        def frames() -> NumberedFrames:
            for number, frame in session.frames(cut.first, cut.end):
                self._tell(len(frame.unit))
                yield number, frame

        write = donkey.write_episode if self._settings.kind == "donkey" else lerobot.write_episode
        copy = self._settings.copy and session.keys[cut.first] and session.size == shape.size
        try:
            return write(self._part.dataset, episode, rows, ticks, frames, shape, bool(copy))
        except RecordingError as fault:
            self._report.lost(f"{session.name}: an episode is left out: {fault}")
            return msgspec.structs.replace(episode, length=0)

    def _task(self, session: Session, span: Span) -> str:
        """Return the given task, the mark's text, the title of the drive, or TASK."""
        if self._settings.task or span.task:
            return self._settings.task or span.task
        middle_ns = (span.start_ns + span.end_ns) // 2
        file = next((one for one in session.files if one.end_ns >= middle_ns), session.files[-1])
        folder = file.path.parent
        if folder not in self._titles:
            self._titles[folder] = {}
            with suppress(OSError):
                self._titles[folder] = Notes(folder, TITLES, tuple[float, str]).read()
        middle_s = (middle_ns - file.start_ns) / SECOND_NS
        titles = self._titles[folder].get(names.stem(file.path.name), [])
        return min(titles, key=lambda title: abs(title[0] - middle_s), default=(0.0, TASK))[1]


def _of_drives(drives: Sequence[Drive], session: Session) -> list[Span]:
    """Return the drivers' spans in the chosen drives; all of them without a choice."""
    names = {file.path.name for file in session.files}
    own = [drive for drive in drives if not names.isdisjoint(drive.files)]

    def chosen(span: Span) -> bool:
        middle_ns = (span.start_ns + span.end_ns) // 2
        return any(drive.start_ns <= middle_ns <= drive.end_ns for drive in own)

    return list(filter(chosen, session.spans)) if drives else session.spans


def _summary(episodes: Sequence[Episode], shape: Shape) -> DatasetSummary:
    return DatasetSummary(
        episodes=len(episodes),
        frames=sum(episode.length for episode in episodes),
        doubled=sum(episode.doubled for episode in episodes),
        dropped=sum(episode.dropped for episode in episodes),
        copied=sum(episode.copied for episode in episodes),
        fps=shape.fps,
    )

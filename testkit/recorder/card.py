"""Recorders that are killed, cards that lose power, the files left by both, and their page."""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from fpvcar.recordings import codec, messages, names, reader
from fpvcar.recordings.mcap.parsing import RecordingError
from testkit.harness import wait_for

FICLONE = 0x40049409
"""ioctl_ficlone(2): an atomic clone of a file."""


class Writing(AbstractContextManager["Writing"]):
    """testkit.recorder.writer, and its progress so far."""

    def __init__(self, folder: Path, *overrides: str) -> None:
        self.last_ns, self.state, self.states = 0, "", list[str]()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "testkit.recorder.writer", folder, *overrides],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        wait_for(lambda: self.last_ns > 0, "the recorder did not start")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            when, _, state = line.strip().partition(" ")
            self.last_ns = int(when)
            if state != self.state:
                self.state = state
                self.states.append(state)

    def goes_on(self, seconds: float) -> None:
        """Wait until the recorder has got so many seconds more."""
        until_ns = self.last_ns + round(seconds * 1e9)
        wait_for(lambda: self.last_ns >= until_ns, "it stands", seconds + 10.0)

    def kill(self) -> int:
        """Kill the recorder; return the time of its last step, in ns."""
        self.process.kill()
        self.process.wait()
        self._thread.join()
        return self.last_ns

    def end(self) -> int:
        """End it as a service is ended; return the exit status."""
        self.process.terminate()
        return self.process.wait(60)


@contextmanager
def replay_page(folder: Path) -> Iterator[str]:
    """Run `fpvcar replay --page` on a folder; yield the page's address."""
    with subprocess.Popen(
        [sys.executable, "-m", "fpvcar", "replay", "--page", "--port", "0", folder],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2].partition("#")[0]
        finally:
            process.terminate()


def files(folder: Path) -> list[Path]:
    """Return every recording in a folder, sealed or not, the oldest first."""
    found = [names.parse(one.name) for one in folder.iterdir()]
    return [folder / name.text for name in sorted(name for name in found if name)]


def step_times(folder: Path) -> list[int]:
    """Return the times of the recorded steps in ns. A file may be cut, but not otherwise damaged.

    Asserts that no step is missing between the first and the last.
    """
    times, sequences = list[int](), list[int]()
    for path in files(folder):
        try:
            made = reader.read(path)
        except RecordingError as fault:
            assert "empty" in str(fault), str(fault)
            continue
        with made:
            assert all(one.reason.startswith("cut") for one in made.damage), made.damage
            for message in made.messages([messages.STEP]):
                one = codec.decode(messages.STEP, message.data)
                assert isinstance(one, messages.Step)
                times.append(one.now_ns)
                sequences.append(message.sequence)
    run_on = range(sequences[0], sequences[0] + len(sequences)) if sequences else ()
    assert sequences == list(run_on), "one is missing in the middle"
    return times


def recorded(folder: Path) -> bool:
    """Return whether the card has a step yet."""
    return folder.is_dir() and bool(step_times(folder))


def lost_s(folder: Path, last_ns: int) -> float:
    """Return the missing seconds at the end."""
    times = step_times(folder)
    assert times, "nothing was recorded at all"
    return (last_ns - times[-1]) / 1e9


def run(*words: str | Path) -> None:
    """Run a command that has to succeed."""
    done = subprocess.run([str(one) for one in words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{words}: {done.stderr}"


@contextmanager
def mounted(image: Path, where: Path, options: str = "loop") -> Iterator[Path]:
    """Mount an image on a loop device, as a disk."""
    where.mkdir()
    run("mount", "-o", options, image, where)
    try:
        yield where
    finally:
        try:
            run("umount", where)
        except AssertionError:  # a process is still in it
            run("umount", "-l", where)


def image(path: Path, megabytes: int, *mkfs: str) -> Path:
    """Make a new file system in a file."""
    with path.open("wb") as file:
        file.truncate(megabytes * 1024 * 1024)
    run(*mkfs, path)
    return path


class Card(AbstractContextManager["Card"]):
    """An ext4 card whose power can go at any moment, on a file system that clones."""

    def __init__(self, home: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._cuts = 0
        self._home = home
        below = image(home / "below.img", 320, "mkfs.btrfs", "-q", "-f")
        self._below = self._stack.enter_context(mounted(below, home / "below"))
        self._image = image(self._below / "card.img", 96, "mkfs.ext4", "-q", "-F")
        self.path = self._stack.enter_context(mounted(self._image, home / "card"))

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def cut(self) -> Iterator[Path]:
        """Mount a copy of the card in its state after a power cut at this moment."""
        self._cuts += 1
        clone = self._below / f"cut-{self._cuts}.img"
        with self._image.open("rb") as live, clone.open("wb") as copy:
            fcntl.ioctl(copy, FICLONE, live.fileno())
        with mounted(clone, self._home / f"cut-{self._cuts}") as path:
            yield path
        os.unlink(clone)

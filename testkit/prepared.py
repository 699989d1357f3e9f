"""Images, Debians and servers that tests need: made before any test runs, never by a test.

    python -m testkit.prepared ARGUMENT..    # makes those of the tests that these select

ARGUMENT is an argument of pytest. A test names its own by the mark `needs`. Each lies in a folder
of the user's cache, whose name follows from its recipe: a changed recipe makes a new folder.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

KEPT_S = 7 * 24 * 3600.0
"""Folders that no run has used for so long are deleted: their recipe has changed."""
SEAL = ".sealed"
BEAT_S = 15.0
"""Time between two lines of progress."""


def cache() -> Path:
    """Return the folder of all prepared things."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "fpvcar"


class Prepared(ABC):
    """A folder that takes minutes to make. It gets its name when it is whole, and a seal: the
    digest of the names, sizes and times of its files."""

    kind: str
    """Name of the parent folder."""
    sealed = "."
    """The part of the folder that nothing writes to."""
    takes_s: float
    """Duration on a computer with two cores."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The words of a progress line."""

    @abstractmethod
    def recipe(self) -> str:
        """Return a text that changes with every ingredient."""

    @abstractmethod
    def fill(self, folder: Path) -> None:
        """Make the content of a new folder. Raises RuntimeError with the builder's last words."""

    @property
    def place(self) -> Path:
        """Folder of the result, whether it exists or not."""
        return cache() / self.kind / hashlib.sha256(self.recipe().encode()).hexdigest()[:16]

    @property
    def folder(self) -> Path:
        """Folder of the result. Raises FileNotFoundError if it was not made."""
        if not (self.place / SEAL).exists():
            raise FileNotFoundError(
                f"{self.title} is not made: make test-all makes it before the tests,"
                " and so does python -m testkit.prepared TESTS"
            )
        return self.place

    def intact(self) -> bool:
        """Return whether the folder is there, with all its files as they were made."""
        with contextlib.suppress(OSError):
            return (self.place / SEAL).read_text() == self._digest(self.place)
        return False

    def _digest(self, folder: Path) -> str:
        found = hashlib.sha256()
        for parent, folders, names in os.walk(folder / self.sealed):
            folders.sort()
            for name in sorted(names):
                path = Path(parent, name)
                if path != folder / SEAL:
                    seen = path.lstat()
                    line = f"{path.relative_to(folder)} {seen.st_size} {seen.st_mtime_ns}\n"
                    found.update(os.fsencode(line))
        return found.hexdigest()

    def make(self) -> None:
        """Make the folder unless it is intact; a broken one is made anew."""
        parent = self.place.parent
        parent.mkdir(parents=True, exist_ok=True)
        with (parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.intact():
                if self.place.exists():
                    say(f"{self.title}: {self.place} is not as it was made, and is made anew")
                    shutil.rmtree(self.place)
                with tempfile.TemporaryDirectory(dir=parent) as temporary:
                    made = Path(temporary) / "made"
                    with progress(self.title, self.takes_s):
                        self.fill(made)
                    (made / SEAL).write_text(self._digest(made))
                    made.rename(self.place)
            os.utime(self.place)
            for old in parent.iterdir():
                if old.is_dir() and time.time() - old.stat().st_mtime > KEPT_S:
                    shutil.rmtree(old)


def say(line: str) -> None:
    print(f"  prepare: {line}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress(title: str, takes_s: float) -> Iterator[None]:
    """Print that the block works, every 15 s, and its duration at the end."""
    ended, begin_s = threading.Event(), time.monotonic()

    def beat() -> None:
        while not ended.wait(BEAT_S):
            say(f"{title}: {time.monotonic() - begin_s:.0f} s of about {takes_s:.0f}")

    say(f"{title}: takes about {takes_s:.0f} s")
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    say(f"{title}: made in {time.monotonic() - begin_s:.0f} s")


def build(words: list[str | Path], timeout_s: float, env: dict[str, str] | None = None) -> None:
    """Run a builder. Raises RuntimeError with its last words if it fails or takes too long."""
    try:
        done = subprocess.run(
            words,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{words[0]} did not end within {timeout_s:.0f} s") from None
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-2000:]}")


class Needs:
    """Plugin of pytest that collects the things named by the mark `needs`."""

    def __init__(self) -> None:
        self.named: dict[Prepared, None] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("needs"):
                self.named.update(dict.fromkeys(mark.args))


def main(arguments: list[str]) -> int:
    """Make what the tests of these arguments of pytest need. Return 0 if everything is there."""
    needs = Needs()
    quiet = ["--collect-only", "-qq", "--no-header", "--no-summary", "-p", "no:cacheprovider"]
    environment = dict(os.environ)
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        status = pytest.main([*quiet, *arguments], plugins=[needs])
    os.environ.clear()  # pytest has removed its own TMPDIR
    os.environ.update(environment)
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        say(f"the tests cannot be collected: pytest --collect-only {' '.join(arguments)}")
        return 1
    missing = [one for one in needs.named if not one.intact()]
    if missing:
        titles = ", ".join(one.title for one in missing)
        say(f"{titles}: about {sum(one.takes_s for one in missing) / 60:.0f} minutes in all")
    for one in needs.named:
        try:
            one.make()
        except (RuntimeError, OSError) as fault:
            cache().mkdir(parents=True, exist_ok=True)
            free_gb = shutil.disk_usage(cache()).free / 1e9
            say(f"{one.title} failed: {fault}")
            say(
                f"next step: check the network and the space in {cache()}"
                f" ({free_gb:.1f} GB free, 4 are needed), then start this target again"
            )
            return 1
    return 0


if __name__ == "__main__":
    from testkit.prepared import main as imported  # marks hold the classes of the imported module

    sys.exit(imported(sys.argv[1:]))

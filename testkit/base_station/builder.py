"""Station for tests: a store in a folder, and its parts in the wiring of the service."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fpvstation.catalogue.catalogue import FILE, Catalogue
from fpvstation.replicas.pending import LATEST_S
from fpvstation.replicas.remote import Remote
from fpvstation.replicas.replicate import Replicator
from fpvstation.replicas.restore import Restore, RestoreResult
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.store.archived import ARCHIVED
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE
from fpvstation.store.verify import Verdict, verify
from testkit.base_station.office import PlayedOffice
from testkit.base_station.stored import DATA, NAME, SECOND, SESSION, act, put

FILES = {NAME: os.urandom(300_000), SECOND: b"second"}
"""Segments of the session of `fill`."""
OTHER, OTHER_NAME = SESSION.replace("1931", "2031"), NAME.replace("1931", "2031")


class Station:
    """Store in `home`, with an office in memory, and an archive: a folder in `home` or `archive`.

    All parts have the same clocks, which stand still: `now_s`, and `utc_s`.
    """

    act: Callable[..., Any] = staticmethod(act)

    def __init__(self, home: Path, archive: str = "") -> None:
        self.root, self.there, self.away = home / "store", home / "archive", home / "unmounted"
        self.root.mkdir(parents=True, exist_ok=True)
        if not archive:
            self.there.mkdir(exist_ok=True)
        self.target = archive or str(self.there)
        self.now_s, self.utc_s = 1000.0, time.time()
        self.disk = Folder(self.root)
        self.copies, self.office = ReplicaLog(self.disk), PlayedOffice(self.root)
        self.store = Store(self.disk, lambda session: self.replicator.queue(session), self.clock_s)
        self.store.open("")
        self.replicator = self.replicator_of(self.office)

    def clock_s(self) -> float:
        return self.utc_s

    def steady_s(self) -> float:
        return self.now_s

    def replicator_of(self, remote: Remote) -> Replicator:
        return Replicator(remote, self.store, self.copies, self.act, self.steady_s, self.clock_s)

    async def later(self) -> None:
        """Run a round of the office's replicator when all is due."""
        self.now_s += LATEST_S
        await self.replicator.once(True)

    async def restore(
        self, *remotes: Remote, session: str = SESSION, tell: Callable[..., None] = lambda *_: None
    ) -> RestoreResult:
        work = Restore(session, self.store, self.disk, self.copies, self.act, tell)
        return await work.run(remotes)

    @contextmanager
    def catalogue(self) -> Iterator[Catalogue]:
        """Open the catalogue, beside the store."""
        made = Catalogue(self.root.with_name(FILE), self.root, self.store, self.store.id)
        made.open()
        made.sync()
        try:
            yield made
        finally:
            made.close()

    def faults(self) -> list[Verdict]:
        """Return the faults that `fpvstation verify` names."""
        found = verify(self.store, self.disk, sorted(self.store.known()), 1e5)
        return [verdict for verdict in found if verdict.fault]

    def bend(self, name: str = NAME) -> None:
        """Damage a byte on the local disk."""
        (self.root / SESSION / name).write_bytes(b"?" + DATA[1:])

    def fill(self, files: dict[str, bytes] = FILES) -> None:
        """Store a session that has settled."""
        for name, data in files.items():
            put(self.store, name, data)
        for path in self.root.glob(f"{SESSION}/*"):
            os.utime(path, (1e9, 1e9))
        self.listed = self.store.listed(SESSION)

    # --- The archive

    def tiers(self, *places: str, remotes: tuple[Remote, ...] = ()) -> Tiers:
        archive = archive_of(self.target, self.root)
        return Tiers(self.store, self.disk, archive, places, self.act, self.clock_s, remotes)

    def archive(self) -> int:
        return asyncio.run(self.tiers().archive(SESSION))

    def recall(self, *remotes: Remote, gone: bool = False) -> list[str]:
        return asyncio.run(self.tiers(remotes=remotes).recall(SESSION, gone=gone))

    def resume(self) -> list[Any]:
        return asyncio.run(self.tiers().resume())

    def unmount(self) -> None:
        self.there.rename(self.away)

    def mount(self) -> None:
        self.away.rename(self.there)

    def right_copies(self, name: str) -> list[Path]:
        """Return the right copies of a segment of FILES, in the store and in the archive."""
        found = [*self.root.rglob(name), *self.there.rglob(name)]
        return [path for path in found if path.read_bytes() == FILES[name]]

    def check_listed(self) -> None:
        """Check that the session is listed once, and each segment has a right copy."""
        assert list(self.store.sessions()) == [SESSION]
        assert self.store.listed(SESSION) == self.listed
        assert all(self.right_copies(name) for name in FILES)

    def check_one_copy(self, folder: Path) -> None:
        """Check that the only copy of the session is in this folder, and readable here."""
        self.check_listed()
        assert {name: self.right_copies(name) for name in FILES} == {
            name: [folder / SESSION / name] for name in FILES
        }
        argv = ["sha256sum", "--quiet", "--strict", "-c", SUMS_FILE]
        subprocess.run(argv, cwd=self.root / SESSION, check=True, timeout=30)
        litter = [*self.root.glob(f"{ARCHIVED}/*/*/*.old"), *self.root.glob(".incoming/*/*")]
        assert not litter and not list(self.there.glob(f".incoming/{SESSION}"))

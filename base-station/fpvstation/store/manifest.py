"""Lists of a store: its sessions, the expected segments of each, and the removed segments.
store.py adds and removes segments."""

import logging
import re
from collections.abc import Iterator, Sequence

from fpvcar.recordings import names
from fpvcar.wire.station import SHA256
from fpvstation.errors import StationError
from fpvstation.store.disk import Disk
from fpvstation.store.sums_file import SUMS_FILE, Listing, StoredSegment, listing_of, text_of

REMOVED = ".removed"
FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,40}")
"""Name of a car's folder."""
log = logging.getLogger("fpvstation")


class Manifest:
    """Lists of one store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._damaged = list[str]()

    def sessions(self) -> Iterator[str]:
        """Yield the folder of each session, oldest first within a car.

        Skips files, hidden folders, and folders in the root whose name no car can have
        ("lost+found", "System Volume Information").
        """
        for car in filter(FOLDER.fullmatch, self._disk.folders("")):
            for day in self._folders(car):
                yield from self._folders(day)

    def _folders(self, path: str) -> list[str]:
        inside = self._disk.folders(path)
        return [f"{path}/{name}" for name in inside if not name.startswith(".")]

    def folders_of(self, car: str, name: str) -> list[str]:
        """Return the folders in which a segment may be, its own first. A car with a wrong clock may
        use a name twice: the second session's folder then has its checksum after the name."""
        parsed = names.parse(name)
        if parsed is None or not FOLDER.fullmatch(car):
            raise StationError(f"{name[:80]!r} of {car[:80]!r} is not a segment's name")
        began = parsed.began
        day = f"{car}/{began[:4]}-{began[4:6]}-{began[6:8]}"
        own = f"{day}/{parsed.recording}"
        later = [
            f"{day}/{folder}"
            for folder in self._disk.names(day)
            if folder.startswith(f"{parsed.recording}.")
        ]
        return [own, *later]

    def of(self, session: str) -> list[StoredSegment]:
        """Return the expected segments of a session."""
        return self.listing(session).stored()

    def listing(self, session: str) -> Listing:
        """Return the list of a session with its damaged lines; empty if missing."""
        return listing_of(session, self.text(session))

    def text(self, session: str) -> bytes:
        """Return the list of a session byte by byte; b"" if it is missing."""
        try:
            return self._disk.read(f"{session}/{SUMS_FILE}")
        except (FileNotFoundError, NotADirectoryError):
            return b""

    def add(self, new: StoredSegment) -> None:
        """Write and sync the line of a segment; the disk is `changing`. Damaged lines of the
        same list stay."""
        session, _, name = new.path.rpartition("/")
        others = [line for line in self.listing(session).lines if line.path != new.path]
        self.replace(session, [*others, new])
        log.info("%s stored", name)

    def replace(self, session: str, stored: list[StoredSegment]) -> None:
        """Write these lines in place of those that parse; the disk is `changing`."""
        self.write(session, stored, self.listing(session).damaged)

    def write(self, session: str, stored: list[StoredSegment], damaged: Sequence[bytes]) -> None:
        """Replace the whole list; the disk is `changing`."""
        self._disk.replace(f"{session}/{SUMS_FILE}", text_of(stored, damaged))
        if not (stored or damaged):  # `sha256sum -c` exits with 1 for an empty list
            self._disk.remove(f"{session}/{SUMS_FILE}")
            self._disk.prune(session)

    def removed(self) -> set[str]:
        """Return the checksums of segments that people removed and no car brings back.

        A damaged line matches no segment, so it is left out and reported once.
        """
        try:
            lines = self._disk.read(REMOVED).decode("ascii", "replace").splitlines()
        except FileNotFoundError:
            return set()
        checksums = set(filter(SHA256.fullmatch, lines))
        damaged = [line for line in lines if line not in checksums]
        if damaged and damaged != self._damaged:
            log.warning(
                "%s: damaged lines: %d of %d, the first is %r; segments that they "
                "named may come back",
                REMOVED,
                len(damaged),
                len(lines),
                damaged[0][:80],
            )
        self._damaged = damaged
        return checksums

    def write_removed(self, sha256: set[str]) -> None:
        """Replace the list of removed segments; the disk is `changing`."""
        text = "".join(f"{checksum}\n" for checksum in sorted(sha256))
        self._disk.replace(REMOVED, text.encode())

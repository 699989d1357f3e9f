"""Audit of a session: compares its list with its folder and with the records of replica_log.py.

    SHA256SUMS          the expected checksum of each segment
    .copies             the same, written when each segment was published or verified
    CAR/DAY/SESSION/    the files themselves

One of the three may be damaged: a line that does not parse, a flipped bit in a name or a checksum,
a list that was cut or deleted. If the bytes of a file prove its original line, the list is mended,
and the damaged one is kept in .bad. Everything else stays unchanged, and is reported by each
`fpvstation verify`.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from fpvcar.recordings import names
from fpvstation.store.disk import Disk
from fpvstation.store.manifest import Manifest
from fpvstation.store.replica_log import COPIES, EVICTED, HERE, SUFFIX, ReplicaLog
from fpvstation.store.sums_file import SUMS_FILE, Listing, StoredSegment, text_of

BAD = ".bad"
NEAR = 4
"""Texts that differ in so few characters are one text with flipped bits. Checksums of different
bytes differ in 60 of 64."""
BY_RECORD = "mended: the file matches its record in .copies"
BY_FILE = "mended: the file matches a damaged line"
BY_LINE = "mended: the file matches its line"
OFF = f"removed from the list; the old list is in {BAD}"
KEPT = "not changed"
UNLISTED = "not changed; a running station lists it if its car still has it"
AGAIN = "fetched again if its car or a remote has it"
Sums = dict[str, set[str]]
"""Type of checksums by file name."""


class Finding(NamedTuple):
    """Fault of a session, and the action taken."""

    path: str
    fault: str
    done: str


class Audit:
    """Audit of the lists of one store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk, manifest: Manifest, replicas: ReplicaLog) -> None:
        self._disk, self._manifest, self._replicas = disk, manifest, replicas

    def run(self, session: str) -> list[Finding]:
        """Return the faults of a session's list; mend those that can be mended. Files are read
        only where list, record and folder disagree."""
        findings = list[Finding]()
        if not self._replicas.readable(session):
            findings.append(
                Finding(
                    f"{COPIES}/{session}{SUFFIX}",
                    "cannot be decoded",
                    "its copies are verified again",
                )
            )
        if self._case(session).suspect():
            with self._disk.changing():
                findings += self._case(session).run()
        return findings

    def save_list(self, session: str) -> None:
        """Keep a copy of a damaged list in .bad."""
        _save(self._disk, session, self._manifest.text(session))

    def _case(self, session: str) -> "_Case":
        return _Case(session, self._disk, self._manifest, self._replicas)


class _Case:
    """Session with its list, its records and its folder."""

    def __init__(self, session: str, disk: Disk, manifest: Manifest, replicas: ReplicaLog) -> None:
        self._session, self._disk = session, disk
        self._manifest, self._replicas = manifest, replicas
        self._text = manifest.text(session)
        self._listing = manifest.listing(session)
        self._claims = by_name(self._listing)
        self._records, self._own = records_of(session, manifest, replicas)
        self._files = set(files_of(disk, session))
        self._lines: Sums = {}
        self._proved: dict[str, str] = {}
        """Segments whose line agrees with the file, among those checked so far."""
        self._findings = list[Finding]()

    def suspect(self) -> bool:
        """Return True if list, records and folder disagree."""
        claims = self._claims
        return bool(
            self._listing.damaged
            or (self._files | self._own.keys()) ^ claims.keys()
            or any(len(sums) > 1 for sums in claims.values())
            or any(self._records.get(name, sums) != sums for name, sums in claims.items())
        )

    def run(self) -> list[Finding]:
        """Check each name, then the remaining lines; the disk is `changing`."""
        for name in sorted(self._files):
            self._file(name)
        for name in sorted(self._claims.keys() - self._files):
            self._no_file(name, self._claims[name])
        for name in sorted(self._own.keys() - self._files - self._claims.keys()):
            self._no_line(name, self._own[name])
        self._write(self._damaged())
        return self._findings

    def _file(self, name: str) -> None:
        claims = self._claims.get(name, set())
        records = self._records.get(name, set())
        if len(claims) == 1 and records in (set(), claims):  # Store.verify_segment reads it
            self._lines[name], (self._proved[name],) = claims, claims
            return
        try:
            sha256 = self._disk.sha256(f"{self._session}/{name}")
        except OSError:  # Store.verify_segment reports the reason
            sha256 = ""
        done = self._proof(name, sha256)
        if done:
            self._lines[name], self._proved[name] = {sha256}, sha256
            self._report_file(name, sha256, done)
        elif claims or records:  # Store.verify_segment sets it aside
            self._lines[name] = (claims & records) or records or claims
        else:
            self._report(name, "no line and no record has its name", UNLISTED)

    def _proof(self, name: str, sha256: str) -> str:
        """Return the proof that a file with this checksum is right, or ""."""
        if sha256 in self._records.get(name, set()):
            return BY_RECORD
        if sha256 in self._claims.get(name, set()):
            return BY_LINE
        line = text_of([StoredSegment(name, sha256)]).rstrip()
        claimed = {text for sums in self._claims.values() for text in sums}
        proved = sha256 and (
            sha256.encode() in self._text
            or any(near(line, text) for text in self._listing.damaged)
            or any(near(sha256, text) for text in claimed)
        )
        return BY_FILE if proved else ""

    def _report_file(self, name: str, sha256: str, done: str) -> None:
        claims = self._claims.get(name, set())
        if not claims:
            self._report(name, "its line is missing", done)
        elif claims != {sha256}:
            claimed = ", ".join(f"{claim[:16]}..." for claim in sorted(claims - {sha256}))
            self._report(name, f"its line has {claimed}", done)
        records = self._records.get(name, set()) - {sha256}
        if records:
            self._report(name, "its record in .copies is damaged", done)
            self._mend_records(name, sha256)

    def _no_file(self, name: str, claims: set[str]) -> None:
        proved = set(self._proved.values())
        elsewhere = {
            claim
            for claim in claims
            if claim != self._own.get(name) and any(near(claim, sha256) for sha256 in proved)
        }
        if elsewhere:
            self._report(name, "a line gives it the checksum of another segment", OFF)
        if claims - elsewhere:  # Store.verify_segment reports it as gone
            self._lines[name] = claims - elsewhere

    def _no_line(self, name: str, sha256: str) -> None:
        if sha256 in self._proved.values():
            self._forget(name)
        else:
            self._report(name, "file and line are missing", AGAIN)

    def _damaged(self) -> list[bytes]:
        """Return the damaged lines to keep: no segment explains them."""
        unexplained = []
        for line in self._listing.damaged:
            explained = any(
                name.encode() in line
                or sha256.encode() in line
                or near(line, text_of([StoredSegment(name, sha256)]).rstrip()[: len(line)])
                for name, sha256 in self._proved.items()
            )
            if not explained:
                unexplained.append(line)
            self._report(
                SUMS_FILE, f"a line does not parse: {line[:160]!r}", OFF if explained else KEPT
            )
        return unexplained

    def _write(self, damaged: list[bytes]) -> None:
        lines = [
            StoredSegment(f"{self._session}/{name}", sha256)
            for name, sums in self._lines.items()
            for sha256 in sums
        ]
        before = self._listing
        if (sorted(lines), damaged) == (sorted(before.lines), before.damaged):
            return
        _save(self._disk, self._session, self._text)
        self._manifest.write(self._session, lines, damaged)

    def _mend_records(self, name: str, sha256: str) -> None:
        """Correct the store's own record; a remote's replica has to be verified again."""
        records = self._replicas.of(self._session)
        for place, replica in records.items():
            if replica.segments.get(name, sha256) != sha256:
                replica.segments.pop(name)
                if place == HERE:
                    replica.segments[name] = sha256
        self._replicas.write(self._session, records)

    def _forget(self, name: str) -> None:
        records = self._replicas.of(self._session)
        records[HERE].segments.pop(name, None)
        self._replicas.write(self._session, records)

    def _report(self, name: str, fault: str, done: str) -> None:
        self._findings.append(Finding(f"{self._session}/{name}", fault, done))


def _save(disk: Disk, session: str, text: bytes) -> None:
    if text:
        version = hashlib.sha256(text).hexdigest()[:8]
        disk.replace(f"{BAD}/{session}/{SUMS_FILE}.{version}", text)


def records_of(
    session: str, manifest: Manifest, replicas: ReplicaLog
) -> tuple[Sums, Mapping[str, str]]:
    """Return the records of all places, and this store's own, without segments that were removed
    or evicted."""
    places = replicas.of(session)
    evicted = places.pop(EVICTED, None)
    gone = manifest.removed() if places else set[str]()
    gone |= set(evicted.segments.values() if evicted else ())
    sums: Sums = {}
    own: dict[str, str] = {}
    for place, replica in places.items():
        for name, sha256 in replica.segments.items():
            if sha256 not in gone:
                sums.setdefault(name, set()).add(sha256)
                if place == HERE:
                    own[name] = sha256
    return sums, own


def near(first: str | bytes, second: str | bytes) -> bool:
    """Return True if two texts are one text with a few flipped bits."""
    if len(first) != len(second):
        return False
    differing = sum(a != b for a, b in zip(first, second, strict=True))
    return differing <= min(NEAR, len(first) // 8)


def by_name(listing: Listing) -> Sums:
    """Return the checksums that a list has for each file name."""
    sums: Sums = {}
    for path, sha256 in listing.lines:
        sums.setdefault(path.rpartition("/")[2], set()).add(sha256)
    return sums


def files_of(disk: Disk, session: str) -> list[str]:
    """Return the names of the segments in a session's folder."""
    return [
        name
        for name in disk.names(session)
        if (parsed := names.parse(name)) and parsed.suffix == names.SEALED
    ]

"""Replica in a bucket of an S3 server.

    PREFIX/.fpvstation.json                  marker of the store, created if absent
    PREFIX/CAR/DAY/SESSION/...               segments and SHA256SUMS, as in the store
    .incoming/office/PLACE/...               incoming files until they are verified

The server verifies each upload by its SHA-256, and publishes each file as a whole, on the condition
that no other writer has put a file there (If-None-Match, If-Match). A file above PART bytes is sent
in parts: a cut repeats a part, and a killed station continues with the parts that the server has.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from fpvcar.recordings import names
from fpvcar.runtime.texts import FILE_MISSING, SAYS, Phrase
from fpvstation.replicas.remote import (
    BAD_DISK,
    OTHER_STORE,
    CopyProgress,
    OnFile,
    OnProgress,
    PlaceFault,
    damaged_here,
    quiet,
)
from fpvstation.replicas.s3_bucket import Bucket, BucketFile
from fpvstation.replicas.s3_server import FileMissing, ServerFeatures
from fpvstation.replicas.s3_upload import Upload
from fpvstation.settings import BUCKET_SCHEME
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER
from fpvstation.store.store import INCOMING
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, stored_in, text_of

BUCKET_MARKER = Phrase(
    "bucket_marker",
    "{place}: {marker} is missing there: correct `target`; if the bucket was emptied, copy "
    "the store's there",
)

PART, PARTS_MOST, PARTS_AT_ONCE = 16 << 20, 10_000, 2
"""Bytes of a request, at least a minute of a car: a server takes a file in one request in half
the time. The limit of S3 for their number, and the number of those in transfer."""


class S3:
    """Remote and Archive in a bucket."""

    def __init__(self, target: str, root: Path, incoming: str = "office") -> None:
        """Set the target, s3://BUCKET/PREFIX. `root`: of this store. `incoming`: name of the
        folder for incoming files; each process has its own."""
        self.place, self._root = target, root
        self._name, _, prefix = target.removeprefix(BUCKET_SCHEME).partition("/")
        self._prefix = prefix.rstrip("/") + "/" if prefix else ""
        self._deletes = incoming == "archive"
        key = hashlib.sha256(f"{incoming}\n{target}".encode()).hexdigest()[:8]
        self._incoming = f"{INCOMING}/{incoming}/{key}"
        self._server = ServerFeatures()
        self._bucket = self._new()
        self._uploaded = dict[str, str | None]()
        """ETag of each upload that the server verified and `check` has not seen, by path."""

    async def claim(self, store: str, known: bool) -> None:
        """Compare the store's marker with its replica in the bucket. Raises PlaceFault,
        OSError."""
        bucket, content = self._open(), (self._root / MARKER).read_bytes()
        if not known:
            await bucket.write(MARKER, content, None)
            if self._deletes:  # the right, before anything depends on it
                await bucket.remove([f"{MARKER}.none"])
        replica = await bucket.read(MARKER)
        if replica is None:
            raise PlaceFault(BUCKET_MARKER(place=self.place, marker=MARKER))
        if replica != content:
            raise PlaceFault(OTHER_STORE(place=self.place, store=store))

    async def send(
        self, session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress = quiet
    ) -> None:
        """Upload the missing files of a session. Raises PlaceFault, OSError."""
        bucket, sums, sums_path = self._open(), text_of(listed), f"{session}/{SUMS_FILE}"
        present = await bucket.files(session)
        sizes = [(self._root / segment.path).stat().st_size for segment in listed]
        moved, done, total = 0, 0, sum(sizes) + len(sums)
        for segment, size in zip(listed, sizes, strict=True):
            old = present.get(segment.path)
            same = old is not None and old.size == size
            if not same or (anew and not await _is_right(bucket, segment)):
                begun = moved
                async for sent in self._upload(bucket, segment, size, old):
                    moved += sent
                    on_progress(CopyProgress(moved, done + moved - begun, total))
            done += size
            on_progress(CopyProgress(moved, done, total))
        if await bucket.read(sums_path) != sums:
            await bucket.write(sums_path, sums, present.get(sums_path))
            moved += len(sums)
        on_progress(CopyProgress(moved, total, total))

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Read the replica back, and return the bad or absent names. A file that the server has
        verified in the upload before is compared by its ETag. Raises PlaceFault."""
        bucket = self._open()
        present, bad = await bucket.files(session), []
        for segment in listed:
            etag, file = self._uploaded.pop(segment.path, None), present.get(segment.path)
            fresh = file is not None and file.etag != "" and file.etag == etag
            # The list of a server may omit a file that it has.
            if not (fresh or await _is_right(bucket, segment)):
                bad.append(segment.path.rpartition("/")[2])
        return bad

    async def fetch(self, session: str, on_progress: OnProgress = quiet) -> Mapping[str, str]:
        """Download a session; return the local path of each file. A retry resumes with the bytes
        that arrived. Raises PlaceFault, OSError."""
        bucket = self._open()
        present = await bucket.files(session)
        listed = stored_in(session, await bucket.read(f"{session}/{SUMS_FILE}") or b"")
        wanted = {segment.path for segment in listed}
        wanted |= {path for path in present if _is_own(path)}
        paths = await self._fetch(session, sorted(wanted), present, on_progress)
        if not paths:
            missing = FILE_MISSING(name=session)
            raise PlaceFault(SAYS(place=self.place, reason=missing))
        return paths

    async def _fetch(
        self,
        session: str,
        wanted: Sequence[str],
        present: Mapping[str, BucketFile],
        on_progress: OnProgress,
        on_file: OnFile = lambda path: None,
    ) -> dict[str, str]:
        """Download these files, also those that the server's list omits."""
        bucket, into, moved, done = self._open(), f"{self._incoming}/{session}", 0, 0
        paths = dict[str, str]()
        total = sum(present[path].size for path in wanted if path in present)
        await asyncio.to_thread((self._root / into).mkdir, parents=True, exist_ok=True)
        for path in wanted:
            name, file = path.rpartition("/")[2], present.get(path)
            target = self._root / into / name
            offset = target.stat().st_size if target.exists() else 0
            if file is None or offset > file.size:
                target.unlink(missing_ok=True)
                offset = 0
            done += offset
            with contextlib.suppress(FileMissing):
                with target.open("ab") as out:
                    if file is None or offset < file.size:
                        async for chunk in bucket.chunks(path, offset):
                            await asyncio.to_thread(out.write, chunk)
                            moved, done = moved + len(chunk), done + len(chunk)
                            on_progress(CopyProgress(moved, done, max(done, total)))
                paths[name] = f"{into}/{name}"
            if name not in paths:
                target.unlink()
                continue
            await asyncio.to_thread(on_file, paths[name])
        if not paths:
            await asyncio.to_thread(Folder(self._root).prune, into)
        return paths

    # Archive of tiers.py

    def link(self, session: str) -> str:
        """Return "": the files of a bucket have no path here."""
        return ""

    async def put(
        self, session: str, listed: list[StoredSegment], on_progress: OnProgress = quiet
    ) -> None:
        """Upload a session, and verify it there. Raises PlaceFault, OSError."""
        await self.send(session, listed, False, on_progress)
        if await self.check(session, listed):
            await self.send(session, listed, True, on_progress)
            if bad := await self.check(session, listed):
                raise PlaceFault(BAD_DISK(place=self.place, path=f"{session}/{bad[0]}"))

    async def fetch_segments(
        self, session: str, listed: list[StoredSegment], on_progress: OnProgress, on_file: OnFile
    ) -> Mapping[str, str]:
        """Download the segments that are there; return their local paths. Raises PlaceFault,
        OSError."""
        present = await self._open().files(session)
        wanted = [segment.path for segment in listed]
        return await self._fetch(session, wanted, present, on_progress, on_file)

    async def sums(self, session: str) -> bytes:
        """Return the list of a session there; b"" if it is missing. Raises PlaceFault."""
        return await self._open().read(f"{session}/{SUMS_FILE}") or b""

    async def remove(self, session: str, names: list[str], last: bool) -> None:
        """Delete segments that are right in the store again. Raises PlaceFault."""
        gone = [*names, *([SUMS_FILE] * last)]
        await self._open().remove([f"{session}/{name}" for name in gone])

    def _new(self) -> Bucket:
        return Bucket(self.place, self._name, self._prefix, self._server)

    def _open(self) -> Bucket:
        """Return the bucket; after a fault its settings are read again."""
        if self._bucket.failed:
            self._bucket = self._new()
        return self._bucket

    async def _upload(
        self, bucket: Bucket, segment: StoredSegment, size: int, old: BucketFile | None
    ) -> AsyncIterator[int]:
        """Upload a segment that was read right; yield the bytes of each request."""
        part = max(PART, -(-size // PARTS_MOST))
        pieces = _pieces(self._root / segment.path, segment, part)
        if size <= part:
            data = b"".join([piece async for piece in pieces])
            sha256 = segment.sha256  # of these bytes: `_pieces` has compared it
            self._note(segment, await bucket.write(segment.path, data, old, sha256))
            yield size
            return
        upload, number, sending = Upload(bucket, segment.path), 0, set[asyncio.Task[int]]()
        await upload.open()
        try:
            async for piece in pieces:
                number += 1
                sending.add(asyncio.create_task(upload.part(number, piece)))
                if len(sending) == PARTS_AT_ONCE:
                    done, sending = await asyncio.wait(sending, return_when="FIRST_COMPLETED")
                    yield sum(task.result() for task in done)
            yield sum(await asyncio.gather(*sending))
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
        self._note(segment, await upload.complete(old))

    def _note(self, segment: StoredSegment, etag: str | None) -> None:
        """Note the ETag of an upload, if the server has verified its SHA-256."""
        if self._server.checksums:
            self._uploaded[segment.path] = etag


async def _pieces(file: Path, segment: StoredSegment, size: int) -> AsyncIterator[bytes]:
    """Yield the content of a segment in pieces of that size; the last one only if all are right.
    Raises PlaceFault, OSError."""
    sha256, last = hashlib.sha256(), b""
    with file.open("rb") as source:

        def read() -> bytes:
            piece = source.read(size)
            sha256.update(piece)
            return piece

        while piece := await asyncio.to_thread(read):
            if last:
                yield last
            last = piece
    if sha256.hexdigest() != segment.sha256:
        raise damaged_here(segment)
    yield last


def _is_own(path: str) -> bool:
    """Return True for a file that a session can have; consoles leave others."""
    name = path.rpartition("/")[2]
    return name == SUMS_FILE or name.endswith(names.SEALED)


async def _is_right(bucket: Bucket, segment: StoredSegment) -> bool:
    """Read a file of the bucket back, and compare its checksum."""
    sha256 = hashlib.sha256()
    try:
        async for chunk in bucket.chunks(segment.path):
            sha256.update(chunk)
    except FileMissing:
        return False
    return sha256.hexdigest() == segment.sha256

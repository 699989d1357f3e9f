"""Office: a second store, filled by `rdcp`: over RDMA if both ends have it, or over TCP.

.outgoing/PLACE/CAR/DAY/SESSION/...      links to the files to send, as rdcp merges trees
.incoming/office/PLACE/...               incoming files until they are verified
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec

from fpvcar.runtime import files
from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import NOT_INSTALLED, PROGRAM_EXIT, SAYS, Text
from fpvstation.replicas.remote import (
    OTHER_STORE,
    UNMOUNTED,
    CopyProgress,
    OnProgress,
    PlaceFault,
    quiet,
)
from fpvstation.store.identity import MARKER
from fpvstation.store.store import INCOMING
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, text_of

OUTGOING = ".outgoing"
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=20"
"""Options of ssh: no prompt for a password, as no terminal is attached."""
Line = TypeVar("Line")
LONGEST_S = 24 * 3600.0
LINES_MOST = 2000
"""Limit of the lines kept; a session has fewer files."""


class RdcpError(msgspec.Struct, frozen=True):
    """Error of rdcp, as printed with --json; see rdcp(1)."""

    path: str
    code: Literal["missing", "differs", "unlisted", "failed"]
    error: str


class CheckSummary(msgspec.Struct, frozen=True):
    """Last line of `rdcp --check --json`."""

    checked: int
    errors: int


class RdcpResult(NamedTuple):
    """Output of one rdcp run: faults, other lines, and the summary of a check."""

    status: int
    faults: list[RdcpError]
    lines: list[str]
    checked: CheckSummary | None = None


class Rdcp:
    """Office: a remote by rdcp, which verifies its transfers with its own checksums."""

    def __init__(
        self, target: str, root: Path, options: Sequence[str] = (), incoming: str = "office"
    ) -> None:
        """Set the target. `root`: of this store. `options`: additional options of rdcp.
        `incoming`: name of the folder for incoming files; each process has its own."""
        self.place, self._root = target, root
        self._incoming = f"{INCOMING}/{incoming}"
        self._argv = ["rdcp", "--ssh", SSH, "--json", *options]
        key = hashlib.sha256(f"{incoming}\n{target}".encode())
        self._key = key.hexdigest()[:8]

    async def claim(self, store: str, known: bool) -> None:
        """Compare the store's marker with its replica at the office. Raises PlaceFault,
        OSError."""
        copy = self._root / OUTGOING / f"{self._key}.marker"
        copy.parent.mkdir(exist_ok=True)
        copy.unlink(missing_ok=True)
        marker = f"{self.place.rstrip('/')}/{MARKER}"
        ended = await self._run(marker, str(copy))
        if not ended.status:
            content = copy.read_bytes()
            copy.unlink()
            if content != (self._root / MARKER).read_bytes():
                raise PlaceFault(OTHER_STORE(place=self.place, store=store))
            return
        if not any(fault.code == "missing" for fault in ended.faults):
            raise self._fault(ended)
        if known:
            raise PlaceFault(UNMOUNTED(place=self.place, marker=MARKER))
        ended = await self._run(str(self._root / MARKER), marker)
        if ended.status:
            raise self._fault(ended)

    async def send(
        self, session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress = quiet
    ) -> None:
        """Copy the missing files of a session to the office. Raises PlaceFault, OSError."""
        outgoing = self._root / OUTGOING / self._key
        await asyncio.to_thread(self._link, outgoing / session, listed)
        try:
            flags = ["--checksum"] if anew else []
            ended = await self._run(
                "-r", *flags, f"{outgoing}/.", self.place, on_progress=on_progress
            )
        finally:
            await asyncio.to_thread(shutil.rmtree, outgoing, ignore_errors=True)
        if ended.status:
            raise self._fault(ended)

    def _link(self, folder: Path, listed: list[StoredSegment]) -> None:
        shutil.rmtree(self._root / OUTGOING / self._key, ignore_errors=True)
        folder.mkdir(parents=True)
        for segment in listed:
            _link(self._root / segment.path, folder / segment.path.rpartition("/")[2])
        (folder / SUMS_FILE).write_bytes(text_of(listed))

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Verify the replica at the office; return the bad or absent names. Raises PlaceFault,
        OSError."""
        names = {segment.path.rpartition("/")[2] for segment in listed}
        manifest = self._root / OUTGOING / f"{self._key}.sums"
        manifest.parent.mkdir(exist_ok=True)
        await asyncio.to_thread(files.write_whole, manifest, [text_of(listed)])
        try:
            tree = f"{self.place.rstrip('/')}/{session}"
            ended = await self._run("--check", str(manifest), tree)
        finally:
            manifest.unlink(missing_ok=True)
        if not ended.status:
            return []
        faults = [fault for fault in ended.faults if fault.code != "unlisted"]
        if [(fault.path.endswith(session), fault.code) for fault in faults] == [(True, "missing")]:
            return sorted(names)  # the whole folder is missing, at an office that is reachable
        complete = ended.checked and ended.checked.errors == len(ended.faults)
        if not complete or any(fault.path not in names for fault in faults):
            raise self._fault(ended)
        return [fault.path for fault in faults]

    async def fetch(self, session: str, on_progress: OnProgress = quiet) -> Mapping[str, str]:
        """Copy a session from the office; return the local path of each file. Raises
        PlaceFault, OSError."""
        into = f"{self._incoming}/{self._key}/{session}"
        folder = self._root / into
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        tree = f"{self.place.rstrip('/')}/{session}/."
        ended = await self._run("-r", tree, str(folder), on_progress=on_progress)
        if ended.status:  # a retry resumes with the files that arrived
            raise self._fault(ended)
        return {
            file.name: f"{into}/{file.name}"
            for file in sorted(folder.iterdir())
            if file.is_file() and not file.is_symlink() and file.name[0] != "."
        }

    async def copy(self, source: Path, path: str, on_progress: OnProgress = quiet) -> None:
        """Copy a file to a path at the office. Raises PlaceFault, OSError."""
        target = f"{self.place.rstrip('/')}/{path}"
        ended = await self._run(str(source), target, on_progress=on_progress)
        if ended.status:
            raise self._fault(ended)

    async def _run(self, *arguments: str, on_progress: OnProgress = quiet) -> RdcpResult:
        """Run rdcp; `on_progress` gets its progress. Raises PlaceFault, OSError."""
        if shutil.which("rdcp") is None:
            command = "sudo apt install rdpipe"
            raise PlaceFault(NOT_INSTALLED(program="rdcp", command=command))
        process = await asyncio.create_subprocess_exec(
            *with_pdeathsig([*self._argv, *arguments]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr
        try:
            async with asyncio.timeout(LONGEST_S):
                output = await _read(process.stderr, on_progress)
                await process.wait()
        except TimeoutError:
            raise PlaceFault(
                Text("place_late", "{place}: rdcp timed out after a day", place=self.place)
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()  # rdcp then ends its processes on other machines
                await process.wait()
        return output._replace(status=process.returncode or 0)

    def _fault(self, ended: RdcpResult) -> PlaceFault:
        messages = [*(f"{error.path}: {error.error}" for error in ended.faults), *ended.lines]
        reason = PROGRAM_EXIT(program="rdcp", status=ended.status)
        if messages:
            reason = SAYS(place=reason, reason=messages[-1][:300])
        return PlaceFault(SAYS(place=self.place, reason=reason))


async def _read(stream: asyncio.StreamReader, on_progress: OnProgress) -> RdcpResult:
    """Read the lines of rdcp to their end; `on_progress` gets its progress."""
    faults = deque[RdcpError](maxlen=LINES_MOST)
    lines = deque[str](maxlen=LINES_MOST)
    checked: CheckSummary | None = None
    async for line in stream:
        if not line.startswith(b"{"):
            lines.append(line.decode(errors="replace").rstrip("\n"))
            continue
        if progress := _decoded(line, CopyProgress):
            on_progress(progress)
        elif fault := _decoded(line, RdcpError):
            faults.append(fault)
        else:
            checked = _decoded(line, CheckSummary) or checked
    return RdcpResult(0, list(faults), list(lines), checked)


def _decoded(line: bytes, kind: type[Line]) -> Line | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as fault:  # a file system without hard links
        if fault.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
            raise
        shutil.copy2(source, target)

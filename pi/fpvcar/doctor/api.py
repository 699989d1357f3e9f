"""POST /api/doctor: list of the car's faults, in the JSON format of `fpvcar doctor --json`.

Grown-ups only, and only while the car stands still. The check runs in its own process: a card or a
bus that hangs blocks only that process, and its memory is freed. Concurrent requests share one
check and its answer.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.doctor.report import STATUSES
from fpvcar.drive.control import Control
from fpvcar.http.responses import CAR_MOVES, JSON, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import OBJECT, answers
from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import PROGRAM_EXIT, PROGRAM_SILENT, VERBATIM, Text, fault_text
from fpvcar.seat.feature import Core, Feature

WITHIN_S = 60.0


def feature(core: Core) -> Feature:
    """Return the route of the check for faults."""
    return Feature(name="doctor", routes=DoctorApi(core.doctor, core.rights, core.control).add_to)


class DoctorApi:
    """Route of the doctor, open while the car stands still."""

    def __init__(
        self,
        argv: Sequence[str],
        rights: RecordingRights,
        control: Control,
        within_s: float = WITHIN_S,
    ) -> None:
        """Create the route; `argv` is the command line that prints the list."""
        self._argv, self._rights, self._control = with_pdeathsig(argv), rights, control
        self._within_s = within_s
        self._check: asyncio.Task[bytes] | None = None

    def add_to(self, app: web.Application) -> None:
        """Add the route; call this before adding a catch-all route."""
        app.router.add_post("/api/doctor", self._run)

    @answers(Right.GROWN_UP, OBJECT)
    async def _run(self, request: web.Request) -> web.Response:
        """Look for faults, for up to half a minute."""
        if any(self._control.duties):
            raise refused(web.HTTPConflict, CAR_MOVES)
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self._report())
        return web.Response(body=await asyncio.shield(self._check), headers=JSON)

    async def _report(self) -> bytes:
        """Return the output of the process. Raises HTTPServiceUnavailable."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
            )
        except OSError as fault:
            raise _failed(fault_text(fault)) from None
        try:
            async with asyncio.timeout(self._within_s):
                out, err = await process.communicate()
        except TimeoutError:
            raise _failed(PROGRAM_SILENT(program="doctor")) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode not in STATUSES.values():
            last = err.decode(errors="replace").strip().splitlines()[-1:]
            ended = PROGRAM_EXIT(program="doctor", status=process.returncode)
            raise _failed(VERBATIM(text=" ".join(last)) if last else ended)
        return out


def _failed(reason: Text) -> web.HTTPException:
    return refused(
        web.HTTPServiceUnavailable,
        Text(
            "check_failed", "The check failed: {reason}. By hand: sudo fpvcar doctor", reason=reason
        ),
    )

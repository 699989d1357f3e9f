"""Route of queries over HTTP, for scripts and agents.

    POST /api/query?rows=1000     SQL -> {"columns": [...], "rows": [[...], ...], "more": false}

A process of its own runs `fpvstation query --json`, so that the station answers other requests. A
query that needs too long, too much memory or too many rows ends with that process.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

from aiohttp import web

from fpvcar.access.rights import RecordingRights
from fpvcar.http.responses import JSON, failed, number_of, refused
from fpvcar.runtime.texts import PROGRAM_EXIT, Phrase, text_of_line
from fpvcar.runtime.units import MB
from fpvstation.errors import StationError

SEARCHES_BUSY = Phrase("searches_busy", "{most} searches are in progress: try again in a minute.")

ROWS, ROWS_MOST = 1000, 100_000
BYTES_MOST = 16 * MB
MEMORY_MB = 192
QUERY_S = 30.0
SQL_MOST = 32 * 1024
AT_ONCE = 8
"""Queries in progress: one runs, the others wait."""
READ_BYTES = 1 << 16


class QueryApi:
    """Queries of the page's clients over one store."""

    def __init__(self, rights: RecordingRights, root: Path) -> None:
        self._rights, self._root = rights, root
        self._turn, self._asked = asyncio.Lock(), 0

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a query. Raises HTTPException."""
        self._rights.let_in(request)
        rows = int(number_of(request, "rows", ROWS, 1, ROWS_MOST))
        sql = await request.read()
        if len(sql) > SQL_MOST:
            raise web.HTTPRequestEntityTooLarge(
                SQL_MOST, len(sql), text=f"{len(sql)} bytes of SQL refused: expected {SQL_MOST}.\n"
            )
        return web.Response(body=await self.run(sql, rows), headers=JSON)

    async def run(self, sql: bytes, rows: int) -> bytes:
        """Return the result of a query as JSON, after the queries before it. Raises
        HTTPException."""
        if self._asked >= AT_ONCE:
            raise refused(web.HTTPServiceUnavailable, SEARCHES_BUSY(most=AT_ONCE))
        self._asked += 1
        try:
            async with self._turn:
                return await self._run(sql, rows)
        finally:
            self._asked -= 1

    async def _run(self, sql: bytes, rows: int) -> bytes:
        limits = [f"--rows={rows}", f"--memory={MEMORY_MB}", "--threads=1"]
        process = await asyncio.create_subprocess_exec(
            *("nice", "-n", "10", sys.executable, "-P", "-m", "fpvstation", "query", "-", "--json"),
            *limits,
            f"--store={self._root}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(QUERY_S):
                body, errors = await _exchange(process, sql)
                status = await process.wait()
        except TimeoutError:
            raise web.HTTPRequestTimeout(
                text=f"The query took more than {QUERY_S:g} s: read fewer months or columns, "
                "or run fpvstation query on the station.\n"
            ) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if len(body) > BYTES_MOST:
            raise web.HTTPRequestEntityTooLarge(
                BYTES_MOST,
                len(body),
                text=f"The result exceeds {BYTES_MOST / MB:.0f} MB: read fewer rows or columns.\n",
            )
        if status:
            text = errors.decode(errors="replace").partition("fpvstation: ")[2].strip()
            ended = PROGRAM_EXIT(program="fpvstation query", status=status)
            raise failed(web.HTTPBadRequest, StationError(text_of_line(text) if text else ended))
        return body


async def _exchange(process: asyncio.subprocess.Process, sql: bytes) -> tuple[bytes, bytes]:
    """Send the query; return both outputs, and end early if the result is too large."""
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(sql)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.drain()
    process.stdin.close()
    errors = asyncio.create_task(process.stderr.read())
    body = bytearray()
    try:
        while data := await process.stdout.read(READ_BYTES):
            body += data
            if len(body) > BYTES_MOST:
                process.kill()
                break
        return bytes(body), await errors
    finally:
        errors.cancel()

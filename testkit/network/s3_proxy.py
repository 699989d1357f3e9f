"""HTTP proxy before an S3 server, which refuses requests, and cuts, delays and damages bodies."""

import asyncio
import datetime
import re
from collections.abc import AsyncIterator, Callable
from types import TracebackType

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

PIECE = 256 * 1024
DATE = "%Y%m%dT%H%M%SZ"
HOP = ("connection", "transfer-encoding", "keep-alive")


class S3Proxy:
    """Proxy on 127.0.0.1 before `target`, another port there. Without set faults it is
    transparent."""

    def __init__(self, target: int) -> None:
        self._target, self.port = target, 0
        self.requests = list[str]()
        """Method and path with query of each request."""
        self.checksums = dict[str, str]()
        """SHA-256 in the header of each upload, in base 64, by the path with query."""
        self.reset()

    def reset(self) -> None:
        """End all faults of the proxy."""
        self.refusals = list[tuple[int, str]]()
        """Status and code of the next answers; the server does not see these requests."""
        self.refused = ""
        """Method of the refused requests; "" for all."""
        self.truncations = 0
        """Number of the next answers to GET that are cut in their middle."""
        self.truncated_least = 2
        """Size of the smallest answer that is cut, in bytes."""
        self.flips = 0
        """Number of the next uploads in which a bit flips."""
        self.delay_s = 0.0
        """Pause after each piece of a body, in both directions."""
        self.shift_s = 0.0
        """Shift of the date in requests: the client's clock is wrong by that."""
        self.upload_hook: Callable[[], None] = lambda: None
        """Called in the middle of each upload."""
        self.denied = set[str]()
        """Methods that these keys may not use."""
        self.unsupported = dict[str, tuple[int, str]]()
        """Headers of uploads that the server does not have, with status and code."""
        self.omitted = ""
        """Name of a file that lists omit."""
        self.absent = ""
        """Name of a file that no GET finds."""
        self.halved = ""
        """Name of a file of which each GET has the first half only, with that length."""

    async def __aenter__(self) -> "S3Proxy":
        self._session = aiohttp.ClientSession(auto_decompress=False)
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def uploads(self) -> list[str]:
        """Return the path with query of each upload."""
        return [line.removeprefix("PUT ") for line in self.requests if line.startswith("PUT ")]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.raw_path}")
        if checksum := request.headers.get("x-amz-checksum-sha256"):
            self.checksums[request.raw_path] = checksum
        if self.refusals and self.refused in ("", request.method):
            status, code = self.refusals.pop(0)
            async for _ in request.content.iter_any():
                pass
            return _refused(status, code)
        if refusal := self._permanent_refusal(request):
            async for _ in request.content.iter_any():
                pass
            return _refused(*refusal)
        headers = CIMultiDict(request.headers)
        for name in HOP:
            headers.popall(name, None)
        if self.shift_s:
            date = datetime.datetime.strptime(headers["x-amz-date"], DATE)
            shifted = date + datetime.timedelta(seconds=self.shift_s)
            headers["x-amz-date"] = shifted.strftime(DATE)
        try:
            return await self._forward(request, headers)
        except (aiohttp.ClientError, ConnectionError):
            if request.transport:
                request.transport.abort()
            raise asyncio.CancelledError from None

    async def _forward(
        self, request: web.BaseRequest, headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        url = URL(f"http://127.0.0.1:{self._target}{request.raw_path}", encoded=True)
        upload = self._upload(request) if request.can_read_body else None
        async with self._session.request(
            request.method, url, headers=headers, data=upload, skip_auto_headers=("User-Agent",)
        ) as answer:
            kept = {name: text for name, text in answer.headers.items() if name.lower() not in HOP}
            if request.method == "GET" and self._lies_about(request):
                kept.pop("Content-Length", None)
                body = self._bent(request, await answer.read())
                return web.Response(status=answer.status, headers=kept, body=body)
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            size, passed = int(answer.headers.get("Content-Length", 0)), 0
            long = request.method == "GET" and size >= self.truncated_least
            cut = long and self.truncations > 0
            self.truncations -= cut
            async for piece in answer.content.iter_chunked(PIECE):
                if cut and passed + len(piece) > size // 2:
                    await response.write(piece[: size // 2 - passed])
                    assert request.transport
                    request.transport.close()
                    break
                await response.write(piece)
                passed += len(piece)
                await asyncio.sleep(self.delay_s)
            else:
                await response.write_eof()
            return response

    def _permanent_refusal(self, request: web.BaseRequest) -> tuple[int, str, str] | None:
        if request.method in self.denied:
            return 403, "AccessDenied", "no"
        if self.absent and request.method == "GET" and request.path.endswith(self.absent):
            return 404, "NoSuchKey", "no"
        for header, (status, code) in self.unsupported.items():
            if request.method in ("PUT", "POST") and header in request.headers:
                return status, code, f"Unsupported header '{header}'"
        return None

    def _lies_about(self, request: web.BaseRequest) -> bool:
        """Return True if the answer to this request is not the server's own."""
        listing = bool(self.omitted) and "list-type" in request.query
        return listing or bool(self.halved and request.path.endswith(self.halved))

    def _bent(self, request: web.BaseRequest, body: bytes) -> bytes:
        if "list-type" in request.query:
            entry = rb"<Contents>(?:(?!</Contents>).)*%s.*?</Contents>" % self.omitted.encode()
            return re.sub(entry, b"", body, flags=re.DOTALL)
        return body[: len(body) // 2]

    async def _upload(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        size, passed, hooked = request.content_length or 0, 0, False
        async for piece in request.content.iter_chunked(PIECE):
            if self.flips and not passed:
                self.flips -= 1
                piece = bytes([piece[0] ^ 1]) + piece[1:]
            passed += len(piece)
            if not hooked and 2 * passed >= size:
                hooked = True
                self.upload_hook()
            yield piece
            await asyncio.sleep(self.delay_s)


def _refused(status: int, code: str, reason: str = "no") -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>{reason}</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")

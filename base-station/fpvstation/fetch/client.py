"""HTTP client of a car by the protocol of wire/station.py: signed requests, pinned certificate."""

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from fpvcar.http.pages import PROBLEM
from fpvcar.http.responses import Problem
from fpvcar.library.checksums import start_of
from fpvcar.runtime.texts import SAYS, VERBATIM, Phrase, Text, fault_text, os_reason
from fpvcar.runtime.units import MB, MIB
from fpvcar.wire import station as wire
from fpvcar.wire.station import Certificate, Listing, Pairing, Sums
from fpvstation.errors import StationError
from fpvstation.fetch.cars import Car
from fpvstation.fetch.pull import CarFault, SegmentGone, invalid

STATION_BETWEEN = Phrase(
    "station_between",
    "{url}: its certificate has changed ({fingerprint}...); {car} signs {own}...: a machine "
    "in the middle",
)
STATION_UNPROVED = Phrase(
    "station_unproved",
    "{url}: its certificate has changed ({fingerprint}...); no proof that it is {car}: {reason}",
)
STATION_UNSIGNED = Phrase("station_unsigned", "{url}: answer refused: this car did not sign it")

LATE = Phrase("station_late", "{url}: no answer in time")

CONNECT_S, SILENT_S, WHOLE_S = 10.0, 20.0, 60.0
LIVE_S = 5.0
SUMS_S = 300.0
"""A car without a cached checksum first reads the file, slowly while it is driven."""
PIECE_S = 300.0
"""Time-out for one MiB, however slowly it arrives."""
ATTEMPTS = 5
"""Attempts with a new nonce: a process has several clients, and each may take the same number."""
ANSWER_MOST, REFUSAL_MOST, TEXT_MOST = 4 * MB, 4000, 200
FORM = re.compile("[0-9a-f]{16,64}")
NUMBER = re.compile("[0-9]{1,16}")
T = TypeVar("T")


class CertificateChanged(CarFault):
    """Raised when the certificate differs: another machine answers, or the car has a new one.
    `certificate_of` finds out."""


async def fingerprint_of(url: str) -> str:
    """Return the SHA-256 of a car's certificate, in hex; "" for http. Raises CarFault."""
    address = urlsplit(url)
    if address.scheme != "https":
        return ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context)
    except OSError as fault:
        late = not fault.errno
        text = LATE(url=url) if late else SAYS(place=url, reason=fault_text(fault))
        raise CarFault(text) from None
    try:
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return hashlib.sha256(certificate).hexdigest()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def pair(url: str, fingerprint: str, code: str, name: str) -> Pairing:
    """Pair with a car. Raises StationError, CarFault."""
    headers = {wire.CODE: code, wire.NAME: name}
    async with session(url, fingerprint) as client, _faults(url):
        async with client.post(
            wire.BASE + "/pair", headers=headers, allow_redirects=False
        ) as answer:
            body = await _read(answer)
            if answer.status != 200:
                reason = _refusal(answer, body) or VERBATIM(text=answer.status)
                raise StationError(SAYS(place=url, reason=reason))
    pairing = _decoded(body, Pairing)
    well_formed = all(map(FORM.fullmatch, (pairing.id, pairing.station, pairing.key)))
    if not well_formed or not re.fullmatch("[A-Za-z0-9-]{1,24}", pairing.car):
        raise CarFault(f"{url}: the answer is not from a car")
    return pairing


async def certificate_of(car: Car) -> str:
    """Return the fingerprint of a car's new certificate; a car makes one for each new name or
    address.

    The car signs its own fingerprint with the key of the pairing. A machine in the middle that
    forwards the answer shows another certificate. Raises CarFault unless this car is proved.
    """
    presented = await fingerprint_of(car.url)
    values = {"url": car.url, "fingerprint": presented[:16], "car": car.name}
    try:
        async with session(car.url, presented) as client:
            own = await HttpCar(car, client).certificate()
    except CarFault as fault:
        raise CarFault(STATION_UNPROVED(**values, reason=fault_text(fault))) from None
    if own != presented:
        raise CarFault(STATION_BETWEEN(**values, own=own[:16]))
    return presented


def session(url: str, fingerprint: str) -> aiohttp.ClientSession:
    """Open a session with one car; any certificate other than the pinned one is refused."""
    pinned = aiohttp.Fingerprint(bytes.fromhex(fingerprint)) if fingerprint else True
    return aiohttp.ClientSession(
        url,
        connector=aiohttp.TCPConnector(ssl=pinned, limit=2),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENT_S),
        headers={"Accept": f"{PROBLEM}, */*"},
        auto_decompress=False,
        read_bufsize=MIB,
    )


class HttpCar:
    """RemoteCar over HTTP, with signed requests."""

    def __init__(self, car: Car, client: aiohttp.ClientSession) -> None:
        self._car, self._client = car, client
        self._key = bytes.fromhex(car.key)
        self._last_number = 0
        """Greatest nonce number that was sent or that the car has received."""

    async def listing(self, after: str, everything: bool) -> Listing:
        """Return the list of segments. Raises CarFault."""
        query = f"?after={quote(after)}" + ("&all=1" if everything else "")
        with _station_support(self._car.url):
            return await self._signed(f"/segments{query}", Listing, WHOLE_S)

    async def sums(self, name: str) -> Sums:
        """Return the checksums of a segment. Raises CarFault, SegmentGone."""
        return await self._signed(f"/sums/{name}", Sums, SUMS_S)

    async def pieces(
        self, name: str, sums: Sums, first: int, last: int
    ) -> AsyncGenerator[bytes, None]:
        """Yield the pieces `first` to `last` by one request. Raises CarFault, SegmentGone."""
        begin, end = start_of(first), min(start_of(last + 1), sums.size)
        path = f"/segments/{name}"
        headers = {"Range": f"bytes={begin}-{end - 1}", "If-Match": f'"{sums.sha256}"'}
        async with _faults(self._car.url):
            async with self._request("GET", path, headers=headers) as (answer, _):
                await self._check(answer, 206)
                if answer.content_length != end - begin:
                    raise invalid(
                        f"{name}: Content-Length {answer.content_length}, expected {end - begin}"
                    )
                for number in range(first, last + 1):
                    size = min(start_of(number + 1), sums.size) - start_of(number)
                    async with asyncio.timeout(PIECE_S):
                        data = await answer.content.readexactly(size)
                    yield data

    async def certificate(self) -> str:
        """Return the SHA-256 of the car's own certificate, as signed by it. Raises CarFault."""
        with _station_support(self._car.url):
            return (await self._signed("/certificate", Certificate, WHOLE_S)).sha256

    async def live(self, after: str) -> wire.Live:
        """Return the car's present state at its next change after `after`, or after 0.9 s. Raises
        CarFault."""
        with _station_support(self._car.url):
            return await self._signed(f"/live?after={quote(after)}", wire.Live, LIVE_S)

    async def topics(self) -> AsyncGenerator[bytes, None]:
        """Yield the recorded topics as they come: parts of an MCAP file. Raises CarFault."""
        with _station_support(self._car.url):
            async with _faults(self._car.url):
                async with self._request("GET", "/topics") as (answer, _):
                    await self._check(answer, 200)
                    async for data in answer.content.iter_any():
                        yield data

    async def stop(self) -> None:
        """Stop the car. Raises CarFault."""
        with _station_support(self._car.url):
            await self._post("/stop")

    async def receipt(self, name: str, sha256: str) -> None:
        """Send the receipt for a segment. Raises CarFault, SegmentGone."""
        await self._post(f"/receipts/{name}?sha256={sha256}")

    async def is_paired(self) -> bool:
        """Return whether the car still has this station's pairing. Raises CarFault if the car is
        unreachable."""
        async with _faults(self._car.url):
            async with self._request("GET", "/segments?most=1") as (answer, _):
                return answer.status != 401

    async def end(self) -> None:
        """End the pairing. Raises CarFault."""
        with _station_support(self._car.url):
            await self._post("/end")

    async def _post(self, path: str) -> None:
        async with _faults(self._car.url):
            async with self._request("POST", path) as (answer, _):
                await self._check(answer, 204)

    async def _signed(self, path: str, kind: type[T], most_s: float) -> T:
        """Send a request whose answer must be signed by the car."""
        async with _faults(self._car.url), asyncio.timeout(most_s):
            # A silent car may be computing a checksum: only `most_s` limits the wait.
            timeout = aiohttp.ClientTimeout(total=most_s, sock_connect=CONNECT_S)
            async with self._request("GET", path, within=timeout) as (answer, nonce):
                await self._check(answer, 200)
                body = await _read(answer)
        mac = wire.answer_mac(self._key, nonce, body)
        if not wire.macs_equal(answer.headers.get(wire.MAC, ""), mac):
            raise CarFault(STATION_UNSIGNED(url=self._car.url))
        return _decoded(body, kind)

    @contextlib.asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        within: aiohttp.ClientTimeout | None = None,
    ) -> AsyncGenerator[tuple[aiohttp.ClientResponse, str]]:
        """Send one request; yield its answer and its nonce.

        A car that has received greater nonce numbers returns the greatest; the request is then sent
        again.
        """
        for attempt in range(ATTEMPTS):
            signed, nonce = self._headers(method, path)
            async with self._client.request(
                method,
                wire.BASE + path,
                headers={**signed, **headers},
                allow_redirects=False,
                timeout=within or self._client.timeout,
            ) as answer:
                if not self._nonce_refused(answer, nonce) or attempt + 1 == ATTEMPTS:
                    yield answer, nonce
                    return

    def _nonce_refused(self, answer: aiohttp.ClientResponse, nonce: str) -> bool:
        """Return True if the car has received greater nonce numbers; continue after those."""
        newest = answer.headers.get(wire.NEWEST, "")
        if answer.status != 403 or not NUMBER.fullmatch(newest):
            return False
        mac = wire.answer_mac(self._key, nonce, newest.encode())
        if not wire.macs_equal(answer.headers.get(wire.MAC, ""), mac):
            return False
        self._last_number = max(self._last_number, int(newest))
        return True

    def _headers(self, method: str, path: str) -> tuple[dict[str, str], str]:
        self._last_number = max(time.time_ns() // 1000, self._last_number + 1)
        nonce = wire.ordered_nonce(self._last_number, secrets.token_hex(6)[:11])
        mac = wire.request_mac(self._key, nonce, method, wire.BASE + path)
        headers = {wire.STATION: self._car.station, wire.NONCE: nonce, wire.MAC: mac}
        return headers, nonce

    async def _check(self, answer: aiohttp.ClientResponse, expected: int) -> None:
        if answer.status == expected:
            return
        if answer.status in (404, 409, 412):
            raise SegmentGone
        reason: Text = VERBATIM(text=answer.status)
        if text := _refusal(answer, await _read(answer)):
            reason = SAYS(place=reason, reason=text)
        raise CarFault(SAYS(place=self._car.url, reason=reason))


@contextlib.contextmanager
def _station_support(url: str) -> Iterator[None]:
    """Convert the 404 of an older car without station support to CarFault."""
    try:
        yield
    except SegmentGone:
        raise CarFault(
            Text("station_old_car", "{url}: no station support: update fpvcar on the car", url=url)
        ) from None


def _refusal(answer: aiohttp.ClientResponse, body: bytes) -> Text | None:
    """Return the text of a refusal, if it has one. Cars of the version before send English.

    A text with texts in it is taken as English: its length may be exponential.
    """
    english = body.decode(errors="replace")
    if answer.content_type == PROBLEM and len(body) <= REFUSAL_MOST:
        with contextlib.suppress(ValueError, msgspec.DecodeError, RecursionError):
            problem = msgspec.json.decode(body, type=Problem)
            text, english = problem.text, problem.title
            nested = any(isinstance(value, Text) for value in text.values.values())
            if not nested and len(str(text)) <= TEXT_MOST:
                return text
    english = english.strip()[:TEXT_MOST]
    return VERBATIM(text=english) if english else None


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Read an answer of limited size. Raises CarFault."""
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > ANSWER_MOST:
            raise invalid(f"{answer.url}: over {ANSWER_MOST} bytes")
    return bytes(body)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, msgspec.DecodeError, RecursionError) as fault:
        raise invalid(f"not a valid {kind.__name__}: {fault}") from None


@contextlib.asynccontextmanager
async def _faults(url: str) -> AsyncIterator[None]:
    """Convert network errors to CarFault."""
    try:
        yield
    except aiohttp.ServerFingerprintMismatch as fault:
        raise CertificateChanged(
            f"{url}: its certificate has changed ({fault.got.hex()[:16]}...): not this car, or "
            "pair it again"
        ) from None
    except TimeoutError:
        raise CarFault(LATE(url=url)) from None
    except (aiohttp.ClientError, asyncio.IncompleteReadError, OSError) as fault:
        reason = VERBATIM(text=str(fault) or type(fault).__name__)
        if isinstance(fault, aiohttp.ClientConnectorError):
            reason = os_reason(OSError(fault.errno, os.strerror(fault.errno or 0)))
        raise CarFault(SAYS(place=url, reason=reason)) from None

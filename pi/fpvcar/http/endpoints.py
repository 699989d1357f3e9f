"""Endpoints of the car's pages: http, and https on the LAN, both with limits.

Listener -> aiohttp's protocol -> the application's routes
"""

import logging
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from fpvcar.http import addresses, certificates
from fpvcar.http.embedding import ALONE, Embedding, Handler
from fpvcar.http.limits import LogRateLimit, Places
from fpvcar.http.listener import Listener
from fpvcar.runtime import sd_notify

IDLE_S = 10.0
"""Time limit for a connection without a complete request, including its first one."""
LINGER_S = 1.0
NAMES_MORE = 8
"""Names beyond the LAN in a certificate, of the 16 that it holds."""
SHUTDOWN_S = 0.5
CROWDED_LOGS = (
    "fpvcar.access",
    "fpvcar.buttons",
    "fpvcar.socket",
    "fpvcar.video",
    "aiohttp.server",
    "aiohttp.websocket",
)
"""Logs to which any peer on the LAN can add lines at will."""
log = logging.getLogger("fpvcar.run")


class Address(NamedTuple):
    """Address to listen at; https, if enabled, uses the next port."""

    host: str
    port: int
    tls: ssl.SSLContext | None

    @property
    def https_port(self) -> int:
        """Port of https, 0 if https is off."""
        return self.port + 1 if self.tls else 0


def address(host: str, port: int, state: Path, car: str, further: Iterable[str] = ()) -> Address:
    """Return the address to serve at; on the LAN with https, if a certificate can be made.

    The certificate is saved in `state`. `further` are its names and addresses beyond the LAN.
    """
    if addresses.is_loopback(host):
        return Address(host, port, None)
    name = car.lower()
    more = [host.lower() for host in further if addresses.certifiable(host)][:NAMES_MORE]
    names = (addresses.lan_address(), "localhost", name, f"{name}.local", *more)
    try:
        return Address(host, port, certificates.server_context(state, names))
    except RuntimeError as fault:
        log.warning("https is off: %s", fault)
    except OSError as fault:  # the card is full
        reason = fault.strerror or fault
        log.warning("https is off: %s; sudo fpvcar doctor shows where", reason)
    return Address(host, port, None)


class Site:
    """Web site that serves an application until it is cancelled."""

    def __init__(
        self,
        application: Callable[[], web.Application],
        places: Places,
        address: Address,
        listening: Callable[[], None] = lambda: None,
        embedding: Embedding = ALONE,
    ) -> None:
        """Create the site; `listening` is called once it accepts requests."""
        self._listening = listening
        self._application, self._places, self._address = application, places, address
        self._embedding = embedding

    async def run(self) -> None:
        """Serve until cancelled.

        Raises OSError if it cannot listen, and any error that ends accepting.
        """
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            shutdown_timeout=SHUTDOWN_S,
            keepalive_timeout=IDLE_S,
            lingering_time=LINGER_S,
            auto_decompress=False,
        )
        logging.getLogger("aiohttp.server").addFilter(own_fault)
        for name in CROWDED_LOGS:
            logging.getLogger(name).addFilter(LogRateLimit())
        await runner.setup()
        assert runner.server is not None  # made by setup
        handler = self._embedding.around(runner.server.request_handler)
        runner.server.request_handler = expecting(handler)
        listener = Listener(self._places, runner.server)
        host, port, tls = self._address
        try:
            await listener.open(host, port)
            if tls is not None:
                await listener.open(host, port + 1, tls)
            log.info("listening on %s:%d", host, port)
            sd_notify.notify("READY=1")
            self._listening()
            await listener.run()
        finally:
            await listener.close()
            await runner.cleanup()


def expecting(handler: Handler) -> Handler:
    """Reject unsupported Expect headers before aiohttp does.

    aiohttp's own refusal repeats the header, and fails if it is not UTF-8.
    """

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        expected = request.headers.get("Expect", "100-continue")
        if expected.lower() != "100-continue":
            raise web.HTTPExpectationFailed(text='Expect refused: only "100-continue" can be.\n')
        return await handler(request)

    return handle


def own_fault(record: logging.LogRecord) -> bool:
    """Filter log records: drop faults that a peer can cause at will, since they are answered."""
    fault = record.exc_info[1] if record.exc_info else None
    gone = isinstance(fault, RuntimeError) and str(fault) == "Transport is closing"
    return not (gone or isinstance(fault, HttpProcessingError | ConnectionError))

"""Redirect from port 80 of the car's own network to the page.

A phone that joins a Wi-Fi requests a file with known content over plain http. If another answer
comes, it opens that by itself, as a page to sign in (RFC 8910, 1):

    Android     connectivitycheck.gstatic.com/generate_204, clients3.google.com/generate_204
    iOS, macOS  captive.apple.com/hotspot-detect.html
    Windows     www.msftconnecttest.com/connecttest.txt, then /redirect
    Firefox     detectportal.firefox.com/success.txt

    name -> NetworkManager's dnsmasq (setup.NAMES): the car's address
    request -> fpvcar-portal.socket -> the same bytes for every host and path

Only this process answers foreign names. The page refuses them, against DNS rebinding.
"""

import asyncio
import contextlib
import logging
import socket

from fpvcar.wifi.radio import OWN_ADDRESS

REQUEST_MAX = 8192
REQUEST_S = 5.0
IDLE_S = 60.0
ANSWER = (
    "HTTP/1.1 302 Found\r\n"
    f"Location: http://{OWN_ADDRESS}:8080/\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Length: 0\r\n"
    "Connection: close\r\n\r\n"
).encode()
log = logging.getLogger("fpvcar.network")


async def serve(listener: socket.socket, idle_s: float = IDLE_S) -> None:
    """Answer all requests until none arrives for `idle_s`; systemd starts the process again."""
    loop = asyncio.get_running_loop()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not idle.expired():
            idle.reschedule(loop.time() + idle_s)
        try:
            async with asyncio.timeout(REQUEST_S):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
                await writer.drain()
        except (TimeoutError, EOFError, asyncio.LimitOverrunError, ConnectionError) as fault:
            log.debug("no answer: %s", fault)  # a peer that is slow, gone or sends no http
        finally:
            writer.close()

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(idle_s) as idle:
            server = await asyncio.start_server(answer, sock=listener, limit=REQUEST_MAX)
            async with server:
                await server.serve_forever()

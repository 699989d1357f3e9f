"""/trust: installing the car's certificate as trusted, and checking the result.

GET /trust               the page; it may fetch from the car's https port, too
GET /api/trust           {"https_port": 8081, "name": ..., "fingerprint": ...}
GET /api/trust/root.crt  the certificate of the car's own authority
"""

from pathlib import Path

from aiohttp import web
from msgspec import Struct

from fpvcar.http import certificates
from fpvcar.http.addresses import in_url
from fpvcar.http.endpoints import Address
from fpvcar.http.pages import POLICY, page_response
from fpvcar.http.responses import PRIVATE
from fpvcar.http.routes import answers

BASE = "/api/trust"
CRT = "application/x-x509-ca-cert"
ABSENT = "There is no https here, so there is nothing to trust.\n"


class Authority(Struct):
    """The car's https port, and its authority; `fingerprint` is "" for a car without https."""

    https_port: int
    name: str
    fingerprint: str


class TrustApi:
    """Routes of the certificate; `state` is the folder of the certificates."""

    def __init__(self, web_root: Path, state: Path, served: Address, car: str) -> None:
        self._web_root, self._port = web_root.resolve(), served.https_port
        self._name = f"fpvcar {car.lower()}"
        self._root = certificates.trusted(state).read_bytes() if served.tls else b""

    def add_to(self, app: web.Application) -> None:
        """Add the routes; call this before adding a catch-all route."""
        app.router.add_get("/trust", self._page)
        app.router.add_get("/trust.html", self._page)
        app.router.add_get(BASE, self._about)
        app.router.add_get(f"{BASE}/root.crt", self._certificate)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        page = page_response(self._web_root, "trust.html")
        https_origin = f"https://{in_url(request.url.host or '')}:{self._port}"
        own = "connect-src 'self'"
        page.headers[POLICY] = page.headers[POLICY].replace(own, f"{own} {https_origin}")
        return page

    @answers()
    async def _about(self, request: web.Request) -> Authority:
        """Return the fingerprint of the car's authority."""
        fingerprint = certificates.fingerprint(self._root) if self._root else ""
        return Authority(self._port, self._name, fingerprint)

    @answers(answer=CRT)
    async def _certificate(self, request: web.Request) -> web.Response:
        """Return the certificate of the car's authority."""
        if not self._root:
            raise web.HTTPNotFound(text=ABSENT)
        file = f'attachment; filename="{self._name.replace(" ", "-")}.crt"'
        return web.Response(
            body=self._root, content_type=CRT, headers={**PRIVATE, "Content-Disposition": file}
        )

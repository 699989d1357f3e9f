"""/trust: installing the car's certificate as trusted, and checking the result.

GET /trust               the page; it may fetch from the car's https port, too
GET /api/trust           {"https_port": 8081, "name": ..., "fingerprint": ...}
GET /api/trust/root.crt  the certificate of the car's own authority
"""

from pathlib import Path

from aiohttp import web

from fpvcar.http import certificates
from fpvcar.http.addresses import in_url
from fpvcar.http.endpoints import Address
from fpvcar.http.pages import POLICY, page_response
from fpvcar.http.responses import PRIVATE

BASE = "/api/trust"
ABSENT = "There is no https here, so there is nothing to trust.\n"


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

    async def _about(self, request: web.Request) -> web.Response:
        answer = {"https_port": self._port, "name": self._name, "fingerprint": ""}
        if self._root:
            answer["fingerprint"] = certificates.fingerprint(self._root)
        return web.json_response(answer, headers=PRIVATE)

    async def _certificate(self, request: web.Request) -> web.Response:
        if not self._root:
            raise web.HTTPNotFound(text=ABSENT)
        file = f'attachment; filename="{self._name.replace(" ", "-")}.crt"'
        return web.Response(
            body=self._root,
            content_type="application/x-x509-ca-cert",
            headers={**PRIVATE, "Content-Disposition": file},
        )

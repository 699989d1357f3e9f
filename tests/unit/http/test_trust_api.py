"""Route /trust: the certificate to trust, and a page that can check the trust."""

import ssl
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from testkit.car import Car, Client

from fpvcar.http import endpoints
from fpvcar.http.pages import HEADERS, POLICY
from fpvcar.http.trust_api import BASE, TrustApi
from fpvcar.runtime import paths


def ask(state: Path, host: str) -> AbstractAsyncContextManager[Client]:
    """Return a client of a car that listens at `host`."""
    address = endpoints.address(host, 8080, state, "Plague")
    return Car().serve(TrustApi(paths.WEB, state, address, "Plague"))


async def test_root_certificate_comes_with_name_and_fingerprint(tmp_path: Path) -> None:
    async with ask(tmp_path, "0.0.0.0") as client:
        root = await client.get(f"{BASE}/root.crt")
        assert root.status == 200
        assert root.headers["Content-Type"] == "application/x-x509-ca-cert"
        assert 'filename="fpvcar-plague.crt"' in root.headers["Content-Disposition"]
        text = await root.text()
        assert text == (tmp_path / "root.crt").read_text() and "PRIVATE" not in text
        about = await (await client.get(BASE)).json()
        assert about["https_port"] == 8081 and about["name"] == "fpvcar plague"
        assert len(about["fingerprint"]) == 64
        ssl.create_default_context(cadata=text)


@pytest.mark.parametrize("name", ["trust", "trust.html"])
async def test_trust_page_alone_may_connect_to_the_https_port(tmp_path: Path, name: str) -> None:
    async with ask(tmp_path, "0.0.0.0") as client:
        page = await client.get(f"/{name}", headers={"Host": "[fe80::1]:8080"})
        assert page.status == 200
        assert "connect-src 'self' https://[fe80::1]:8081 " in page.headers[POLICY]
        others = await client.get("/network.html")
        assert others.headers[POLICY].startswith(HEADERS[POLICY])


async def test_loopback_car_offers_no_certificate_to_trust(tmp_path: Path) -> None:
    async with ask(tmp_path, "127.0.0.1") as client:
        about = await (await client.get(BASE)).json()
        assert about["https_port"] == 0 and about["fingerprint"] == ""
        root = await client.get(f"{BASE}/root.crt")
        assert root.status == 404 and "nothing to trust" in await root.text()

"""Real nginx and Caddy in front of a car, with the lines of docs/ways-out/remote.md, and sites with
a page that shows the car in a frame. All of them serve https at one port of 127.0.0.1."""

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fpvcar.http.certificates import make_pair
from testkit.harness import wait_for
from testkit.network.ports import free_port

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "ways-out" / "remote.md"
NAME, UPSTREAM = "home.example.org", "10.99.3.2:8080"
"""Name of the site and address of the car in the documented lines."""
CAR, HOME, EVIL = "car.test", "home.test", "evil.test"
FLAGS = (
    "--host-resolver-rules=MAP *.test 127.0.0.1",
    "--ignore-certificate-errors",
    "--test-third-party-cookie-phaseout",
)
"""Flags of Chromium: these names are here, and only partitioned cookies are kept in a frame of
another site."""
FRAME = """<!doctype html><title>Home</title><body style="margin: 0">
<iframe name="car" src="{url}" allow="fullscreen"
  sandbox="allow-forms allow-popups allow-pointer-lock allow-same-origin allow-scripts
    allow-modals allow-downloads" style="width: 100%; height: 700px; border: 0"></iframe>
"""
"""Page around the car, with the limits that Home Assistant gives a frame (hui-iframe-card.ts)."""
NGINX = """
daemon off;
user root;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {folder}/certificate;
    ssl_certificate_key {folder}/key;
    server {{
        listen 127.0.0.1:{port} ssl;
        server_name {car};
        {lines}
    }}
    server {{
        listen 127.0.0.1:{port} ssl;
        server_name {home} {evil};
        types {{ text/html html; }}
        root {folder}/pages;
    }}
}}
"""
CADDY = """
{{
    admin off
    auto_https off
}}
{lines}
"""


def documented(begin: str) -> str:
    """Return the documented lines of a proxy that begin like this."""
    blocks = re.findall(r"^```text\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.S | re.M)
    (lines,) = (block for block in blocks if block.startswith(begin))
    return str(lines)


@contextmanager
def _served(folder: Path, port: int, *words: str) -> Iterator[None]:
    """Run a server until the block ends."""
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(
            ["setpriv", "--pdeathsig=TERM", *words],
            stdout=output,
            stderr=output,
            env={"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/bin"},
        )
        try:

            def listens() -> bool:
                assert server.poll() is None, (folder / "output").read_text()
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            wait_for(listens, f"{words[0]} does not listen")
            yield
        finally:
            server.terminate()
            server.wait(20.0)


def _certified(folder: Path) -> None:
    names = ",".join(f"DNS:{name}" for name in (CAR, HOME, EVIL))
    make_pair(folder / "key", folder / "certificate", CAR, 9, f"subjectAltName={names}")


@contextmanager
def nginx(folder: Path, upstream: int, port: int, lines: str = "") -> Iterator[str]:
    """Run nginx with the documented lines, or others; yield the car's URL."""
    url = f"https://{CAR}:{port}/car/"
    (folder / "pages").mkdir()
    (folder / "pages" / "index.html").write_text(FRAME.format(url=url))
    _certified(folder)
    lines = (lines or documented("location /car/")).replace(UPSTREAM, f"127.0.0.1:{upstream}")
    names = {"car": CAR, "home": HOME, "evil": EVIL}
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, lines=lines, **names))
    with _served(folder, port, "nginx", "-e", str(folder / "log"), "-c", str(config)):
        yield url


@contextmanager
def caddy(folder: Path, upstream: int) -> Iterator[str]:
    """Run Caddy with the documented lines; yield the car's URL."""
    port = free_port()
    _certified(folder)
    site = f"https://{CAR}:{port} {{\n    tls {folder}/certificate {folder}/key\n"
    lines = documented(f"{NAME} {{").replace(f"{NAME} {{\n", site)
    config = folder / "Caddyfile"
    config.write_text(CADDY.format(lines=lines.replace(UPSTREAM, f"127.0.0.1:{upstream}")))
    words = ("caddy", "run", "--adapter", "caddyfile", "--config", str(config))
    with _served(folder, port, *words):
        yield f"https://{CAR}:{port}/car/"

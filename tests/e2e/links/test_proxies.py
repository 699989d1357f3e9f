"""A car below a path of nginx and Caddy, and in a frame of another site, driven by Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Frame, Page, Playwright
from testkit.browsers.chromium import SHELL, chromium
from testkit.browsers.phone import drive_code, take_wheel
from testkit.browsers.seat import holds, open_menu, opened, probe, stands, until
from testkit.driver import Driver
from testkit.harness import SMALL, RunningBench, started, wait_for
from testkit.network.ports import free_port
from testkit.network.reverse_proxy import CAR, EVIL, FLAGS, HOME, UPSTREAM, caddy, documented, nginx

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not all(map(shutil.which, ("nginx", "caddy"))), reason="not installed: nginx, caddy"
    ),
]
SOCKET = """(url) => new Promise((done) => {
  const socket = new WebSocket(url);
  socket.onopen = () => done('open');
  socket.onerror = () => done('refused');
})"""
RESIZE = """(frame, [width, height]) =>
  Object.assign(frame.style, {width: `${width}px`, height: `${height}px`})"""
SMALLEST = ((320, 320), (568, 320))
"""Width and height of the smallest frames."""
STOP_IN_SIGHT = """() => {
  const {left, right, top, bottom} = document.getElementById('stop').getBoundingClientRect();
  const inside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  const shown = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return inside && shown?.closest('#stop') !== null;
}"""
RANGE = """async (name) => {
  const answer = await fetch(`api/recordings/${name}`, {headers: {Range: 'bytes=8-99'}});
  const {byteLength} = await answer.arrayBuffer();
  return [answer.status, answer.headers.get('Content-Range'), byteLength];
}"""


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Browser that finds the sites of the proxies, and keeps no cookies of third parties."""
    with chromium(SHELL, playwright, flags=FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[RunningBench]:
    """A car that is shown below /car/, also in frames of one other site."""
    options = (
        '--set=server.base_path = "/car/"',
        f'--set=server.frame_ancestors = ["https://{HOME}:{port}"]',
        f'--set=server.allowed_hosts = ["{CAR}"]',
        "--set=recording.segment_s = 5",
        *SMALL,
    )
    with started(tmp_path_factory.mktemp("car"), *options) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 720}, ignore_https_errors=True)
    yield made
    made.close()


class Asked:
    """Addresses that a page has asked for, of sockets, too."""

    def __init__(self, page: Page) -> None:
        self.urls: list[str] = []
        page.on("request", lambda request: self.urls.append(request.url))
        page.on("websocket", lambda socket: self.urls.append(socket.url))

    def elsewhere(self) -> list[str]:
        """Return the addresses that are not below the car's path."""
        parts = [urlsplit(url) for url in self.urls if not url.startswith(("data:", "blob:"))]
        assert len(parts) > 30 and any(part.scheme == "wss" for part in parts)
        return [part.geturl() for part in parts if not f"{part.path}/".startswith("/car/")]


def drives_and_stops(page: Page, seat: Page | Frame, bench: RunningBench) -> None:
    """Drive by a key, see pictures, and push STOP."""
    shown = probe(seat, "video.shown")
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp", seat)
        until(seat, f"window.fpvcar.video.shown > {shown} + 5")
        seat.locator("#stop").click()
        stands(watch)
        page.keyboard.up("ArrowUp")
    until(seat, "window.fpvcar.state.stop?.cause.startsWith('estop')")
    seat.locator("#resume").click()
    until(seat, "window.fpvcar.state.stop === null")


def plays_and_downloads(page: Page, seat: Page | Frame, bench: RunningBench) -> None:
    """Open the recordings page from the menu, play the newest drive, and download a file of it."""
    folder = bench.state / "recordings"
    wait_for(lambda: any(folder.glob("*.mcap")), "nothing recorded", 60.0)
    open_menu(seat, "picture")
    seat.locator("#menu-recordings a").click()
    seat.locator("#list a").first.click()
    until(seat, "window.recordings?.lines.length >= 6")
    seat.locator("#play").click()
    link = seat.locator("#files a:not([href^=foxglove])").first
    name = link.inner_text()
    file = next(folder.rglob(name))
    with page.expect_download() as coming:
        link.click()
    assert coming.value.suggested_filename == name
    assert Path(coming.value.path()).read_bytes() == file.read_bytes()
    assert seat.evaluate(RANGE, name) == [206, f"bytes 8-99/{file.stat().st_size}", 92]


def enters_code(page: Page, seat: Page | Frame, bench: RunningBench) -> None:
    """Enter the code at a page that came through a proxy; the browser gets a cookie."""
    until(seat, "window.fpvcar?.video.shown > 1 && window.fpvcar.state?.role", 60.0)
    assert not probe(seat, "state.may_drive"), "a client of a proxy is not at home"
    with page.expect_response("**/api/pass") as kept:
        take_wheel(seat, bench)
    assert kept.value.status == 204


def framed(page: Page, port: int, url: str) -> Frame:
    """Open the page around the car; return the frame of the car's own page."""
    page.goto(f"https://{HOME}:{port}/")
    seat = page.frame("car")
    assert seat is not None and seat.url == url
    return seat


def is_remembered(seat: Page | Frame) -> None:
    """Assert that a page that was opened again needs no code."""
    until(seat, "window.fpvcar?.state?.may_drive", 60.0)


def test_whole_car_works_below_a_path_of_nginx(
    context: BrowserContext, bench: RunningBench, port: int, tmp_path: Path
) -> None:
    page = context.new_page()
    asked = Asked(page)
    with nginx(tmp_path, bench.port, port) as url:
        page.goto(url.removesuffix("/"))
        assert page.url == url, "the slash is added"
        enters_code(page, page, bench)
        assert probe(page, "video.path") == "webcodecs"
        drives_and_stops(page, page, bench)
        (cookie,) = context.cookies()
        assert cookie["name"] == "__Secure-fpvcar-pass" and cookie["path"] == "/car/"
        page.reload()
        is_remembered(page)
        assert page.evaluate("navigator.serviceWorker.ready.then(({scope}) => scope)") == url
        manifest = urljoin(url, page.locator("link[rel=manifest]").get_attribute("href"))
        started = page.evaluate("(url) => fetch(url).then((answer) => answer.json())", manifest)
        assert urljoin(manifest, started["start_url"]) == urljoin(manifest, started["scope"]) == url
        plays_and_downloads(page, page, bench)
        page.screenshot(path=tmp_path / "recordings.png")
        page.locator("#seat").click()
        until(page, "window.fpvcar?.state?.role")
        page.goto(f"{url}buttons")
        until(page, "document.querySelectorAll('[data-button]').length > 2")
        page.goto(f"{url}api/none/none")
        page.locator("main a").click()
        until(page, "window.fpvcar?.state?.role")
    page.goto(f"{url}buttons")  # nginx has ended
    page.locator("section[lang=en] a").wait_for(state="visible")
    assert page.locator("section[lang=en] a").evaluate("(link) => link.href") == url
    assert asked.elsewhere() == []


def test_proxy_may_strip_the_path(
    context: BrowserContext, bench: RunningBench, port: int, tmp_path: Path
) -> None:
    lines = documented("location /car/").replace(UPSTREAM, f"{UPSTREAM}/")
    page = context.new_page()
    asked = Asked(page)
    with nginx(tmp_path, bench.port, port, lines) as url:
        page.goto(url)
        enters_code(page, page, bench)
        drives_and_stops(page, page, bench)
        page.reload()
        is_remembered(page)
        (cookie,) = context.cookies()
        assert cookie["name"] == "__Host-fpvcar-pass" and cookie["path"] == "/"
    assert asked.elsewhere() == []


def test_car_drives_below_a_path_of_caddy(
    context: BrowserContext, bench: RunningBench, tmp_path: Path
) -> None:
    page = context.new_page()
    asked = Asked(page)
    with caddy(tmp_path, bench.port) as url:
        page.goto(url.removesuffix("/"))
        assert page.url == url, "the slash is added"
        enters_code(page, page, bench)
        drives_and_stops(page, page, bench)
        page.reload()
        is_remembered(page)
        plays_and_downloads(page, page, bench)
    assert asked.elsewhere() == []


def test_car_drives_in_a_frame_of_another_site(
    context: BrowserContext, bench: RunningBench, port: int, tmp_path: Path
) -> None:
    page = context.new_page()
    with nginx(tmp_path, bench.port, port) as url:
        seat = framed(page, port, url)
        enters_code(page, seat, bench)
        drives_and_stops(page, seat, bench)
        page.screenshot(path=tmp_path / "frame.png")
        for size in SMALLEST:
            page.locator("iframe").evaluate(RESIZE, size)
            until(seat, f"innerWidth === {size[0]} && innerHeight === {size[1]}")
            assert seat.evaluate(STOP_IN_SIGHT), size
            page.screenshot(path=tmp_path / f"frame-{size[0]}.png")
        (cookie,) = context.cookies()
        assert cookie["sameSite"] == "None" and cookie["secure"], cookie
        seat = framed(page, port, url)
        is_remembered(seat)
        plays_and_downloads(page, seat, bench)
        alone = context.new_page()
        opened(alone, url)
        assert not probe(alone, "state.may_drive"), "the cookie is for this frame alone"


def test_frame_lets_go_when_the_page_around_it_is_used(
    context: BrowserContext, bench: RunningBench, port: int, tmp_path: Path
) -> None:
    """Keys that are pushed then do not reach the frame, so a held one must not drive on."""
    page = context.new_page()
    with nginx(tmp_path, bench.port, port) as url:
        seat = framed(page, port, url)
        enters_code(page, seat, bench)
        page.evaluate("document.body.append(document.createElement('textarea'))")
        with bench.watch() as watch:
            holds(page, watch, "ArrowUp", seat)
            page.locator("textarea").focus()
            stands(watch)
        page.keyboard.up("ArrowUp")


def test_other_sites_can_neither_frame_nor_ask(
    context: BrowserContext, bench: RunningBench, port: int, tmp_path: Path
) -> None:
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    with nginx(tmp_path, bench.port, port) as url:
        page.goto(f"https://{EVIL}:{port}/")
        wait_for(lambda: any("frame-ancestors" in line for line in said), "not refused")
        frame = page.frame("car")
        assert frame is not None and frame.url != url
        socket = f"{url.replace('https', 'wss')}ws/drive"
        assert page.evaluate(SOCKET, socket) == "refused"
        page.goto(f"https://{HOME}:{port}/")
        assert page.evaluate(SOCKET, socket) == "refused", "only the page in the frame may"
        page.goto(url)
        assert page.evaluate(SOCKET, socket) == "open"


def test_program_on_the_car_needs_the_code_beside_a_proxy(bench: RunningBench) -> None:
    """A proxy on the car may strip the path, and add no header."""
    with Driver(bench.port) as driver:
        wait_for(lambda: bool(driver.state), "no state")
        assert not driver.state["may_drive"]
    with Driver(bench.port, code=drive_code(bench)) as driver:
        wait_for(lambda: driver.state.get("may_drive") is True, "the code is not taken")

"""Archived drives on the station's page: in a bucket, in a folder, away, and brought back."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from testkit.base_station.running import serving
from testkit.base_station.stored import put
from testkit.browsers.seat import until, violations
from testkit.harness import apart, beside
from testkit.mcaps import BEGAN_NS, McapFile, measured, pictures
from testkit.network.s3_proxy import S3Proxy
from testkit.network.versitygw import BUCKET, VERSITYGW, Gateway
from testkit.recorder.card import image, mounted, run

from fpvcar.recordings import names
from fpvcar.runtime.units import SECOND_NS
from fpvstation.__main__ import main
from fpvstation.snapshots import tools
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from tests.e2e.recordings.test_station_page import shot

pytestmark = [pytest.mark.e2e, pytest.mark.needs(VERSITYGW)]
EVERY_S = 600
LOOKS: list[tuple[int, int, Any, Any]] = [(390, 844, "dark", "light"), (1440, 900, "light", "dark")]
"""Size of the window, its colours, and the others."""
SHOWN = "!document.getElementById('{}').hidden"


class Home:
    """Store with drives of one car, and the settings of its station."""

    def __init__(self, home: Path, store: Path | None = None) -> None:
        self.home, self.root = home, home / "store"
        if store:
            self.root.symlink_to(store)
        else:
            self.root.mkdir()
        self.store = Store(Folder(self.root))
        self.store.open("")
        self.config = home / "station.toml"

    def record(self, number: int, segments: int = 1) -> str:
        """Store a drive of so many segments, a second each; return its session."""
        began_ns = BEGAN_NS + number * EVERY_S * SECOND_NS
        recording = names.recording_name("Plague", began_ns)
        for segment in range(segments):
            film = pictures(1.0, began_ns + segment * SECOND_NS)
            senses = measured(1.0, number * EVERY_S + segment)
            file = McapFile([*film, *senses], segment + 1, recording=recording)
            name = names.file_name(recording, segment + 1)
            put(self.store, name, b"".join(file.chunks()))
        return recording

    def verb(self, *argv: str, config: bool = True) -> None:
        options = [f"--store={self.root}", *[f"--config={self.config}"] * config]
        assert apart(lambda: main([*argv, *options])) == 0, argv


def opened(browser: Browser, port: int, drives: int) -> Page:
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(f"http://localhost:{port}/")
    until(page, f"window.recordings?.drives === {drives}", 60.0)
    return page


def looks(page: Page, name: str, part: str | None = None) -> None:
    """Check both sizes by night and by day, or a part of them; keep pictures for people."""
    found = list[str]()
    for width, height, scheme, other in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        found += violations(page, part)
        shot(page, name)
        page.emulate_media(color_scheme=other)
        shot(page, name)
    page.set_viewport_size({"width": 390, "height": 844})
    assert found == []


def refreshed(page: Page, expression: str) -> None:
    """Wait for a state of the list, which the page fetches again when it is looked at."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    until(page, expression)


def text(page: Page, name: str) -> str:
    return page.locator(f"#{name}").inner_text()


# --- In a bucket


@contextlib.contextmanager
def slow_bucket(folder: Path) -> Iterator[S3Proxy]:
    """Run an S3 server behind a proxy; this process and its children have its settings."""
    with Gateway(folder) as gateway, beside() as do, pytest.MonkeyPatch.context() as patch:
        proxy = S3Proxy(gateway.port)
        do(start(proxy))
        for name, value in gateway.environment(proxy.port).items():
            patch.setenv(name, value)
        try:
            yield proxy
        finally:
            do(proxy.__aexit__(None, None, None))


async def start(proxy: S3Proxy) -> None:
    await proxy.__aenter__()


def test_drive_in_a_bucket_comes_back_with_progress(browser: Browser, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.record(1)
    session = home.record(2, segments=8)
    home.config.write_text(f'[tiers]\narchive = "s3://{BUCKET}/archive"\n')
    with slow_bucket(tmp_path / "bucket") as proxy:
        home.verb("archive", session)
        with serving(tmp_path) as port:
            page = opened(browser, port, 2)
            bring_back(page, proxy)
            page.close()
    assert len(list(home.root.glob(f"*/*/{session}/*.mcap"))) == 8


def bring_back(page: Page, proxy: S3Proxy) -> None:
    """Play a person who brings the first drive back, after a cancel and a refusal."""
    row = page.locator("#list a").first
    assert f"archived in s3://{BUCKET}/archive" in row.inner_text()
    assert "bring it back to play it" in row.inner_text()
    looks(page, "archived-list")
    row.click()
    until(page, SHOWN.format("recall"))
    assert "Bring it back to play it" in text(page, "recall-where")
    assert not page.locator("#stage").is_visible() and not page.locator("#files").is_visible()
    looks(page, "archived-drive", "#recall")

    proxy.delay_s = 0.4
    page.locator("#recall-begin").click()
    until(page, "document.getElementById('recall-bar').value > 0", 30.0)
    until(
        page, "/ of .*\\/s, .* to go/.test(document.getElementById('recall-figures').textContent)"
    )
    assert text(page, "recall-says") == f"Being brought back from s3://{BUCKET}/archive."
    page.reload()
    until(page, SHOWN.format("recall-cancel"))
    page.locator("#recall-cancel").click()
    until(page, SHOWN.format("recall-begin"))
    assert text(page, "recall-says").startswith("Cancelled.")

    proxy.reset()
    proxy.refusals = [(403, "AccessDenied")] * 9
    page.locator("#recall-begin").click()
    until(page, "document.getElementById('recall-says').textContent.includes('Denied')", 30.0)
    assert "allow these keys s3:GetObject" in text(page, "recall-says")
    looks(page, "recall-refused", "#recall")

    proxy.reset()
    proxy.delay_s = 1.0
    page.locator("#recall-begin").click()
    until(page, "document.getElementById('recall-bar').value > 0", 30.0)
    looks(page, "recalling", "#recall")
    page.locator("#back").click()
    page.locator("#storage summary").click()
    page.locator("#storage-recalls").get_by_text("Being brought back").wait_for()
    looks(page, "storage-recalling", "#storage")
    page.locator("#storage summary").click()
    row.click()
    proxy.reset()
    until(page, "document.getElementById('recall').hidden", 30.0)
    until(page, "window.recordings.shown > 0")
    page.locator("#play").click()
    until(page, "window.recordings.timeS > 1")
    page.locator("#back").click()
    assert "archived" not in row.inner_text()
    until(page, "document.querySelectorAll('#list canvas[data-drawn]').length === 2")


# --- In a folder


def test_drive_in_a_folder_plays_and_is_away_when_unmounted(
    browser: Browser, tmp_path: Path
) -> None:
    home, archive = Home(tmp_path), tmp_path / "archive"
    archive.mkdir()
    session = home.record(1)
    home.config.write_text(f'[tiers]\narchive = "{archive}"\n')
    home.verb("archive", session)
    with serving(tmp_path) as port:
        page = opened(browser, port, 1)
        page.locator("#list a").click()
        until(page, "window.recordings.shown > 0")
        assert text(page, "recall-where") == (
            f"This drive is archived in {archive}, and plays from there."
        )
        archive.rename(tmp_path / "unmounted")
        refreshed(page, "document.getElementById('viewer').dataset.away === 'true'")
        assert "is not mounted. Mount its disk" in text(page, "recall-where")
        for part in ("stage", "recall-begin", "export-zip", "files"):
            assert not page.locator(f"#{part}").is_visible(), part
        looks(page, "away-drive", "#recall")
        page.locator("#back").click()
        assert "its disk is not mounted" in page.locator("#list a").inner_text()
        (tmp_path / "unmounted").rename(archive)
        page.locator("#list a").click()
        refreshed(page, "document.getElementById('viewer').dataset.away === 'false'")
        until(page, "window.recordings.shown > 0")
        page.locator("#recall-begin").click()
        until(page, "document.getElementById('recall').hidden", 30.0)
        page.close()
    assert list(home.root.glob(f"*/*/{session}/*.mcap")) and not list(archive.glob("*/*/*/*.mcap"))


# --- A store of twenty drives


DRIVES = 20


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and btrbk need root")
def test_twenty_drives_are_archived_recalled_restored_and_away(
    browser: Browser, tmp_path: Path
) -> None:
    disk = image(tmp_path / "disk.img", 300, "mkfs.btrfs", "-q", "-f")
    slow = image(tmp_path / "archive.img", 200, "mkfs.ext4", "-q", "-F")
    archive = tmp_path / "archive"
    with mounted(disk, tmp_path / "disk", "loop,noatime") as fast, contextlib.ExitStack() as mounts:
        mounts.enter_context(mounted(slow, archive))
        run("btrfs", "subvolume", "create", fast / "store")
        home = Home(tmp_path, fast / "store")
        sessions = [home.record(number) for number in range(DRIVES)]
        home.config.write_text(f'[tiers]\narchive = "{archive}"\n')
        etc = tmp_path / "etc"
        etc.mkdir()
        store = f"--store={fast / 'store'}"
        assert apart(lambda: main(["snapshots", "setup", store, f"--etc={etc}"])) == 0
        run("btrbk", "-c", etc / "btrbk/fpvstation.conf", "run")
        (snapshot,) = tools.snapshots_of(home.root)
        for session in sessions:
            home.verb("archive", session)
        with serving(tmp_path) as port:
            page = opened(browser, port, DRIVES)
            assert page.get_by_text("archived in").count() == DRIVES
            looks(page, "twenty-archived")
            for number in range(DRIVES // 2):
                page.locator("#list a").nth(number).click()
                until(page, SHOWN.format("recall-begin"))
                page.locator("#recall-begin").click()
                until(page, "document.getElementById('recall').hidden", 30.0)
                page.locator("#back").click()
            looks(page, "half-recalled")

            (lost,) = home.root.glob(f"*/*/{sessions[-1]}/*.mcap")
            lost.write_bytes(b"overwritten")
            at = time.strftime("%F %T", time.localtime(snapshot.at_s))
            name = f"{sessions[-1]}/{lost.name}"
            home.verb("snapshots", "restore", name, "--at", at, config=False)
            page.locator("#list a").first.click()
            until(page, "window.recordings.shown > 0")
            looks(page, "restored")
            page.locator("#back").click()

            mounts.close()
            refreshed(page, "document.querySelectorAll('em[data-state=away]').length === 10")
            page.locator("#storage summary").click()
            until(page, "document.getElementById('storage-snapshots').textContent !== ''")
            looks(page, "half-away")
            page.locator("#list a").last.click()
            until(page, SHOWN.format("recall"))
            assert "Mount its disk" in text(page, "recall-where")
            looks(page, "away", "#recall")
            page.close()
        home.verb("verify", config=False)

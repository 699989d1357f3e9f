"""The page makes a dataset of ticked drives on the bench's car, and the browser downloads it."""

import importlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pytest
from playwright.sync_api import Page
from testkit.browsers import seat
from testkit.browsers.seat import until
from testkit.harness import FEW, STRIP, RunningBench
from testkit.recorder import datasets

from fpvcar.datasets import lerobot

pytestmark = pytest.mark.e2e
parquet: Any = importlib.import_module("pyarrow.parquet")
DRIVES = 3
WORKER_MS = 300_000
"""Most time for a worker of the lowest priority on a busy machine."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBench]:
    """A bench with three recorded drives."""
    home = tmp_path_factory.mktemp("datasets")
    running = RunningBench(home, STRIP, *FEW[:2], "--set=recording.on = false")
    try:
        running.wait_ready()
        folder = running.state / "recordings"
        folder.mkdir(exist_ok=True)
        for number in range(DRIVES):
            datasets.drive(folder, number, seconds=3.0, driver=f"Driver {number}")
        yield running
    finally:
        running.stop()
        print(running.log())


def test_ticked_drives_become_a_dataset_that_is_downloaded(
    page: Page, bench: RunningBench, tmp_path: Path
) -> None:
    page.goto(f"{bench.url}recordings.html")
    until(page, f"window.recordings?.drives >= {DRIVES}")
    assert page.locator(".choose").first.is_hidden(), "nothing to tick in the usual list"
    page.locator("#datasets summary").click()
    until(page, "document.getElementById('datasets-free').textContent !== ''")
    assert page.locator("#datasets-chosen").inner_text().startswith(f"{DRIVES} drives ticked")
    page.locator("#datasets-none").click()
    assert page.locator("#datasets-begin").is_disabled()
    page.locator("#datasets-all").click()
    page.locator(".choose input").first.uncheck()
    assert page.locator("#datasets-chosen").inner_text().startswith(f"{DRIVES - 1} drives ticked")
    page.locator("#datasets-size").select_option("160x120")
    page.locator("#datasets-name").fill("laps")
    assert seat.violations(page, "#datasets") == []
    page.locator("#datasets-begin").click()
    page.locator("#datasets-code").fill("wrong code")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('datasets-fault').textContent.includes('not the code')")
    codes = json.loads((bench.state / "codes.json").read_text())
    page.locator("#datasets-code").fill(codes["grown_up"])
    page.keyboard.press("Enter")
    page.locator("#datasets-list a.button").wait_for(timeout=WORKER_MS)
    assert "2 episodes" in page.locator("#datasets-list").inner_text()
    with page.expect_download() as download:
        page.locator("#datasets-list a.button").click()
    assert download.value.suggested_filename == "laps.tar"
    with tarfile.open(download.value.path()) as tar:
        tar.extractall(tmp_path, filter="data")
    out = tmp_path / "laps"
    info = json.loads((out / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_episodes"]) == ("v3.0", DRIVES - 1)
    rows = parquet.read_table(out / "meta/episodes").to_pylist()
    assert sorted(row["driver"] for row in rows) == ["Driver 0", "Driver 1"], "the newest is left"
    for number, row in enumerate(rows):
        film = out / "videos" / lerobot.VIDEO / f"{lerobot.place_of(number)}.mp4"
        with av.open(str(film)) as file:
            frames = list(file.decode(video=0))
        assert len(frames) == row["length"] > 60 and frames[0].width == 160
    page.locator("[id='datasets-remove laps']").click()
    page.locator("[id='datasets-remove laps']").click()
    until(page, "document.getElementById('datasets-list').childElementCount === 0")
    assert list((bench.state / "recordings/datasets").iterdir()) == []

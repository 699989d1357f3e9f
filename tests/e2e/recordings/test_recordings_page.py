"""A drive is recorded and seen again: on the page, by the gate, as a film."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import av
import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from testkit import mcaps
from testkit.browsers import seat
from testkit.browsers.seat import until
from testkit.driver import Driver, free, sit_down, stand_up
from testkit.harness import FEW, STRIP, RunningBench, wait_for

from fpvcar.cli import replay
from fpvcar.recordings import messages, reader
from fpvcar.recordings.export import export, pictures

pytestmark = pytest.mark.e2e
CANVAS = """(() => {
  const canvas = document.getElementById('picture');
  const {width, height} = canvas;
  const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
  let sum = 0;
  for (let at = 0; at < data.length; at += 4) sum = (sum * 31 + data[at]) % 1000003;
  return sum;
})()"""
CURSOR = """(() => {
  const field = document.querySelector('.field').getBoundingClientRect();
  const cursor = document.querySelector('.cursor').getBoundingClientRect();
  return (cursor.left + cursor.width / 2 - field.left) / field.width;
})()"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBench]:
    """A bench that seals a file every five seconds, after a driver drove it."""
    running = RunningBench(
        tmp_path_factory.mktemp("recording"),
        STRIP,
        *FEW[:2],  # small, but 30 pictures a second
        "--set=recording.segment_s = 5",
        '--set=guard.mode = "limit"',
    )
    try:
        running.wait_ready()
        with Driver(running.port) as driver:
            sit_down(driver)
            free(driver)  # the camera films by then
            for number in range(8):
                push(driver, 0.4 if number % 2 else -0.4)
            driver.say(kind="mark", text="turned round")
            driver.drive(0.0, 0.0)
            # The first pictures may come seconds after the recorder has begun.
            enough = max(2, len(sealed(running)) + 1)
            wait_for(lambda: len(sealed(running)) >= enough, "none is sealed", 20.0)
            stand_up(driver)
        yield running
    finally:
        running.stop()
        print(running.log())


def push(driver: Driver, throttle: float) -> None:
    """Drive for 0.4 s; repeat if the car stopped, because a busy machine is late."""

    def drove() -> bool:
        driver.drive(throttle, 0.6)
        time.sleep(0.4)
        stopped = driver.stop_cause()
        if stopped:
            free(driver)
        return not stopped

    wait_for(drove, "something stops it again and again", 20.0)


def sealed(bench: RunningBench) -> list[Path]:
    """Return the closed files."""
    return sorted((bench.state / "recordings").glob("*.mcap"))


def opened(page: Page, bench: RunningBench, query: str = "") -> Page:
    """Open the recordings page with its list."""
    page.goto(f"{bench.url}recordings.html{query}")
    until(page, "window.recordings?.drives >= 1")
    return page


def at_s(page: Page) -> float:
    return float(page.evaluate("window.recordings.timeS"))


def violations(page: Page) -> list[str]:
    until(page, "document.getAnimations().length === 0")
    return seat.violations(page)


@pytest.mark.smoke
def test_drive_is_listed_played_and_scrubbed(page: Page, bench: RunningBench) -> None:
    opened(page, bench)
    until(page, "document.querySelector('#list canvas[data-drawn]') !== null")
    assert violations(page) == [], "list"
    page.locator("#list a").first.click()
    until(page, "window.recordings.lines.length >= 6")
    assert page.evaluate("window.recordings.path") == "webcodecs"
    length_s = float(page.locator("#scrub").get_attribute("max") or "0")
    assert 4.0 < length_s < 120.0
    page.locator("#marks button").first.click()  # where the driving ended,
    driven_s = at_s(page) - 2.0  # and while it lasted: a parked car's pictures are one
    page.locator("#scrub").fill(str(driven_s))
    until(page, f"Math.abs(window.recordings.shownS - {driven_s}) < 0.2")
    before, shown = page.evaluate(CANVAS), page.evaluate("window.recordings.shown")
    page.keyboard.press("Space")
    until(page, f"window.recordings.shown > {shown} + 15")
    # Some pictures are equal if a car turns back and forth, or was late to move.
    until(page, f"{CANVAS} !== {before}")
    page.keyboard.press("Space")
    until(page, "!window.recordings.playing")
    for wanted_s in (int(length_s) - 2, int(length_s) - 4):  # on, and back
        page.locator("#scrub").fill(str(wanted_s))
        until(page, f"Math.abs(window.recordings.shownS - {wanted_s}) < 0.2")
        assert at_s(page) == pytest.approx(wanted_s, abs=0.01)
        until(page, f"Math.abs({CURSOR} - {wanted_s / length_s}) < 0.01")
    page.keyboard.press(".")
    until(page, f"window.recordings.timeS > {wanted_s}")
    assert violations(page) == [], "drive"


def test_malformed_address_shows_the_list(page: Page, bench: RunningBench) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    opened(page, bench, "#%")
    assert page.locator("#viewer").is_hidden()
    assert "URI" not in page.locator("#list-says").inner_text()
    page.evaluate("location.hash = '#%E0%A4%A'")
    page.locator("#list a").first.click()
    page.locator("#viewer").wait_for(state="visible")
    assert faults == []


def test_marks_plots_speed_and_keys(page: Page, bench: RunningBench) -> None:
    opened(page, bench)
    page.locator("#list a").first.click()
    until(page, "window.recordings.lines.length >= 6")
    page.locator("#marks button").first.click()
    marked_s = at_s(page)
    assert marked_s > 1.0
    assert "turned round" in page.locator("#marks").inner_text()
    field = page.locator(".field").first
    box = field.bounding_box()
    assert box is not None
    field.click(position={"x": box["width"] / 4, "y": 20})
    length_s = float(page.locator("#scrub").get_attribute("max") or "0")
    assert at_s(page) == pytest.approx(length_s / 4, abs=length_s / 50)
    volts = page.locator(".plot[data-group=battery] .legend b").first
    until(page, "document.querySelector('[data-group=battery] b').textContent !== ''")
    assert volts.inner_text().endswith("\u00a0V")
    page.locator("h2#viewer-title").focus()
    page.keyboard.press("m")
    assert at_s(page) == pytest.approx(marked_s, abs=0.01)
    for _ in range(3):
        page.keyboard.press(">")
    assert page.locator("#speed").input_value() == "8"
    page.keyboard.press("Home")
    page.keyboard.press("k")
    until(page, f"window.recordings.timeS > {length_s * 0.8}")


def test_drive_plays_by_mse_without_webcodecs(page: Page, bench: RunningBench) -> None:
    opened(page, bench, "?path=mse")
    page.locator("#list a").first.click()
    until(page, "window.recordings.path === 'mse' && window.recordings.lines.length >= 6")
    length_s = float(page.locator("#scrub").get_attribute("max") or "0")
    wanted_s = int(length_s) - 5
    page.locator("#scrub").fill(str(wanted_s))
    until(page, f"Math.abs(window.recordings.shownS - {wanted_s}) < 1.2")
    page.keyboard.press("Home")  # a busy browser shows few pictures before the end
    page.keyboard.press("k")
    until(page, "window.recordings.shown > 15")


def test_phone_shows_the_list_then_the_drive(browser: Browser, bench: RunningBench) -> None:
    context = browser.new_context(
        viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True
    )
    page = opened(context.new_page(), bench)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth") <= 320
    page.locator("#list a").first.tap()
    until(page, "window.recordings.lines.length >= 6")
    assert page.locator("#list").is_hidden()
    assert page.locator("[data-t=keysHint]").is_hidden(), "a phone has no keys"
    assert page.evaluate(f"{root}.scrollWidth") <= 320
    for name in ("#play", "#previous", "#next", "#speed", "#back"):
        box = page.locator(name).bounding_box()
        assert box is not None and box["height"] >= 48, name
    page.locator("#back").tap()
    page.locator("#list").wait_for(state="visible")
    context.close()


@pytest.mark.parametrize(("width", "height"), [(844, 390), (568, 320)])
def test_level_phone_shows_picture_and_controls_on_one_screen(
    browser: Browser, bench: RunningBench, width: int, height: int
) -> None:
    upright = ViewportSize(width=height, height=width)
    context = browser.new_context(viewport=upright, has_touch=True, is_mobile=True)
    page = opened(context.new_page(), bench)
    page.locator("#list a").first.tap()
    until(page, "window.recordings.lines.length >= 6")
    page.set_viewport_size(ViewportSize(width=width, height=height))
    stage = page.locator("#stage").bounding_box()
    assert stage and stage["y"] >= -1 and stage["width"] == width
    assert stage["height"] >= 0.75 * height
    for name in ("#play", "#previous", "#next", "#scrub", "#time", "#speed", "#full"):
        box = page.locator(name).bounding_box()
        assert box and box["y"] >= stage["y"] + stage["height"] - 1, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, name
        assert box["y"] + box["height"] <= height + 1, name
    track = page.locator("#scrub").bounding_box()
    assert track and track["width"] >= 90
    until(page, "!window.recordings.playing")
    page.locator("#stage").tap()
    until(page, "window.recordings.playing")
    page.locator("#stage").tap()
    until(page, "!window.recordings.playing")
    page.locator("#full").tap()
    until(page, "document.fullscreenElement?.id === 'player'")
    page.locator("#next").click(trial=True)
    assert violations(page) == [], "full screen"
    page.locator("#full").tap()
    until(page, "document.fullscreenElement === null")
    context.close()


def test_downloads_replay_and_film_are_complete(
    page: Page, bench: RunningBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Downloads are identical, the gate decides the same, and the film is complete."""
    file = max(sealed(bench), key=lambda path: path.stat().st_size)
    opened(page, bench, f"#{file.name}")
    with page.expect_download() as waiting:
        page.locator(f'#files a[download="{file.name}"]').click()
    assert Path(waiting.value.path()).read_bytes() == file.read_bytes()
    assert page.locator("#export-share").is_hidden(), "a browser without a share sheet"
    with page.expect_download() as waiting:
        page.locator("#export-film").click()
    with av.open(str(waiting.value.path())) as made:
        assert sum(1 for _ in made.decode(video=0)) > 30
    assert replay.run(sealed(bench)) == 0
    said = capsys.readouterr()
    assert "all as recorded" in said.out and said.err == ""
    out = tmp_path / "drive.mp4"
    assert export.run("mp4", out, [file], False) == 0
    with av.open(str(out)) as made, reader.read(file) as recording:
        shown = sum(1 for _ in made.decode(video=0))
        # A busy camera may have begun the file without a key frame.
        assert shown == sum(1 for _ in pictures.frames(recording)) > 5


def test_drive_is_found_named_and_deleted(page: Page, bench: RunningBench) -> None:
    """A drive of last year has two files; it shares the second with another drive."""
    folder = bench.state / "recordings"
    stints = (("Zoe", 0.0, 60.0), ("Zoe", 60.0, 70.0), ("Eve", 105.0, 119.0))
    for number, mine in ((1, stints[:1]), (2, stints[1:])):
        at_s = (number - 1) * 60.0
        brief = messages.Stints(
            tuple(
                messages.Stint(
                    mcaps.BEGAN_NS + round(a * 1e9),
                    mcaps.BEGAN_NS + round(b * 1e9),
                    name,
                    7.0,
                    {"estop": 1},
                )
                for name, a, b in mine
            )
        )
        ends = [
            mcaps.logged(messages.LIGHTS, at_s + more_s, messages.Lights(True))
            for more_s in (0.0, 59.5)
        ]
        last = mcaps.logged(messages.STINTS, at_s + 59.5, brief)
        name = f"{mcaps.RECORDING}-{number:04d}.mcap"
        mcaps.McapFile([*ends, last], number).to(folder / name)
    opened(page, bench)
    until(page, "window.recordings.drives >= 3")
    page.locator("#driver").select_option("Zoe")
    until(page, "window.recordings.drives === 1")
    said = page.locator("#list").inner_text()
    assert "1:10" in said and "14\xa0m" in said and "2 stops: 2× STOP pressed" in said
    page.locator("#list .edit").click()
    page.locator("#edit-title-text").fill("To the kitchen")
    assert violations(page) == [], "dialog"
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#list').innerText.includes('kitchen')")
    page.locator("#list a").click()
    until(page, "document.querySelector('#viewer-title').innerText.includes('kitchen')")
    page.locator("#driver").select_option("")
    until(page, "window.recordings.drives >= 3")
    page.locator("#search").fill("KITCHEN")
    until(page, "window.recordings.drives === 1")
    page.locator("#list .edit").click()
    page.locator("#edit-remove").click()
    sure = page.locator("#edit-sure-says").inner_text()
    assert sure.startswith("1 file (") and "1 file also belongs to another drive" in sure
    page.locator("#edit-code").fill("000000")
    page.keyboard.press("Enter")
    until(page, "document.body.innerText.includes('not the code')")
    codes = json.loads((bench.state / "codes.json").read_text())
    page.locator("#edit-code").fill(codes["grown_up"])
    page.locator("#edit-delete").click()
    until(page, "!document.getElementById('edit').open")
    assert page.locator("#viewer").is_hidden(), "what was open is gone"
    kept = sorted(one.name for one in folder.glob(f"{mcaps.RECORDING}*"))
    assert kept == [f"{mcaps.RECORDING}-0002.mcap"]
    until(page, "window.recordings.drives === 0")
    page.locator("#clear").click()
    until(page, "window.recordings.drives >= 2")
    said = page.locator("#list").inner_text()
    assert "Eve" in said and "Zoe" not in said, "what stays of it is not listed"
    assert violations(page) == [], "list"


def test_ended_client_sees_no_drives_until_code_is_entered(page: Page, bench: RunningBench) -> None:
    """The refusals are simulated: here every client is on the car itself."""
    file = sealed(bench)[0]
    opened(page, bench, f"#{file.name}")
    page.locator("#viewer").wait_for(state="visible")
    lists = "**/api/recordings/drives?*"
    page.route(lists, lambda route: route.fulfill(status=401, body="enter the code"))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.locator("#code").wait_for(state="visible")
    for part in ("#list", "#viewer", "#filter", "#older"):
        assert page.locator(part).is_hidden(), part
    assert page.evaluate("window.recordings.drives") == 0
    assert violations(page) == [], "locked"
    page.unroute(lists)
    codes = json.loads((bench.state / "codes.json").read_text())
    page.locator("#code").fill(codes["drive"])
    with page.expect_response("**/api/recordings/unlock") as answer:
        page.keyboard.press("Enter")
    assert answer.value.status == 204
    until(page, "window.recordings.drives > 0")
    page.locator("#viewer").wait_for(state="visible")
    cookies = [one["name"] for one in page.context.cookies()]
    assert cookies == ["fpvcar-pass"] and page.evaluate("document.cookie") == ""

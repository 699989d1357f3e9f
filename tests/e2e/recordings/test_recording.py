"""Neither kill -9 nor a power cut costs more than a second of a recording."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import av
import pytest
from testkit.driver import Driver, free, open_socket, sit_down
from testkit.harness import RunningBench, wait_for
from testkit.recorder.card import Card, Writing, files, lost_s, recorded, step_times
from testkit.recorder.foreign import by_javascript, by_mcap
from testkit.recorder.recording import CATALOGUE, KEY, UTC_NS, about, item

from fpvcar.drive import gate, mixing
from fpvcar.recorder.writer import Writer
from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.units import SECOND_NS
from fpvcar.wire.errors import VERSION

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
LOST_S = 1.0
"""The documented limit of a recording's loss."""
AT_ONCE = 5
TOPICS = (
    messages.ABOUT,
    messages.CAMERA,
    messages.STEP,
    messages.WISH,
    messages.BATTERY,
    messages.EVENT,
    messages.MARK,
    messages.DRIVER,
    messages.LIGHTS,
    messages.BUTTONS,
    messages.HEALTH,
    messages.LATENCY,
    "/range/front",
    "/range/rear",
)


def killed(folder: Path, after_s: float) -> float:
    """Return the seconds lost by a recorder that is killed after a while."""
    with Writing(folder) as writing:
        writing.goes_on(after_s)
        return lost_s(folder, writing.kill())


def leftover(folder: Path) -> None:
    """Make the file that an earlier run left open: a minute at 8 Mbit/s."""
    folder.mkdir()
    writer = Writer(CATALOGUE, about())
    with (folder / "Plague-20261121T193100Z-0001.mcap.part").open("wb") as file:
        file.write(writer.begin())
        for number in range(60):
            log_ns = UTC_NS + number * SECOND_NS
            picture = messages.Picture(log_ns, KEY + bytes(1_000_000))
            file.writelines(writer.chunk([item(messages.CAMERA, picture, log_ns, True)]))


@pytest.mark.soak
def test_kill_9_costs_a_second_at_most(
    soaking: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice, runs = random.Random(9), 50 if soaking else 5
    folders = [tmp_path / str(number) for number in range(runs)]
    waits = [dice.uniform(1.5, 3.5) for _ in folders]
    for folder in folders[:AT_ONCE]:
        leftover(folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        losses = sorted(pool.map(killed, folders, waits))
    with capsys.disabled():
        print(f"\n{runs} kills: lost {losses[0]:.2f} to {losses[-1]:.2f} s", end="")
    assert losses[-1] <= LOST_S
    left = [one for one in files(folders[0]) if one.suffix == ".part"]
    with Writing(folders[0]) as writing:  # the next run seals the open files
        wait_for(lambda: not any(one.exists() for one in left), "not sealed")
        assert writing.end() == 0
    assert left and len(files(folders[0])) == 3
    for path in files(folders[0]):
        with reader.read(path) as made:
            assert made.whole, path.name


@ROOT
@pytest.mark.soak
def test_power_cut_costs_a_second_at_most(
    soaking: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice, losses = random.Random(4), []
    settings = ("recording.keep_free_mb = 1", "recording.segment_s = 5")
    with Card(tmp_path) as card, Writing(card.path / "rec", *settings) as writing:
        wait_for(lambda: recorded(card.path / "rec"), "nothing is recorded")
        for _ in range(20 if soaking else 3):
            writing.goes_on(dice.uniform(0.3, 2.0))
            last_ns = writing.last_ns
            with card.cut() as left:
                losses.append(lost_s(left / "rec", last_ns))
        assert writing.end() == 0
    with capsys.disabled():
        shown = f"lost {min(losses):.2f} to {max(losses):.2f} s"
        print(f"\n{len(losses)} power cuts: {shown}", end="")
    assert max(losses) <= LOST_S


def fpvcar(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a command of fpvcar."""
    return subprocess.run(
        [sys.executable, "-m", "fpvcar", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=30,
    )


def pictures(path: Path) -> int:
    """Return the number of pictures that a decoder makes of a file's access units."""
    decoder, count = av.CodecContext.create("h264", "r"), 0
    with reader.read(path) as made:
        for message in made.messages([messages.CAMERA]):
            picture = codec.decode(messages.CAMERA, message.data)
            assert isinstance(picture, messages.Picture)
            count += len(decoder.decode(av.Packet(picture.unit)))
    return count + len(decoder.decode(None))


def check_again(path: Path) -> int:
    """Run each recorded step through gate and mixing again; return their number."""
    count = 0
    with reader.read(path) as made:
        assert made.about is not None
        profile = made.about.parsed()
        for message in made.messages([messages.STEP]):
            one = codec.decode(messages.STEP, message.data)
            assert isinstance(one, messages.Step)
            now_s = one.now_ns / 1e9
            again = gate.decide(one.wished(), one.latches, one.world(), now_s, profile.gate)
            assert again == gate.Decision(*one.decision())  # type: ignore[arg-type]
            volts = mixing.supply_v(one.volts, profile.battery)
            duties, _ = mixing.mix(
                again.throttle, again.steer, profile.motors, volts, one.slew, now_s
            )
            assert duties == one.duties
            count += 1
    return count


@pytest.mark.smoke
def test_bench_records_drives_and_goes_on_after_run_is_killed(tmp_path: Path) -> None:
    """`make run RECORDINGS=DIR`: drive, kill `run`, drive on, check the files."""
    folder = tmp_path / "my recordings"
    bench = RunningBench(tmp_path, f"RECORDINGS={folder}", make=True)
    try:
        bench.wait_ready()
        drive_a_little(bench, folder)
        left = files(folder)[-1]
        time.sleep(1.2)  # until now it was the moment after a sync
        killed_ns = bench.kill("run")
        wait_for(lambda: len(files(folder)) >= 2, "no second recording", 20.0)
        wait_for(lambda: not left.exists(), f"{left} was not sealed", 30.0)
        wait_for(lambda: counts(files(folder)[-1])[messages.STEP] > 0, "it stands")
    finally:
        bench.stop()
    assert (killed_ns - last_step_ns(left.with_suffix(""))) / 1e9 <= LOST_S
    found = files(folder)
    verified = fpvcar("log", "verify", folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert len(found) >= 2 and verified.stdout.count("every CRC holds") == len(found)
    first = found[0]
    with reader.read(first) as made:
        assert made.about is not None and made.about.car == "Plague"
    assert pictures(first) >= counts(first)[messages.CAMERA] - 1
    assert check_again(first) > 50
    said = events(first)
    assert Line(messages.MARK, "Ann: here") in said
    assert Line(messages.EVENT, "Ann took the wheel") in said
    for path in found:  # independent readers agree on any content
        assert by_mcap(path) == counts(path)
        theirs = by_javascript(path)
        for way in ("indexed", "streamed"):
            topics = theirs[way]["topics"]
            assert {one: topics[one]["count"] for one in topics} == counts(path)


def last_step_ns(path: Path) -> int:
    """Return the time of the last gate step in a file."""
    with reader.read(path) as made:
        *_, last = made.messages([messages.STEP])
    one = codec.decode(messages.STEP, last.data)
    assert isinstance(one, messages.Step)
    return one.now_ns


def counts(path: Path) -> Counter[str]:
    """Return messages by topic, of a file that is perhaps being written."""
    try:
        with reader.read(path) as made:
            return made.counts
    except (RecordingError, FileNotFoundError):  # not begun yet, or sealed this moment
        return Counter()


class Line(NamedTuple):
    """Text of an event or a mark, with its topic."""

    topic: str
    text: str


def events(path: Path) -> list[Line]:
    """Return every event and mark of a file."""
    lines = []
    with reader.read(path) as made:
        for one in made.messages([messages.EVENT, messages.MARK]):
            event = codec.decode(one.topic, one.data)
            assert isinstance(event, messages.Event)
            lines.append(Line(one.topic, event.text))
    return lines


def drive_a_little(bench: RunningBench, folder: Path) -> None:
    """Drive for two seconds, with lights, a button and a mark; wait until all is on the card."""
    with Driver(bench.port) as driver:
        sit_down(driver)
        free(driver)
        driver.drive(0.3, 0.2)
        driver.say(kind="mark", text="here")
        driver.say(kind="lights", head=True)
        driver.say(kind="report", path="webcodecs", picture_ms=12.5, fps=29.9)
        push_a_button(bench.port)
        wait_for(lambda: driver.state["recording"]["seconds"] > 2.0, "it stands")
        driver.drive(0.0, 0.0)
        assert driver.state["recording"]["state"] == "ok"
        begun = files(folder)[-1]
        missing = set(TOPICS)

        def all_there() -> bool:
            missing.difference_update(counts(begun))
            return not missing

        try:
            wait_for(all_there, "not recorded", every_s=0.2)
        finally:
            assert not missing


def push_a_button(port: int) -> None:
    """Push a button down and up, on the children's page."""
    with open_socket(port, "/ws/buttons") as page:
        page.send(json.dumps({"kind": "hello", "v": VERSION}))
        for held in (1, 0):
            page.send(json.dumps({"kind": "hold", "held": held}))


def test_step_times_counts_an_old_end_as_loss(tmp_path: Path) -> None:
    """The test's own check works: an old end counts as a loss."""
    with Writing(tmp_path) as writing:
        wait_for(lambda: recorded(tmp_path), "nothing is recorded")
        last_ns = writing.kill()
    times = step_times(tmp_path)
    assert lost_s(tmp_path, times[-1] + 2_000_000_000) == 2.0
    assert lost_s(tmp_path, last_ns) >= 0.0

"""Datasets equal the recordings that they are made of."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import BEGAN_NS, FRAME_NS, McapFile
from testkit.recorder import datasets
from testkit.recorder.datasets import driven, filmed

from fpvcar.datasets import lerobot
from fpvcar.datasets.session import Session
from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.export import pictures
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.repair.damage import INCOMPLETE

parquet: Any = importlib.import_module("pyarrow.parquet")
Pixels = np.ndarray[Any, Any]


def table(out: Path, number: int = 0) -> dict[str, list[Any]]:
    """Return the rows of an episode by column."""
    path = out / "data" / f"{lerobot.place_of(number)}.parquet"
    columns: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    return columns


def episodes(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(out / "meta" / "episodes").to_pylist()
    return rows


def film(out: Path, number: int = 0) -> list[Pixels]:
    """Return the decoded luma of an episode's video, whose times are those of the rows."""
    path = out / "videos" / lerobot.VIDEO / f"{lerobot.place_of(number)}.mp4"
    with av.open(str(path)) as file:
        frames = list(file.decode(video=0))
    times = table(out, number)["timestamp"]
    assert [frame.time for frame in frames] == pytest.approx(times, abs=1e-4), "LeRobot's tolerance"
    return [frame.to_ndarray()[: frame.height] for frame in frames]


def recorded(path: Path) -> list[Pixels]:
    """Return the decoded luma of a recording's frames."""
    decoder = av.CodecContext.create("h264", "r")
    assert isinstance(decoder, av.VideoCodecContext)
    with reader.read(path) as recording:
        packets = [av.Packet(frame.unit) for frame in pictures.frames(recording)]
    frames = [frame for packet in [*packets, None] for frame in decoder.decode(packet)]
    return [frame.to_ndarray()[: frame.height] for frame in frames]


def likeness(one: Pixels, other: Pixels) -> float:
    """Return the mean difference of two pictures in grey levels."""
    return float(np.abs(one.astype(float) - other.astype(float)).mean())


def test_copied_video_is_the_recorded_one(tmp_path: Path, command: Command) -> None:
    path, out = datasets.drive(tmp_path, seconds=4.0), tmp_path / "set"
    said = command("log", "export", "--lerobot", out, "--copy", path)
    assert said.out.startswith(f"{out}: 1 episode, 120 frames at 30 fps (0 doubled, 0 dropped)")
    assert said.out.endswith("1 copied, 0 encoded\n") and said.err == ""
    before, after = recorded(path), film(out)
    assert len(after) == 120
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_encoded_video_shows_the_frame_of_each_tick(tmp_path: Path, command: Command) -> None:
    path, out = datasets.drive(tmp_path, seconds=3.0), tmp_path / "set"
    said = command("log", "export", "--lerobot", out, "--fps", "40", "--copy", path)
    assert "120 frames at 40 fps (30 doubled, 0 dropped)" in said.out, said
    assert "0 copied, 1 encoded" in said.out
    before, after = recorded(path), film(out)
    for number, picture in enumerate(after):
        differences = [likeness(picture, other) for other in before]
        tick_ns = FRAME_NS * 3 // 8 + number * 25_000_000  # half a tick after the first frame
        assert differences[min(tick_ns // FRAME_NS, 89)] == min(differences), number


def test_size_scales_video_and_metadata(tmp_path: Path, command: Command) -> None:
    path, out = datasets.drive(tmp_path, seconds=2.0), tmp_path / "set"
    command("log", "export", "--lerobot", out, "--size", "80x64", path)
    assert film(out)[0].shape == (64, 80)
    feature = json.loads((out / "meta" / "info.json").read_text())["features"][lerobot.VIDEO]
    assert feature["shape"] == [64, 80, 3] and feature["info"]["video.width"] == 80
    said = command("log", "export", "--lerobot", out, "--size", "81x64", path, status=2)
    assert "81x64 refused: expected even numbers, 16 to 4096" in said.err


def test_rows_have_the_newest_wish_and_measurements(tmp_path: Path, command: Command) -> None:
    path, out = datasets.drive(tmp_path, seconds=3.0), tmp_path / "set"
    command("log", "export", "--lerobot", out, path)
    with reader.read(path) as recording:
        logged = [
            (message.log_ns, codec.decode(message.topic, message.data))
            for message in recording.messages({messages.STEP, "/range/front"})
        ]
    rows = table(out)
    names = json.loads((out / "meta/info.json").read_text())["features"]["observation.state"]
    assert names["names"] == ["gate_throttle", "gate_steer", "battery_v", "range_front_m"]
    for number, (action, state) in enumerate(
        zip(rows["action"], rows["observation.state"], strict=True)
    ):
        tick_ns = BEGAN_NS + FRAME_NS // 2 + number * FRAME_NS
        past = [message for log_ns, message in logged if log_ns <= tick_ns]
        step = [one for one in past if isinstance(one, messages.Step)][-1]
        reading = [one for one in past if isinstance(one, messages.Reading)][-1]
        assert step.wish is not None
        assert action == pytest.approx([step.wish.throttle, step.wish.steer], abs=1e-6)
        measured = [step.throttle, step.steer, step.volts, reading.range_m]
        assert state == pytest.approx(measured, abs=1e-6)
    assert rows["timestamp"] == pytest.approx([number / 30 for number in range(90)], abs=1e-6)
    assert episodes(out)[0]["driver"] == "Ann"
    assert episodes(out)[0]["stops"] == ["estop at 1.5 s"]


def test_each_driver_has_an_episode_and_each_mark_with_marks(
    tmp_path: Path, command: Command
) -> None:
    turns = [*driven(3.0, 0.0, "Ann"), *driven(3.0, 4.0, "Zoë", seed=2)]
    marks = [
        mcaps.logged(messages.MARK, at_s, messages.Event(0, messages.INFO, text, "Ann"))
        for at_s, text in ((0.5, "lap 1"), (1.75, "lap 2"), (4.5, "lap 3"))
    ]
    path = McapFile([*filmed(7.0), *turns, *marks]).to(tmp_path / "a.mcap")
    command("log", "export", "--lerobot", tmp_path / "drivers", path)
    assert [(row["driver"], row["length"]) for row in episodes(tmp_path / "drivers")] == [
        ("Ann", 90),
        ("Zoë", 89),
    ]
    command("log", "export", "--lerobot", tmp_path / "marks", "--marks", path)
    rows = episodes(tmp_path / "marks")
    assert [row["tasks"] for row in rows] == [["lap 1"], ["lap 2"], ["lap 3"]]
    assert [row["length"] for row in rows] == pytest.approx([38, 38, 75], abs=1)
    assert table(tmp_path / "marks", 2)["task_index"][0] == 2
    said = command(
        *("log", "export", "--lerobot", tmp_path / "long", "--marks", "--least", "1.5", path)
    )
    assert [row["length"] for row in episodes(tmp_path / "long")] == [74]
    assert "2 episodes shorter than 1.5 s left out" in said.err


def test_files_of_one_recording_are_one_episode(tmp_path: Path, command: Command) -> None:
    logged = sorted([*filmed(4.0), *driven(4.0)], key=lambda one: one.log_ns)
    cut_ns = BEGAN_NS + 2_400_000_000
    first = [one for one in logged if one.log_ns < cut_ns]
    frames = sum(one.topic == messages.CAMERA for one in first)
    rest = [one for one in logged if one.log_ns >= cut_ns]
    McapFile(first).to(tmp_path / "Plague-20251121T200000Z-0001.mcap")
    later = McapFile(rest, segment=2, sequence_from=frames)
    later.to(tmp_path / "Plague-20251121T200000Z-0002.mcap")
    out = tmp_path / "set"
    command("log", "export", "--lerobot", out, "--copy", tmp_path)
    assert [row["length"] for row in episodes(out)] == [120]
    assert episodes(out)[0]["copied"]


def test_files_of_two_cars_alternate_and_a_copy_counts_once(
    tmp_path: Path, command: Command
) -> None:
    for car, offset_s in (("Arrow", 0.0), ("Plague", 0.3)):
        logged = [*filmed(4.0, offset_s), *driven(4.0, offset_s, car)]
        recording = f"{car}-20251121T200000Z"
        cut_ns = BEGAN_NS + 2_400_000_000
        halves = [[one for one in logged if (one.log_ns < cut_ns) == first] for first in (1, 0)]
        frames = sum(one.topic == messages.CAMERA for one in halves[0])
        for number, half in enumerate(halves, 1):
            file = McapFile(half, number, sequence_from=(number - 1) * frames, recording=recording)
            file.to(tmp_path / f"{recording}-000{number}.mcap")
    copy = tmp_path / "copy.mcap"
    copy.write_bytes((tmp_path / "Arrow-20251121T200000Z-0001.mcap").read_bytes())
    out = tmp_path / "set"
    said = command("log", "export", "--lerobot", out, "--copy", tmp_path, copy)
    assert [(row["driver"], row["length"]) for row in episodes(out)] == [
        ("Arrow", 120),
        ("Plague", 120),
    ]
    assert "copy.mcap: left out, as a copy of it is in the dataset" in said.err


def test_title_of_the_drive_is_the_task(tmp_path: Path, command: Command) -> None:
    path = datasets.drive(tmp_path, seconds=2.0)
    (tmp_path / ".titles.json").write_text(json.dumps({path.stem: [[1.0, "Around the sofa"]]}))
    command("log", "export", "--lerobot", tmp_path / "set", path)
    assert episodes(tmp_path / "set")[0]["tasks"] == ["Around the sofa"]
    command("log", "export", "--lerobot", tmp_path / "other", "--task", "Park", path)
    assert episodes(tmp_path / "other")[0]["tasks"] == ["Park"]


def test_numbers_of_other_topics_are_columns(tmp_path: Path, command: Command) -> None:
    """Angles of servos that do not steer, for example."""
    turned = [
        mcaps.logged(f"{messages.SERVO}pan", number / 10.0, messages.Servo(float(number)))
        for number in range(20)
    ]
    path = McapFile([*filmed(2.0), *driven(2.0), *turned]).to(tmp_path / "a.mcap")
    command("log", "export", "--lerobot", tmp_path / "set", path)
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    assert info["features"]["observation.state"]["names"][-1] == "servo_pan.deg"
    assert [state[-1] for state in table(tmp_path / "set")["observation.state"]][::3] == list(
        range(20)
    )


def test_unknown_measurements_are_named(tmp_path: Path, command: Command) -> None:
    silent = mcaps.logged("/range/rear", 0.2, messages.Reading(180.0, 0.7))
    path = McapFile([*filmed(3.0), *driven(3.0), silent]).to(tmp_path / "a.mcap")
    command("log", "export", "--lerobot", tmp_path / "set", path)
    assert episodes(tmp_path / "set")[0]["unknown"] == ["range_rear_m in 60 rows"]


def test_damage_ends_an_episode_and_is_reported(tmp_path: Path, command: Command) -> None:
    pieces = McapFile([*filmed(7.0), *driven(7.0)]).chunks()
    path, out = mcaps.flipped(tmp_path / "bad.mcap", pieces, 4), tmp_path / "set"
    said = command("log", "export", "--lerobot", out, path, status=INCOMPLETE)
    assert "1 hole in its video: a new episode begins after each" in said.err
    assert "--partial accepts that" in said.err
    assert [row["length"] for row in episodes(out)] == [90, 90]
    assert "bytes are missing" in (out / "missing.txt").read_text()
    command("log", "export", "--lerobot", tmp_path / "again", "--partial", path)


@pytest.mark.parametrize("kind", ["lerobot", "donkey"])
def test_episode_whose_file_disappears_is_left_out_without_litter(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    paths = [datasets.drive(tmp_path, number, 2.0) for number in range(2)]
    command("log", "export", f"--{kind}", tmp_path / "one", paths[0])
    usual = Session.frames

    def frames(session: Session, first: int, end: int) -> Iterator[tuple[int, pictures.Frame]]:
        for number, frame in usual(session, first, end):
            if session.name in paths[1].name and number == 40:
                raise RecordingError("has changed meanwhile: export it again")
            yield number, frame

    monkeypatch.setattr(Session, "frames", frames)
    said = command("log", "export", f"--{kind}", tmp_path / "two", *paths, status=INCOMPLETE)
    assert "an episode is left out: has changed meanwhile" in said.err
    files = [
        sorted(str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*"))
        for name in ("one", "two")
    ]
    assert sorted([*files[0], "missing.txt"]) == files[1]


def test_recording_without_an_episode_leaves_nothing(tmp_path: Path, command: Command) -> None:
    path = McapFile(list(driven(2.0))).to(tmp_path / "a.mcap")
    said = command("log", "export", "--donkey", tmp_path / "tub", path, status=1)
    assert "no episode in these recordings" in said.err
    assert list(tmp_path.iterdir()) == [path]


def test_refusals_name_the_next_step(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = datasets.drive(tmp_path, seconds=2.0)
    assert "add --lerobot DIR or --donkey" in command("log", "export", path, status=2).err
    said = command("log", "list", "--donkey", tmp_path / "tub", path, status=2)
    assert "use fpvcar log export" in said.err
    (tmp_path / "set").mkdir()
    said = command("log", "export", "--lerobot", tmp_path / "set", path, status=1)
    assert "exists: choose another name" in said.err
    said = command("log", "export", "--donkey", tmp_path / "no" / "tub", path, status=1)
    assert "is no directory: create it first" in said.err
    monkeypatch.setitem(sys.modules, "av", None)
    said = command("log", "export", "--donkey", tmp_path / "tub", path, status=1)
    assert "av missing. To install: " in said.err and "pip install av" in said.err
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "set"]

"""Exports, read back by other programs, equal the recording."""

import csv
import errno
import importlib
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import av
import pytest
from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.command import Command
from testkit.mcaps import BEGAN_NS, FRAME_NS, Drive, McapFile
from testkit.recorder.recording import BytesSource
from testkit.recordings import SECONDS, drive_messages

from fpvcar.recordings import codec, messages
from fpvcar.recordings.export import export
from fpvcar.recordings.export.plots import plots_of
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.runtime.units import SECOND_NS

UNITS = round(SECONDS * mcaps.FPS)


def film(path: Path) -> tuple[list[int], float]:
    """Return presentation times in us and the duration in s, read by ffprobe."""
    asked = "format=duration:stream=codec_name,width:packet=pts_time,flags"
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", asked, "-of", "json", path],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    said = json.loads(done.stdout)
    assert [one["codec_name"] for one in said["streams"]] == ["h264"]
    packets = said["packets"]
    assert packets[0]["flags"].startswith("K"), "it begins with a key frame"
    times = [round(float(one["pts_time"]) * 1_000_000) for one in packets]
    return times, float(said["format"]["duration"])


def pictures_in(path: Path) -> int:
    with av.open(str(path)) as found:
        return sum(1 for _ in found.decode(video=0))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Write a file of that drive."""
    return McapFile(drive_messages()).to(tmp_path / "one.mcap")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Write a file without its second second; the next key frame comes after three."""
    made = McapFile([*mcaps.pictures(SECONDS, gop=45), *mcaps.measured(SECONDS)])
    return mcaps.flipped(tmp_path / "bad.mcap", made.chunks(), 2)


@pytest.fixture
def folder(tmp_path: Path, whole: Path) -> Path:
    """Make a folder with that drive."""
    (tmp_path / "card").mkdir()
    return whole.rename(tmp_path / "card" / "Plague-20251121T200000Z-0001.mcap").parent


def test_film_has_the_recorded_times(tmp_path: Path, whole: Path, command: Command) -> None:
    out = tmp_path / "drive.mp4"
    said = command("export", "--mp4", out, whole)
    assert said == (f"{out}: {UNITS} pictures, 4.0 s\n", "")
    times, duration_s = film(out)
    assert times == [number * FRAME_NS // 1000 for number in range(UNITS)]
    assert duration_s == pytest.approx(UNITS * FRAME_NS / 1e9, abs=0.002)
    assert pictures_in(out) == UNITS


def test_uneven_times_and_pauses_stay(tmp_path: Path, command: Command) -> None:
    """Times of a camera that stumbles, and two files with a pause between them."""
    first = list(mcaps.pictures(1.0))
    late = [
        one._replace(
            data=codec.encode(messages.Picture(BEGAN_NS + 7_000_000 * number * number, unit))
        )
        for number, (one, unit) in enumerate(zip(first, encode(30, gop=10), strict=True))
    ]
    later = mcaps.pictures(1.0, BEGAN_NS + 90 * SECOND_NS)
    one = McapFile(late).to(tmp_path / "a.mcap")
    two = McapFile(list(later), segment=2, sequence_from=30).to(tmp_path / "b.mcap")
    command("export", "--mp4", tmp_path / "out.mp4", two, one)  # in order of time
    times, _ = film(tmp_path / "out.mp4")
    wanted = [7_000 * number * number for number in range(30)]
    wanted += [90_000_000 + number * FRAME_NS // 1000 for number in range(30)]
    assert times == wanted


def test_pause_of_hours_is_refused_with_next_step(tmp_path: Path, command: Command) -> None:
    one = McapFile(list(mcaps.pictures(0.5))).to(tmp_path / "a.mcap")
    later = mcaps.pictures(0.5, BEGAN_NS + 7200 * SECOND_NS)
    two = McapFile(list(later)).to(tmp_path / "b.mcap")
    said = command("export", "--mp4", tmp_path / "out.mp4", one, two, status=1)
    assert "pause of 2.0 h: export them to two films" in said.err
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_overlapping_recordings_are_refused_as_film_not_table(
    tmp_path: Path, whole: Path, command: Command
) -> None:
    later = mcaps.pictures(2.0, BEGAN_NS + SECOND_NS)
    two = McapFile(list(later), recording="Plague-20251121T200001Z").to(tmp_path / "two.mcap")
    said = command("export", "--mp4", tmp_path / "out.mp4", whole, two, status=1)
    assert "one.mcap and two.mcap are two recordings of the same time" in said.err
    command("export", "--mp4", tmp_path / "out.mp4", two)
    command("export", "--csv", tmp_path / "out", whole, two)
    assert len(rows(tmp_path / "out" / "camera.csv")) == 180, "a table has both"


def test_files_of_one_recording_may_overlap() -> None:
    """Overlap is normal for a recovered file beside the rest of the original."""
    one = export.File(Path("a.mcap"), 1, 0, 10 * SECOND_NS, "Plague-1")
    two = one._replace(path=Path("b.mcap"), start_ns=5 * SECOND_NS)
    export.refuse_two_films([one, two])
    with pytest.raises(RecordingError, match="two recordings of the same time"):
        export.refuse_two_films([one, two._replace(recording="Plague-2")])


def test_empty_file_is_skipped_in_folder_but_refused_alone(
    tmp_path: Path, folder: Path, command: Command
) -> None:
    """The power went before any data was on the card."""
    empty = folder / "Plague-20251121T200000Z-0002.mcap.part"
    empty.touch()
    said = command("export", "--mp4", tmp_path / "out.mp4", folder)
    assert "0002.mcap.part: empty: power failed" in said.err
    assert pictures_in(tmp_path / "out.mp4") == UNITS
    command("export", "--mp4", tmp_path / "again.mp4", folder, empty, status=1)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_export_works_on_disk_without_links(
    tmp_path: Path, whole: Path, command: Command, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError(number, os.strerror(number))))
    out = tmp_path / "out.mp4"
    command("export", "--mp4", out, whole)
    assert pictures_in(out) == UNITS and sorted(tmp_path.iterdir()) == [whole, out]


def test_damaged_chunk_costs_pictures_up_to_next_key_frame(
    tmp_path: Path, bad: Path, command: Command
) -> None:
    out = tmp_path / "out.mp4"
    said = command("export", "--mp4", out, bad, status=INCOMPLETE)
    times, _ = film(out)
    kept = [*range(30), *range(90, UNITS)]
    assert times == [number * FRAME_NS // 1000 for number in kept]
    assert pictures_in(out) == len(kept)
    for words in (said.err, (tmp_path / "out.mp4.missing.txt").read_text()):
        assert "bytes are missing at 2025-11-21T20:00:0" in words
        assert "30 pictures are left out: no key frame leads up to them" in words


def test_unclosed_file_exports_as_incomplete(tmp_path: Path, command: Command) -> None:
    path = McapFile(drive_messages(), closed=False).to(tmp_path / "open.mcap.part")
    path.write_bytes(path.read_bytes()[:-20_000])  # the power went in the middle of a chunk
    for kind, out in (("--mp4", tmp_path / "out.mp4"), ("--csv", tmp_path / "out")):
        assert "never closed" in command("export", kind, out, path, status=INCOMPLETE).err
    times, _ = film(tmp_path / "out.mp4")
    assert 85 <= len(times) < UNITS


@pytest.mark.parametrize("kind", ["mp4", "csv"])
def test_damaged_file_notes_loss_and_exits_3_unless_partial(
    tmp_path: Path, kind: str, bad: Path, whole: Path, command: Command
) -> None:
    out = tmp_path / "out"
    note = out / "missing.txt" if kind == "csv" else tmp_path / "out.missing.txt"
    said = command("export", f"--{kind}", out, bad, status=INCOMPLETE).err
    assert "bytes are missing" in note.read_text() and "--partial accepts that" in said
    command("export", f"--{kind}", out, "--force", "--partial", bad)
    assert "bytes are missing" in note.read_text()
    command("export", f"--{kind}", out, "--force", whole)
    assert not note.exists(), "an older note goes"


def test_export_of_a_truncated_sealed_file_exits_3(
    tmp_path: Path, whole: Path, command: Command
) -> None:
    whole.write_bytes(whole.read_bytes()[:-30])  # only the end of its summary
    command("export", "--csv", tmp_path / "a", whole, status=3)
    part = McapFile(drive_messages(), closed=False).to(tmp_path / "two.mcap.part")
    command("export", "--csv", tmp_path / "b", part)
    assert "never closed" in (tmp_path / "b" / "missing.txt").read_text()


def test_export_of_a_folder_with_an_unreadable_file_exits_3(
    tmp_path: Path, folder: Path, command: Command
) -> None:
    (folder / "Plague-20251121T200000Z-0002.mcap").write_bytes(b"no recording" * 100)
    command("export", "--csv", tmp_path / "out", folder, status=INCOMPLETE)
    assert "0002.mcap" in (tmp_path / "out" / "missing.txt").read_text()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_servo_is_exported_as_a_column_and_plotted(command: Command, tmp_path: Path) -> None:
    angles = [0.0, 12.5, -70.0]
    said = [
        mcaps.logged("/servo/pan", at_s, messages.Servo(deg)) for at_s, deg in enumerate(angles)
    ]
    file = McapFile([*drive_messages(), *said]).to(tmp_path / "one.mcap")
    command("export", "--csv", tmp_path / "out", file)
    turned = rows(tmp_path / "out" / "servo-pan.csv")
    assert list(turned[0]) == ["utc", "monotonic_s", "angle_deg"]
    assert [float(row["angle_deg"]) for row in turned] == angles
    plots = plots_of(Recording(BytesSource(file.read_bytes())))
    series = plots.series
    assert plots.servos == {}, "this car has none"
    (line,) = [one for one in series if one.group == "angle"]
    assert (line.name, line.unit, line.v) == ("pan", "°", angles)


def test_csv_has_one_file_per_topic_with_units_in_names(
    tmp_path: Path, whole: Path, command: Command
) -> None:
    out = tmp_path / "tables"
    command("export", "--csv", out, whole)
    assert sorted(path.name for path in out.iterdir()) == [
        "battery.csv",
        "camera.csv",
        "latency.csv",
        "mark.csv",
        "range-front.csv",
    ]
    ranges = rows(out / "range-front.csv")
    assert list(ranges[0]) == ["utc", "monotonic_s", "bearing_deg", "range_m", "state"]
    assert len(ranges) == 40
    assert ranges[1] == {
        "utc": "2025-11-21T20:00:00.100000000Z",
        "monotonic_s": "100.1",
        "bearing_deg": "0.0",
        "range_m": "1.01",
        "state": "ok",
    }
    assert ranges[3]["range_m"] == ""
    battery = rows(out / "battery.csv")[0]
    assert (battery["battery_v"], battery["low"]) == ("7.4", "false")
    assert (battery["age_s"], battery["state"]) == ("", "ok")
    camera = rows(out / "camera.csv")
    assert len(camera) == UNITS
    assert camera[0]["utc"] == "2025-11-21T20:00:00.000000000Z"  # time of capture
    assert [one["key_frame"] for one in camera[:11]] == ["true", *["false"] * 9, "true"]
    assert rows(out / "mark.csv")[0]["text"] == "look here"


FAULTS = ("under-voltage now", "too hot")
EVERY: list[tuple[str, messages.Message]] = [
    (messages.WISH, messages.WishIn(1, 2.0, 0.5, -0.5, "Ann")),
    (messages.DRIVER, messages.Turn(None, "Ann released the wheel")),
    (messages.LIGHTS, messages.Lights(True)),
    (messages.BUTTONS, messages.Buttons(("red", "blue"), "turn", 3, 1, 7)),
    (messages.EVENT, messages.Event(BEGAN_NS, messages.INFO, "driving", messages.GATE)),
    (messages.HEALTH, messages.Health("ok", "ok", "ok", 1, {"celsius": 41.5}, FAULTS)),
    *((messages.STEP, step) for step in Drive(1).go(0.3)),
]


def test_topic_rows_are_as_wide_as_their_columns(tmp_path: Path, command: Command) -> None:
    mcap_file = McapFile([mcaps.logged(topic, 0.1, one) for topic, one in EVERY])
    out = tmp_path / "tables"
    command("export", "--csv", out, mcap_file.to(tmp_path / "one.mcap"))
    assert {path.stem for path in out.iterdir()} == {
        "wish",
        "driver",
        "lights",
        "buttons",
        "event",
        "health",
        "step",
    }
    for path in out.iterdir():
        for row in rows(path):
            assert None not in row and None not in row.values(), path
    step = rows(out / "step.csv")[0]
    first = Drive(1).go(0.3)[0]
    assert (step["reason"], step["arm"]) == (first.reason, first.after.arm)
    assert float(step["throttle_share"]) == first.throttle
    assert rows(out / "buttons.csv")[0]["lit"] == "red blue"
    health = rows(out / "health.csv")[0]
    assert health["figures"] == '{"celsius":41.5}' and health["faults"] == "; ".join(FAULTS)


def test_parquet_has_the_same_rows_as_csv(tmp_path: Path, whole: Path, command: Command) -> None:
    parquet: Any = importlib.import_module("pyarrow.parquet")
    out = tmp_path / "tables"
    command("export", "--parquet", out, whole)
    table = parquet.read_table(out / "range-front.parquet")
    assert str(table.schema.field("utc").type) == "timestamp[ns, tz=UTC]"
    found = table.to_pylist()
    assert len(found) == 40
    assert found[1] == {
        "utc": datetime(2025, 11, 21, 20, 0, 0, 100_000, UTC),
        "monotonic_s": 100.1,
        "bearing_deg": 0.0,
        "range_m": 1.01,
        "state": "ok",
    }
    assert found[3]["range_m"] is None
    assert table.column("utc").cast("int64").to_pylist()[1] == BEGAN_NS + 100_000_000


def test_camera_table_has_a_row_for_each_picture_of_the_film(
    tmp_path: Path, bad: Path, command: Command
) -> None:
    """Pictures of a lost second, and their dependent pictures, are in neither."""
    twice = tmp_path / "copy.mcap"
    twice.write_bytes(bad.read_bytes())
    assert pictures_of_both(command, tmp_path, [bad, twice], INCOMPLETE) < UNITS


def test_camera_table_continues_in_a_file_without_key_frame(
    tmp_path: Path, command: Command
) -> None:
    pictures = list(mcaps.pictures(SECONDS, gop=1000))
    files = mcaps.two_files(tmp_path, pictures)
    assert pictures_of_both(command, tmp_path, files, 0) == len(pictures)


def pictures_of_both(command: Command, folder: Path, files: list[Path], status: int) -> int:
    """Export film and tables; return the number of pictures, which have the same times in both."""
    command("export", "--mp4", folder / "out.mp4", *files, status=status)
    command("export", "--csv", folder / "out", *files, status=status)
    times_us, _ = film(folder / "out.mp4")
    table = rows(folder / "out" / "camera.csv")
    began_s = BEGAN_NS / SECOND_NS
    assert [round((utc_s(row) - began_s) * 1e6) for row in table] == [
        pytest.approx(us, abs=2) for us in times_us
    ]
    return len(table)


def utc_s(row: dict[str, str]) -> float:
    return datetime.fromisoformat(row["utc"][:26] + "+00:00").timestamp()

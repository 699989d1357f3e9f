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

import av
import pytest
from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.mcaps import BEGAN_NS, FRAME_NS, Drive, Logged, McapFile

from fpvcar.recordings import codec, messages
from fpvcar.recordings.export import export
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.runtime.units import SECOND_NS

SECONDS = 4.0
UNITS = round(SECONDS * mcaps.FPS)


def drive() -> list[Logged]:
    """Return four seconds with pictures."""
    return [*mcaps.pictures(SECONDS), *mcaps.measured(SECONDS)]


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


def test_film_has_the_recorded_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mcap_file = McapFile(drive()).to(tmp_path / "one.mcap")
    out = tmp_path / "drive.mp4"
    assert export.run("mp4", out, [mcap_file], False) == 0
    times, duration_s = film(out)
    assert times == [number * FRAME_NS // 1000 for number in range(UNITS)]
    assert duration_s == pytest.approx(UNITS * FRAME_NS / 1e9, abs=0.002)
    assert pictures_in(out) == UNITS
    said = capsys.readouterr()
    assert said.out == f"{out}: {UNITS} pictures, 4.0 s\n" and said.err == ""


def test_uneven_times_and_pauses_stay(tmp_path: Path) -> None:
    """Times of a camera that stumbles, and two files with a pause between them."""
    first = list(mcaps.pictures(1.0))
    late = [
        one._replace(
            data=codec.encode(messages.Picture(BEGAN_NS + 7_000_000 * number * number, unit))
        )
        for number, (one, unit) in enumerate(zip(first, encode(30, gop=10), strict=True))
    ]
    later = mcaps.pictures(1.0, BEGAN_NS + 90 * 1_000_000_000)
    one = McapFile(late).to(tmp_path / "a.mcap")
    two = McapFile(list(later), segment=2, sequence_from=30).to(tmp_path / "b.mcap")
    out = tmp_path / "out.mp4"
    assert export.run("mp4", out, [two, one], False) == 0  # in order of time
    times, _ = film(out)
    wanted = [7_000 * number * number for number in range(30)]
    wanted += [90_000_000 + number * FRAME_NS // 1000 for number in range(30)]
    assert times == wanted


def test_pause_of_hours_is_refused_with_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = McapFile(list(mcaps.pictures(0.5))).to(tmp_path / "a.mcap")
    later = mcaps.pictures(0.5, BEGAN_NS + 7200 * 1_000_000_000)
    two = McapFile(list(later)).to(tmp_path / "b.mcap")
    out = tmp_path / "out.mp4"
    assert export.run("mp4", out, [one, two], False) == 1
    assert "pause of 2.0 h: export them to two films" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_overlapping_recordings_are_refused_as_film_not_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = McapFile(list(mcaps.pictures(4.0))).to(tmp_path / "a.mcap")
    later = mcaps.pictures(2.0, BEGAN_NS + 1_000_000_000)
    two = McapFile(list(later), recording="Plague-20251121T200001Z").to(tmp_path / "b.mcap")
    assert export.run("mp4", tmp_path / "out.mp4", [one, two], False) == 1
    said = capsys.readouterr().err
    assert "a.mcap and b.mcap are two recordings of the same time" in said
    assert export.run("mp4", tmp_path / "out.mp4", [two], False) == 0
    assert export.run("csv", tmp_path / "out", [one, two], False) == 0
    assert len(rows(tmp_path / "out" / "camera.csv")) == 180, "a table has both"


def test_files_of_one_recording_may_overlap() -> None:
    """Overlap is normal for a recovered file beside the rest of the original."""
    one = export.File(Path("a.mcap"), 1, 0, 10 * SECOND_NS, "Plague-1")
    two = one._replace(path=Path("b.mcap"), start_ns=5 * SECOND_NS)
    export.refuse_two_films([one, two])
    with pytest.raises(RecordingError, match="two recordings of the same time"):
        export.refuse_two_films([one, two._replace(recording="Plague-2")])


def test_empty_file_is_skipped_in_folder_but_refused_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The power went before any data was on the card."""
    folder = tmp_path / "card"
    folder.mkdir()
    McapFile(drive()).to(folder / "Plague-20251121T200000Z-0001.mcap")
    empty = folder / "Plague-20251121T200000Z-0002.mcap.part"
    empty.touch()
    assert export.run("mp4", tmp_path / "out.mp4", [folder], False) == 0
    assert "0002.mcap.part: empty: power failed" in capsys.readouterr().err
    assert pictures_in(tmp_path / "out.mp4") == UNITS
    assert export.run("mp4", tmp_path / "again.mp4", [folder, empty], False) == 1


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_export_works_on_disk_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(old: Path, new: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refused)
    mcap_file = McapFile(drive()).to(tmp_path / "one.mcap")
    out = tmp_path / "out.mp4"
    assert export.run("mp4", out, [mcap_file], False) == 0 and pictures_in(out) == UNITS
    assert sorted(tmp_path.iterdir()) == [mcap_file, out]


def test_damaged_chunk_costs_pictures_up_to_next_key_frame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second second is lost; the next key frame comes after three."""
    mcap_file = McapFile([*mcaps.pictures(SECONDS, gop=45), *mcaps.measured(SECONDS)])
    path = mcaps.flipped(tmp_path / "bad.mcap", mcap_file.chunks(), 2)
    out = tmp_path / "out.mp4"
    assert export.run("mp4", out, [path], False) == INCOMPLETE
    times, _ = film(out)
    kept = [*range(30), *range(90, UNITS)]
    assert times == [number * FRAME_NS // 1000 for number in kept]
    assert pictures_in(out) == len(kept)
    said = capsys.readouterr()
    note = (tmp_path / "out.mp4.missing.txt").read_text()
    for words in (said.err, note):
        assert "bytes are missing at 2025-11-21T20:00:0" in words
        assert "30 pictures are left out: no key frame leads up to them" in words


def test_unclosed_file_exports_as_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = McapFile(drive(), closed=False).to(tmp_path / "open.mcap.part")
    data = path.read_bytes()
    path.write_bytes(data[:-20_000])  # the power went in the middle of the last chunk
    assert export.run("mp4", tmp_path / "out.mp4", [path], False) == INCOMPLETE
    assert export.run("csv", tmp_path / "out", [path], False) == INCOMPLETE
    times, _ = film(tmp_path / "out.mp4")
    assert 85 <= len(times) < UNITS
    assert capsys.readouterr().err.count("never closed") == 2


@pytest.mark.parametrize("kind", ["mp4", "csv"])
def test_damaged_file_notes_loss_and_exits_3_unless_partial(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = McapFile(drive())
    bad = mcaps.flipped(tmp_path / "bad.mcap", whole.chunks(), 2)
    good = whole.to(tmp_path / "good.mcap")
    out = tmp_path / "out"
    note = out / "missing.txt" if kind == "csv" else tmp_path / "out.missing.txt"
    assert export.run(kind, out, [bad], False) == INCOMPLETE
    assert "bytes are missing" in note.read_text()
    assert "--partial accepts that" in capsys.readouterr().err
    assert export.run(kind, out, [bad], True, partial=True) == 0
    assert "bytes are missing" in note.read_text()
    assert export.run(kind, out, [good], True) == 0
    assert not note.exists(), "an older note goes"


def test_export_of_a_truncated_sealed_file_exits_3(tmp_path: Path) -> None:
    data = McapFile(drive()).to(tmp_path / "one.mcap").read_bytes()
    (tmp_path / "one.mcap").write_bytes(data[:-30])  # only the end of its summary
    assert export.run("csv", tmp_path / "a", [tmp_path / "one.mcap"], False) == 3
    part = McapFile(drive(), closed=False).to(tmp_path / "two.mcap.part")
    assert export.run("csv", tmp_path / "b", [part], False) == 0
    assert "never closed" in (tmp_path / "b" / "missing.txt").read_text()


def test_export_of_a_folder_with_an_unreadable_file_exits_3(tmp_path: Path) -> None:
    folder = tmp_path / "card"
    folder.mkdir()
    McapFile(drive()).to(folder / "Plague-20251121T200000Z-0001.mcap")
    bad = folder / "Plague-20251121T200000Z-0002.mcap"
    bad.write_bytes(b"no recording" * 100)
    assert export.run("csv", tmp_path / "out", [folder], False) == INCOMPLETE
    assert "0002.mcap" in (tmp_path / "out" / "missing.txt").read_text()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_one_file_per_topic_with_units_in_names(tmp_path: Path) -> None:
    mcap_file = McapFile(drive()).to(tmp_path / "one.mcap")
    out = tmp_path / "tables"
    assert export.run("csv", out, [mcap_file], False) == 0
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


EVERY: list[tuple[str, messages.Message]] = [
    (messages.WISH, messages.WishIn(1, 2.0, 0.5, -0.5, "Ann")),
    (messages.DRIVER, messages.Turn(None, "Ann released the wheel")),
    (messages.LIGHTS, messages.Lights(True)),
    (messages.BUTTONS, messages.Buttons(("red", "blue"), "turn", 3, 1, 7)),
    (messages.EVENT, messages.Event(BEGAN_NS, messages.INFO, "driving", messages.GATE)),
    (messages.HEALTH, messages.Health("ok", "ok", "ok", 1, {"celsius": 41.5})),
    *((messages.STEP, step) for step in Drive(1).go(0.3)),
]


def test_topic_rows_are_as_wide_as_their_columns(tmp_path: Path) -> None:
    mcap_file = McapFile([mcaps.logged(topic, 0.1, one) for topic, one in EVERY])
    out = tmp_path / "tables"
    assert export.run("csv", out, [mcap_file.to(tmp_path / "one.mcap")], False) == 0
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
    assert rows(out / "health.csv")[0]["figures"] == '{"celsius":41.5}'


def test_parquet_has_the_same_rows_as_csv(tmp_path: Path) -> None:
    parquet: Any = importlib.import_module("pyarrow.parquet")
    mcap_file = McapFile(drive()).to(tmp_path / "one.mcap")
    out = tmp_path / "tables"
    assert export.run("parquet", out, [mcap_file], False) == 0
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


def test_health_table_keeps_the_faults(tmp_path: Path) -> None:
    faults = ("under-voltage now", "too hot")
    health = messages.Health("ok", "ok", "ok", 1, {"cpu_c": 81.5}, faults)
    made = McapFile([mcaps.logged(messages.HEALTH, 0.5, health)])
    path = made.to(tmp_path / "one.mcap")
    assert export.run("csv", tmp_path / "out", [path], False) == 0
    (row,) = rows(tmp_path / "out" / "health.csv")
    assert row["faults"] == "under-voltage now; too hot"


def test_camera_table_has_a_row_for_each_picture_of_the_film(tmp_path: Path) -> None:
    """Pictures of a lost second, and their dependent pictures, are in neither."""
    made = McapFile([*mcaps.pictures(SECONDS, gop=45), *mcaps.measured(SECONDS)])
    bad = mcaps.flipped(tmp_path / "bad.mcap", made.chunks(), 2)
    twice = tmp_path / "copy.mcap"
    twice.write_bytes(bad.read_bytes())
    assert pictures_of_both(tmp_path, [bad, twice], INCOMPLETE) < SECONDS * mcaps.FPS


def test_camera_table_continues_in_a_file_without_key_frame(tmp_path: Path) -> None:
    pictures = list(mcaps.pictures(SECONDS, gop=1000))
    files = [
        McapFile(pictures[:60]).to(tmp_path / "a.mcap"),
        McapFile(pictures[60:], segment=2, sequence_from=60).to(tmp_path / "b.mcap"),
    ]
    assert pictures_of_both(tmp_path, files, 0) == len(pictures)


def pictures_of_both(folder: Path, files: list[Path], status: int) -> int:
    """Export film and tables; return the number of pictures, which have the same times in both."""
    assert export.run("mp4", folder / "out.mp4", files, False) == status
    assert export.run("csv", folder / "out", files, False) == status
    times_us, _ = film(folder / "out.mp4")
    table = rows(folder / "out" / "camera.csv")
    began_s = BEGAN_NS / SECOND_NS
    assert [round((utc_s(row) - began_s) * 1e6) for row in table] == [
        pytest.approx(us, abs=2) for us in times_us
    ]
    return len(table)


def utc_s(row: dict[str, str]) -> float:
    return datetime.fromisoformat(row["utc"][:26] + "+00:00").timestamp()

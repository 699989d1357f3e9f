"""The benchmark's pictures, from given samples."""

import json
from pathlib import Path

import pytest
from benchmarks import draw
from benchmarks.__main__ import written
from benchmarks.rows import Aim, Curve, Result, row
from matplotlib.figure import Figure

SIZE_MOST = 150_000


def results() -> list[Result]:
    """Return the results of a full run: 900 pictures, 200 stops."""
    ages = [8.0 + number * 7 % 17 for number in range(900)]
    paths = [
        "path 640x480@29.9, WebCodecs",
        "path 1280x720@29.9, WebCodecs",
        "path 640x480@59.8, WebCodecs",
        "path 640x480@29.9, MSE, as shown",
        "path 640x480@29.9, MSE, as painted",
        "whole 640x480@29.9, rendering included",
        "beside: aiortc, H.264",
        "beside: tuned Pion",
    ]
    found: list[Result] = [row("video", name, "ms", ages) for name in paths]
    found.append(row("video", "path, longest freeze", "ms", [70.0], Aim(worst=150)))
    found.append(row("video", "ours / aiortc", "x", [0.4], Aim(median=0.45)))
    found.append(row("copies", "9 files, first: rdcp", "s", [1.0, 2.0]))
    for at in range(12):
        times = [at * 20 + number * 11 % 30 for number in range(200)]
        found.append(row("stop", f"cause {at}", "ms", times, Aim(worst=300)))
    clock = tuple(number / 30 for number in range(-15, 600))
    found.append(Curve("links", "stall: age", "ms", clock[:99], clock[:99]))
    found.append(Curve("links", "narrow: age", "ms", clock, clock))
    found.append(Curve("links", "narrow: bitrate", "kbit/s", clock, clock))
    return found


def test_draws_all_small_and_the_same_each_time(tmp_path: Path) -> None:
    figures = json.loads(json.dumps(written(results())))
    files = draw.everything(figures, tmp_path / "one")
    again = draw.everything(figures, tmp_path / "two")
    assert [path.name for path in files] == list(draw.PICTURES)
    for path, twin in zip(files, again, strict=True):
        data = path.read_bytes()
        assert data == twin.read_bytes()
        assert len(data) < SIZE_MOST, path.name
        assert data.startswith(b"\x89PNG")
        assert f"{figures['machine']}, {figures['date']}".encode() in data


def test_one_command_draws_the_pictures_of_the_docs_with_their_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(Figure, "suptitle", lambda self, title, **style: titles.append(title))
    monkeypatch.setattr(draw, "TARGET", tmp_path / "pictures")
    monkeypatch.chdir(tmp_path)
    Path("benchmark.json").write_text(json.dumps(written(results())))
    monkeypatch.setattr("sys.argv", ["draw"])
    assert draw.main() == 0
    assert sorted(path.name for path in draw.TARGET.iterdir()) == sorted(draw.PICTURES)
    assert len(titles) == 2 and all(title.endswith(": emulated, on a PC") for title in titles)


def test_draws_only_what_was_measured(tmp_path: Path) -> None:
    figures = written([row("control", "key press to pin", "ms", [3.0])])
    assert draw.everything(figures, tmp_path) == []
    stopped = row("stop", "run killed", "ms", [5.0], Aim(worst=50))
    files = draw.everything(written([stopped]), tmp_path)
    assert [path.name for path in files] == ["bench-stops.png"]


def test_quantiles_are_samples() -> None:
    assert draw.quantiles([3.0, 1.0, 2.0], 2) == [1.0, 2.0, 3.0]
    assert draw.quantiles([5.0], 4) == [5.0] * 5


@pytest.mark.parametrize("count", [1, 2, 200])
def test_dots_of_a_strip_stay_in_it(count: int) -> None:
    places = draw.spread(count)
    assert len(set(places)) == count and max(map(abs, places)) <= 0.28

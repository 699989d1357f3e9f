"""Measurements of a disk by the real fio, and the plan of a store's tiers."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fpvstation import service
from fpvstation.__main__ import main
from fpvstation.errors import StationError
from fpvstation.sizing import measure
from fpvstation.sizing.measure import Measured
from fpvstation.sizing.plan import Demand, plan
from fpvstation.store.disk import Folder, locked
from fpvstation.store.store import Store
from fpvstation.web import size_page

MB = 1e6


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "state"
    monkeypatch.setenv("STATE_DIRECTORY", str(made))
    return service.state_directory()


def figures(folder: Path, latency_s: float = 1e-4, rate: float = 100 * MB) -> Measured:
    return Measured(str(folder), latency_s, 2 * rate, rate, rate / 2, rate, 5.0)


# --- Measure


@pytest.mark.slow
def test_measure_saves_figures_and_leaves_no_file(
    tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    for _ in range(2):
        argv = ["measure", "--seconds", "1", str(folder), "--store", str(tmp_path / "none")]
        assert main(argv) == 0
    said = capsys.readouterr().out
    assert f"{folder}: takes 5 s" in said and "latency" in said
    (measured,) = measure.load(state)
    assert measured.folder == str(folder) and measured.latency_s > 0.0
    assert min(measured.read, measured.write, measured.append, measured.random) > 1000.0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_measurement_leaves_no_file_and_no_process(
    number: signal.Signals, tmp_path: Path
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = [sys.executable, "-m", "fpvstation", "measure", str(folder), "--store", "/none"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    data = folder / measure.FOLDER / "data"
    deadline = time.monotonic() + 30.0
    while not (data.exists() and data.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(20.0) == 128 + number
    assert list(folder.iterdir()) == []
    commands = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True).stdout
    assert f"{folder}/" not in commands


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(list(argv)) == 1
    return capsys.readouterr().err


def test_measure_refuses_the_disk_of_a_running_station(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    Store(Folder(root)).open("")
    beside = tmp_path / "beside"
    beside.mkdir()
    argv = ["measure", "--seconds", "1", "--store"]
    with service.lock_store(root):
        said = refusal(capsys, *argv, str(root), str(beside))
        assert f"a station fetches into {root}: end that first" in said
        assert "a station fetches" in refusal(capsys, *argv, "/none", str(root))
    assert not list(beside.iterdir())
    (beside / measure.FOLDER).mkdir()
    with locked(beside / measure.FOLDER / ".lock"):
        assert "is being measured" in refusal(capsys, *argv, "/none", str(beside))


def test_measure_names_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is no folder" in refusal(capsys, "measure", str(tmp_path / "absent"))
    monkeypatch.setattr(measure, "SIZE", 1 << 60)
    assert "MiB free: a measurement needs" in refusal(capsys, "measure", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "fio is not installed; sudo apt install fio" in refusal(capsys, "measure", str(tmp_path))


# --- Plan


def test_plan_counts_days_and_names_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast, slow = tmp_path / "fast", tmp_path / "slow"
    for folder in (fast, slow):
        folder.mkdir()
    usage = (8e12, 2e12, 6e12)
    monkeypatch.setattr("shutil.disk_usage", lambda path: _Usage(*usage))
    demand = Demand(30, 2.0, 2.0, 1000.0)
    assert demand.daily == 54e9, "30 cars x 2 h x 0.25 MB/s"
    measured = [
        figures(slow, 8e-3, 40 * MB),
        figures(fast, rate=1000 * MB),
        figures(tmp_path / "x"),
    ]
    first, second = plan(demand, measured)
    assert first.measured.folder == str(fast) and second.measured.folder == str(slow)
    assert first.days == pytest.approx(6e12 / 54e9)
    assert str(first.limit) == "the link, 125 MB/s" and first.copy_s == pytest.approx(432.0)
    assert str(second.limit) == "its writes, 20 MB/s" and second.copy_s == pytest.approx(2700.0)
    assert second.verify_s == pytest.approx(8e12 / 50e6), "the rate of verify"
    assert second.restore_s == pytest.approx(8e12 / 80e6)


class _Usage:
    def __init__(self, total: float, used: float, free: float) -> None:
        self.total, self.used, self.free = total, used, free


def test_size_prints_each_tier_and_refuses_bad_numbers(
    tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no disk was measured yet: fpvstation measure DIR" in refusal(capsys, "size")
    measure.save(state, figures(tmp_path))
    assert main(["size", "--cars", "30", "--hours", "2"]) == 0
    said = capsys.readouterr().out
    assert "30 cars, 2 h a day at 2.2 Mbit/s: 59.4 GB a day" in said
    assert "full in" in said and "copy a day to it" in said
    with pytest.raises(SystemExit):
        main(["size", "--hours", "25"])
    assert "25 refused: expected 0.01 to 24" in capsys.readouterr().err
    (state / measure.FILE).write_text("{")
    assert "delete it, then fpvstation measure DIR" in refusal(capsys, "size")


def test_page_draws_the_pyramid_and_escapes_values(tmp_path: Path, state: Path) -> None:
    assert "no disk was measured yet" in size_page.page({}, state)
    folder = tmp_path / "a<b"
    folder.mkdir()
    measure.save(state, figures(folder))
    measure.save(state, figures(tmp_path, 8e-3, 20 * MB))
    text = size_page.page({"cars": "30", "hours": "2"}, state)
    assert text.count("<polygon") == 2 and "59.4 GB a day" in text
    assert "a&lt;b" in text and "a<b" not in text
    assert "latency 8.00 ms" in text and "the limit is its writes, 10 MB/s" in text
    german = size_page.page({"cars": "30", "hours": "2"}, state, "de")
    assert "59,4 GB am Tag" in german and "Latenz 8,00 ms" in german
    assert "die Grenze setzt das Schreiben mit 10 MB/s" in german
    for bad in ("0", "nan", "x", '"><script>'):
        text = size_page.page({"cars": bad}, state)
        assert "was refused: expected 1 to 100000." in text and "<script>" not in text


def test_measure_and_plan_raise_station_errors_only(tmp_path: Path) -> None:
    with pytest.raises(StationError, match="no disk was measured"):
        plan(Demand(1, 1.0), [figures(tmp_path / "gone")])

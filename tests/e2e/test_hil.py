"""`fpvcar hil` as a user types it, on a bench of its own. Also the suite's rig of real pins,
against a bench that plays the car: its own edges have to match the chip."""

import contextlib
import dataclasses
import itertools
import os
import re
import signal
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.browsers.chromium import CHROMIUM, FLAGS
from testkit.harness import apart, wait_for

from fpvbench import hil_rig
from fpvbench.hil_rig import BenchRig, bench
from fpvcar.config import BENCH_PINS
from fpvcar.devices.pins import Edges
from fpvcar.hil import browsers, results, runner
from fpvcar.hil.checks import CHECKS, camera
from fpvcar.hil.metal_rig import MetalRig
from fpvcar.hil.results import Limit, Report, Result
from fpvcar.hil.rig import Check
from fpvcar.runtime import paths
from fpvcar.runtime.pdeathsig import with_pdeathsig
from tests.e2e.test_benchmark_ends import alive

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
MARK = "FPVCAR_TEST_HIL"
SHORT = "pins-duty,motor-frequency,button,stop-wheels-killed"
ON_METAL = "pins-levels,pins-duty,motor-pins,echo,stop-silence,stop-wheels-killed"
ROOT = os.geteuid() == 0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "fpvcar", "hil", *words]


def report(folder: Path) -> Report:
    return results.from_json((folder / "report.json").read_bytes())


def figures(found: Report | list[Result]) -> str:
    every = found.results if isinstance(found, Report) else found
    return "\n".join(map(runner.line, every))


SERVOS = ("motors.drive = {}", "motors.steer = {}")
ESC = ("motors.drive.esc_loss_s = 0.2", "motors.drive.slew_per_s = 4")
PIGPIO = (
    *SERVOS,
    'pins.backend = "pigpio"',
    'motors.drive.driver = "esc"',
    "motors.drive.signal = 17",
    'motors.steer.driver = "servo"',
    "motors.steer.signal = 24",
    "rig.loops = [5, 6]",
    *ESC,
)
KERNEL = (
    *PIGPIO,
    'pins.backend = "linux"',
    "pins.pwm = [18, 13]",
    "motors.drive.signal = 18",
    "motors.steer.signal = 13",
    "servos.pan.signal = 27",
)
HAT = (
    *SERVOS,
    'motors.drive.driver = "hat-esc"',
    "motors.drive.channel = 0",
    'motors.steer.driver = "hat-servo"',
    "motors.steer.channel = 1",
    "motors.drive.unguarded = true",
    "rig.loops = [5]",
    *ESC,
)
PULSES = "esc-pulses,esc-rate,stop-finger,stop-wheels-killed"


def test_hil_measures_the_pulses_of_an_esc(tmp_path: Path) -> None:
    settings = (f"--set={line}" for line in PIGPIO)
    words = command("--only", PULSES, "--report", str(tmp_path), *settings)
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {one.verdict for one in report(tmp_path).results} == {"passed"}


def measured(
    home: Path, lines: tuple[str, ...], names: str, pins: str = "", really: tuple[str, ...] = ()
) -> dict[str, Result]:
    """Return the results of some checks on a bench of its own."""
    with bench(paths.HARDWARE / "rig.toml", lines, home, pins=pins, really=really) as rig:
        found = apart(lambda: list(runner.run(runner.chosen(CHECKS, names), rig, 1, print)))
    return {one.name: one for one in found}


def test_hil_measures_the_pulses_of_an_esc_on_the_kernels_pwm(tmp_path: Path) -> None:
    found = measured(tmp_path, KERNEL, PULSES, pins="kernel")
    assert {one.verdict for one in found.values()} == {"passed"}, figures([*found.values()])


FAST = 1.03
"""Clock of a chip that runs 3 % fast: its neutral pulse of 1500 us is 44 us short."""


def test_hil_measures_the_clock_of_a_pca9685_and_names_the_line_that_corrects_it(
    tmp_path: Path,
) -> None:
    really = (f"pca9685.clock = {FAST}",)
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    before = measured(tmp_path / "before", HAT, "esc-pulses,pca9685-clock", really=really)
    assert {one.verdict for one in before.values()} == {"failed"}
    line = re.search(r"pca9685\.clock = [\d.]+", before["pca9685-clock"].why)
    assert line is not None and float(line.group().split()[-1]) == pytest.approx(FAST, abs=0.004)
    names = f"{PULSES},pca9685-clock"
    after = measured(tmp_path / "after", (*HAT, line.group()), names, really=really)
    assert {one.verdict for one in after.values()} == {"passed"}, figures([*after.values()])
    worst = after["esc-pulses"].worst
    assert worst is not None and worst <= 5.0


def test_hil_measures_rest_limits_and_speed_of_a_servo(tmp_path: Path) -> None:
    words = command("--only", "servo-angles,servo-speed", "--report", str(tmp_path))
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    angles, speed = report(tmp_path).results
    assert angles.worst is not None and angles.worst <= 5.0
    assert speed.worst is not None and 80.0 <= speed.worst <= 110.0


@pytest.mark.smoke
@pytest.mark.parametrize("pins", BENCH_PINS)
def test_hil_measures_the_bench_and_writes_a_report(tmp_path: Path, pins: str) -> None:
    words = command("--pins", pins, "--only", SHORT, "--report", str(tmp_path))
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    made = report(tmp_path)
    assert made.where == "bench" and "4 passed." in done.stdout
    assert {one.name for one in made.results} == set(SHORT.split(","))
    assert len(ET.parse(tmp_path / "report.xml").getroot()) == 4
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.soak
@pytest.mark.long
def test_hil_repeats_all_checks_twenty_times(tmp_path: Path) -> None:
    words = command("--repeat", "20", "--report", str(tmp_path))
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [one for one in report(tmp_path).results if not one.metal]
    assert [len(one.values) for one in ran] == [20] * len(ran)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    mark = f"{MARK}={os.getpid()}-{number.value}"
    process = subprocess.Popen(
        command("--only", "pins-levels", "--repeat", "1000", "--report", str(tmp_path)),
        env={**os.environ, MARK: mark.partition("=")[2]},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: len(alive(mark.encode())) > 5, "no bench", 30.0, 0.1)
        if number == signal.SIGINT:  # a terminal sends it to all
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130 and "nothing was written" in said, said
        wait_for(lambda: not alive(mark.encode()), "something is left", 10.0, 0.1)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchRig]:
    home = tmp_path_factory.mktemp("hil")
    with bench(paths.HARDWARE / "rig.toml", (), home) as made:
        yield made


def test_metal_rig_measures_by_edges_alone(emulated: BenchRig) -> None:
    """The same checks run, with the units of the bench instead of systemd's.

    test_who_stops.py checks the stop times: edges that pigpiod sends are later.
    """
    rig = MetalRig(emulated.profile, emulated.port, emulated._pid)

    def measured(names: str) -> list[Result]:
        return apart(lambda: list(runner.run(runner.chosen(CHECKS, names), rig, 1, print)))

    found = measured(ON_METAL)
    # A busy machine is late, or stops the car before the failure, and may do so at all three tries.
    late = [one for one in found if one.missed or one.verdict == "failed"]
    found = [measured(one.name)[0] if one in late else one for one in found]
    stops = [one for one in found if one.group == "stops"]
    others = {one.verdict for one in found if one.group != "stops"}
    assert others == {"passed"}, figures(found)
    for one in stops:
        if not ROOT and "wheels" in one.name:
            assert one.verdict == "not run"
        else:
            assert one.worst is not None and one.worst < 2 * one.limit.most, one.why


def test_glass_check_without_browser_is_not_run(
    emulated: BenchRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMIUM", "/no/chromium")
    rig = MetalRig(emulated.profile, emulated.port, emulated._pid)
    for one in (emulated, rig):
        (found,) = runner.run(runner.chosen(CHECKS, "camera-glass"), one, 1, print)
        assert found.verdict == "not run" and "hil --browser" in found.why


def seen_at_all(name: str = "camera-glass") -> tuple[Check]:
    """Return a check without its limit. `make soak` checks the delay, because a browser on a
    machine that does other work may be late. This test only checks that the picture is seen."""
    (check,) = runner.chosen(CHECKS, name)
    return (dataclasses.replace(check, limit=Limit(10.0, "s", "this test")),)


def test_own_browser_shows_the_led(emulated: BenchRig) -> None:
    (found,) = runner.run(seen_at_all(), emulated, 1, print)
    assert found.verdict == "passed" and found.worst, found.why


def test_user_browser_shows_the_led_by_mse_repeatedly(
    emulated: BenchRig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The setting is like plain http on a LAN; the page is opened once."""
    rig = MetalRig(emulated.profile, emulated.port, emulated._pid, person=True)
    rig.host = "localhost"
    opened: list[subprocess.Popen[bytes]] = []

    def open_it(address: str) -> str:
        words = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path}", f"{address}&path=mse"]
        opened.append(subprocess.Popen(with_pdeathsig(words), stderr=subprocess.DEVNULL))
        return address

    monkeypatch.setattr(browsers, "invitation", open_it)
    try:
        (found,) = runner.run(seen_at_all(), rig, 2, print)
    finally:
        for one in opened:
            one.terminate()
            one.wait(10.0)
    assert found.verdict == "passed" and len(found.values) == 2, found.why
    assert len(opened) == 1 and "hil?port=" in capsys.readouterr().out


@pytest.mark.parametrize("delay_s", [0.03, 0.12])
def test_light_sensor_measures_the_known_delay(
    emulated: BenchRig, delay_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensor is simulated at its pin; LED, edges and clock are those of a car."""
    monkeypatch.setattr(hil_rig, "SCREEN_S", delay_s)
    monkeypatch.setattr(camera, "DARK_S", 0.2)
    monkeypatch.setattr(camera, "SEEN_S", 5.0)
    said: list[str] = []
    screen = seen_at_all("camera-screen")
    (found,) = apart(lambda: list(runner.run(screen, emulated, 20, said.append)))
    assert found.verdict == "passed" and len(found.values) == 20, figures([found])
    assert delay_s <= statistics.median(found.values) < delay_s + 0.08, found.values
    assert "of 20; 0 missed" in said[1]


def test_light_sensor_that_misses_flashes_is_counted(
    emulated: BenchRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some flashes end before their light is on the screen."""
    delays_s = itertools.cycle([0.02, 0.02, 9.0])
    monkeypatch.setattr(camera, "DARK_S", 0.1)
    monkeypatch.setattr(camera, "SEEN_S", 1.5)
    act = emulated.edges

    @contextlib.contextmanager
    def edges(*arguments: Any) -> Iterator[Edges]:
        monkeypatch.setattr(hil_rig, "SCREEN_S", next(delays_s))
        with act(*arguments) as opened:
            yield opened

    monkeypatch.setattr(emulated, "edges", edges)
    (found,) = runner.run(runner.chosen(CHECKS, "camera-screen"), emulated, 9, print)
    assert (found.verdict, found.missed, len(found.values)) == ("failed", 3, 6), found.why
    assert "missed a flash" in found.why


def test_metal_rig_says_why_checks_are_not_run(emulated: BenchRig) -> None:
    rig = MetalRig(emulated.profile, emulated.port, emulated._pid)
    only = "stop-pigpiod-killed,metal-throttled"
    found = list(runner.run(runner.chosen(CHECKS, only), rig, 1, print))
    assert [one.verdict for one in found] == ["not run", "not run"]
    words = {one.name: one.why for one in found}
    assert words["metal-throttled"] == "this is no Raspberry Pi"
    if ROOT:
        assert "the check ends pigpiod" in words["stop-pigpiod-killed"]

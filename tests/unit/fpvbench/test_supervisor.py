"""Messages of the bench: its address, and start failures."""

import asyncio
import dataclasses
import logging
import os
import subprocess
from pathlib import Path

import pytest

from fpvbench import supervisor, units
from fpvcar.config import ConfigError, Profile, profiles
from fpvcar.config.pwm import MOST_HZ, over_peak
from fpvcar.runtime import arguments, paths


class Beside:
    """Unit that starts beside the car."""

    def __init__(self) -> None:
        self.started = False

    async def run(self) -> None:
        self.started = True


def options_of(port: int = 1, also: tuple[str, ...] = ("fpvstation",)) -> supervisor.Options:
    path = paths.HARDWARE / "bench.toml"
    return supervisor.Options(path, (), "127.0.0.1", port, 1, False, True, also=also)


async def greet(options: supervisor.Options, beside: Beside) -> None:
    profile = profiles.load(paths.HARDWARE / "bench.toml", ())
    await supervisor._greet(options, profile, beside)  # type: ignore[arg-type]


async def test_unanswered_bench_logs_its_address_and_waits_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "READY_S", 0.01)
    beside = Beside()
    with caplog.at_level(logging.ERROR), pytest.raises(TimeoutError):
        await asyncio.wait_for(greet(options_of(), beside), 0.1)
    assert "nothing answers at 127.0.0.1:1" in caplog.text and not beside.started


async def test_program_beside_the_car_starts_behind_the_banner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for also in ((), ("fpvstation",)):
            beside = Beside()
            await greet(options_of(port, also), beside)
            assert beside.started == bool(also)
            assert "is ready" in capsys.readouterr().out


@pytest.mark.parametrize(("code", "again"), [("exit(1)", False), ("os.kill(os.getpid(), 9)", True)])
async def test_program_beside_is_restarted_after_a_signal_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, again: bool
) -> None:
    monkeypatch.setattr(units, "RESTART_S", 0.0)
    (tmp_path / "beside.py").write_text(f"import os; {code}")
    changes = asyncio.Queue[None]()
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    unit = units.Unit("beside", ["beside"], env, lambda: changes.put_nowait(None), may_exit=True)
    running = asyncio.create_task(unit.run())
    async with asyncio.timeout(20.0):
        for _ in range(3 if again else 2):  # it starts, ends, and starts again
            await changes.get()
        if not again:
            await running
    assert running.done() != again
    running.cancel()
    await unit.stop()


@pytest.mark.parametrize(("verbose", "level"), [(False, logging.WARNING), (True, logging.INFO)])
def test_parts_of_the_bench_log_their_progress_on_request_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verbose: bool, level: int
) -> None:
    profile = profiles.load(paths.HARDWARE / "bench.toml", ())
    options = dataclasses.replace(options_of(), verbose=verbose)
    bench = supervisor.Bench(profile, options, tmp_path)
    monkeypatch.setenv(arguments.QUIET, bench._env[arguments.QUIET])
    assert arguments.log_level() == level


def test_units_near_the_pins_get_session_priority() -> None:
    """If sessions are groups of the scheduler, the nice value of a process has little effect."""
    said = subprocess.run(
        ["sh", "-c", "nice; cat /proc/self/autogroup || true"],
        preexec_fn=lambda: units.leash(supervisor.NEAR_PINS),
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
    )
    nice, *group = said.stdout.splitlines()
    may = os.geteuid() == 0
    assert int(nice) == (supervisor.NEAR_PINS if may else os.nice(0))
    for line in group:
        assert line.endswith(f" nice {supervisor.NEAR_PINS if may else 0}")


@pytest.mark.parametrize("wire", ["22", "22,22", "22,32", "a,b", ""])
def test_invalid_wire_is_refused(wire: str) -> None:
    options = dataclasses.replace(options_of(), wires=("5,6", wire))
    with pytest.raises(ConfigError, match="expected two GPIO, as in --wire 22,27"):
        asyncio.run(supervisor.run(options))


def chosen(name: str, pins: str, *asked: str) -> Profile:
    """Return a profile as the bench emulates it with --pins."""
    path = paths.HARDWARE / name
    return profiles.load(
        path, (*asked, *supervisor.emulated_pins(profiles.load(path, asked), pins))
    )


@pytest.mark.parametrize(
    ("backend", "pins", "expected"),
    [
        ("auto", "", "pigpio"),
        ("pigpio", "", "pigpio"),
        ("linux", "", "linux"),
        ("pigpio", "kernel", "linux"),
        ("linux", "pigpio", "pigpio"),
    ],
)
def test_bench_drives_the_emulated_pins_of_a_profile(
    backend: str, pins: str, expected: str
) -> None:
    made = chosen("bench.toml", pins, f'pins.backend = "{backend}"')
    assert made.pins.backend == expected
    assert made.i2c.backend == (expected if pins else "pigpio")


def test_pigpiod_has_no_kernel_pwm() -> None:
    asked = ('pins.backend = "linux"', "pins.pwm = [18]")
    assert chosen("mx1508-servo.toml", "kernel", *asked).pins.pwm == (18,)
    assert chosen("mx1508-servo.toml", "pigpio", *asked).pins.pwm == ()


def test_motors_have_resistors_for_slow_pulses_on_the_kernels_pins() -> None:
    assert over_peak(chosen("bench.toml", "pigpio"), MOST_HZ)
    assert not over_peak(chosen("bench.toml", "kernel"), MOST_HZ)


def test_pigpiod_gets_its_wires_and_its_pipes(tmp_path: Path) -> None:
    profile = profiles.load(paths.HARDWARE / "bench.toml", ())
    options = supervisor.Options(
        Path(), (), "127.0.0.1", 1, 1, False, True, ("22,27", "5,6"), tmp_path / "mine"
    )
    argv = supervisor.Bench(profile, options, tmp_path)._pigpiod_options()
    assert argv[4:8] == ["--pipe-dir", str(tmp_path / "mine"), "--wire=22,27", "--wire=5,6"]
    plain = supervisor.Options(Path(), (), "127.0.0.1", 1, 1, False, True)
    argv = supervisor.Bench(profile, plain, tmp_path)._pigpiod_options()
    assert argv[4:6] == ["--pipe-dir", str(tmp_path / "dev")]


def test_bench_with_the_page_s_port_for_pins_ends_before_it_starts() -> None:
    options = supervisor.Options(
        paths.HARDWARE / "bench.toml", ("pins.port = 9001",), "0.0.0.0", 9000, 1, False, True
    )
    with pytest.raises(ConfigError, match="pins.port = 9001"):
        asyncio.run(supervisor.run(options))

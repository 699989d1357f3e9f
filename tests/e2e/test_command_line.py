"""The command line for a newcomer: clear refusals, Ctrl-C, the files left."""

import argparse
import importlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.cameras.video_source import encode
from testkit.driver import Driver, open_socket
from testkit.harness import SMALL, RunningBench, wait_for
from testkit.network.ports import free_port

import fpvsites.__main__ as sites
import fpvstation.__main__ as station
from fpvcar import __version__
from fpvcar.cli import command_line as car
from fpvcar.video.h264 import is_key
from fpvcar.wire.camera import pack_record
from fpvcar.wire.video import parse_video

pytestmark = pytest.mark.e2e
PARSERS = {"fpvcar": car.parser, "fpvsites": sites.command_line, "fpvstation": station.command_line}


def fpvcar(
    *arguments: str, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run one command that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "fpvcar", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **(env or {})},
    )


def test_help_names_commands_options_and_address() -> None:
    done = fpvcar("--help")
    assert done.returncode == 0
    for word in ("bench", "run", "wheels", "--host 0.0.0.0", "http://127.0.0.1:8080/"):
        assert word in done.stdout


def verbs(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """Yield the words of the program alone, of each verb, and of the verbs below it."""
    yield []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield from ([name, *words] for words in verbs(verb))


@pytest.mark.smoke
def test_each_verb_of_each_program_answers_help(
    rdma_tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for program, parser in PARSERS.items():
        main = importlib.import_module(f"{program}.__main__").main
        every = list(verbs(parser()))
        assert len(every) > 5
        for words in every:
            with pytest.raises(SystemExit) as ended:
                main([*words, "--help"])
            usage = " ".join(["usage:", program, *words])
            said = " ".join(capsys.readouterr().out.split())
            assert ended.value.code == 0 and said.startswith(usage), words
    for tool in ("rdsend", "rdrecv", "rdpipe", "rdcp"):
        done = subprocess.run([rdma_tools / tool, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and tool in done.stdout


def test_version_option_prints_version() -> None:
    done = fpvcar("--version")
    assert (done.returncode, done.stdout) == (0, f"fpvcar {__version__}\n")


@pytest.mark.parametrize(
    "words", [["replay"], ["replay", "--page"], ["export", "--csv", "/tmp/nowhere"]]
)
def test_missing_recordings_are_refused_in_words(words: list[str]) -> None:
    done = fpvcar(*words, "/nope")
    assert done.returncode == 1 and "Errno" not in done.stderr
    assert done.stderr.startswith("fpvcar: /nope: no such file or folder; expected rec")


@pytest.mark.parametrize("line", ["foo", "pins.port", "camera.source=none"])
def test_malformed_set_option_is_refused_with_an_example(line: str) -> None:
    done = fpvcar("wheels", "--set", line)
    assert done.returncode == 2
    assert f"--set '{line}': " in done.stderr and "bench.toml" not in done.stderr
    assert "expected KEY=VALUE" in done.stderr
    assert "--set 'pins.port = 8889'" in done.stderr


def test_unknown_profile_key_suggests_the_nearest(tmp_path: Path) -> None:
    profile = tmp_path / "car.toml"
    profile.write_text('[car]\nname = "A"\n[motors.drive]\nforwad = 1\n')
    done = fpvcar("bench", "--profile", str(profile))
    assert done.returncode == 2
    assert "did you mean motors.drive.forward?" in done.stderr
    assert str(profile) in done.stderr and "Traceback" not in done.stderr


def test_pin_used_twice_is_refused() -> None:
    done = fpvcar("wheels", "--set", "lights.head = [17]")
    assert done.returncode == 2
    assert "GPIO 17 is already used by motors.drive.forward" in done.stderr


@pytest.mark.parametrize("which", ["port", "pigpio"])
def test_port_in_use_is_reported_with_the_next_step(which: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0 if which == "port" else free_port()))
        taken.listen()
        busy, free = taken.getsockname()[1], free_port()
        port, pigpio = (busy, free) if which == "port" else (free, busy)
        done = fpvcar("bench", f"--port={port}", f"--set=pins.port = {pigpio}")
    assert done.returncode == 2
    assert f"port {busy}: Address already in use; is another `make run` open?" in done.stderr
    assert "or try make run P" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["300.1.1.1", "192.0.2.1"])
def test_foreign_listen_address_is_refused_with_advice(host: str) -> None:
    done = fpvcar("bench", f"--host={host}", f"--port={free_port()}")
    assert done.returncode == 2
    assert f"cannot listen on {host}" in done.stderr
    assert "try an address of this computer" in done.stderr


@pytest.mark.smoke
def test_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    bench = RunningBench(tmp_path, *SMALL).wait_ready()
    wait_for(lambda: len(bench.children()) >= 6, "bench, four units and the camera")
    assert bench.stop(signal.SIGINT) == 0
    wait_for(lambda: bench.children() == [], f"left: {bench.children()}")


def test_make_run_takes_own_camera_and_ends_clean(tmp_path: Path) -> None:
    """CAMERA runs any program that writes Annex B; Ctrl-C ends everything."""
    film = tmp_path / "film"
    film.write_bytes(b"".join(pack_record(is_key(unit), 0, unit) for unit in encode(30)))
    fake = Path(__file__).parents[2] / "testkit" / "cameras" / "fake_camera.py"
    camera = shlex.join([sys.executable, str(fake), str(film), "plain"])
    bench = RunningBench(tmp_path, f"CAMERA={camera}", make=True)
    try:
        bench.wait_ready()
        with Driver(bench.port) as driver:
            wait_for(lambda: driver.state.get("camera") == "ok", "no picture")
        with open_socket(bench.port, "/ws/video?id=watcher-1") as socket:
            frames = [socket.recv(timeout=5) for _ in range(40)]
        headers = [parse_video(bytes(one))[0] for one in frames]  # type: ignore[arg-type]
        assert headers[0].key, "a viewer starts at a key frame"
        assert any(not one.key for one in headers)
    finally:
        status = bench.stop(signal.SIGINT)
    assert status in (0, 2, -signal.SIGINT), bench.log()  # the last two are from make
    wait_for(lambda: bench.children() == [], f"left: {bench.children()}")


def first_screen(home: Path, *options: str) -> str:
    """Return the output of `make run` until its station has started, and of Ctrl-C."""
    bench = RunningBench(home, *options, make=True)
    try:
        bench.wait_ready()
        wait_for(lambda: "The station's page" in bench.log(), "no station", 30.0)
    finally:
        bench.stop(signal.SIGINT)
    return bench.log()


def test_make_run_shows_progress_on_request_only(tmp_path: Path) -> None:
    """Otherwise it shows the banner and the station's page, at a second start, too."""
    progress = re.compile(r"(searching|listening on .*|: ok|paired .*|Hz)$", re.M)
    for options, shown in ((), False), ((), False), (("V=1",), True):
        log = first_screen(tmp_path, *options)
        assert bool(progress.search(log)) == shown, log
        assert "Connection refused" not in log and "nonce" not in log, log
        assert log.endswith("has stopped, and all its processes have ended.\n")


def test_ctrl_c_during_the_start_shows_no_traceback(tmp_path: Path) -> None:
    """Python imports the program for a part of a second before it can handle a signal."""
    (tmp_path / "msgspec.py").write_text("import os\nos.kill(os.getpid(), 2)")
    done = fpvcar("bench", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (130, "")


def test_killed_bench_leaves_no_process(tmp_path: Path) -> None:
    bench = RunningBench(tmp_path, *SMALL).wait_ready()
    bench.process.kill()
    wait_for(lambda: bench.children() == [], "something lives on")
    bench.stop()


def test_missing_egl_is_shown_and_the_car_stands(tmp_path: Path) -> None:
    # The loader of EGL finds no driver in an empty folder.
    nothing = {"__EGL_VENDOR_LIBRARY_DIRS": str(tmp_path)}
    bench = RunningBench(tmp_path, env=nothing)
    try:
        bench.wait_ready()
        with Driver(bench.port) as driver, bench.watch() as watch:
            wait_for(lambda: "libegl1" in str(driver.state.get("camera")), "no reason", 60.0)
            driver.drive(1.0, 0.0)
            time.sleep(0.3)
            assert not watch.now.driving
    finally:
        bench.stop()


def test_missing_pigpiod_is_reported_with_its_port(tmp_path: Path) -> None:
    port = free_port()
    wheels = subprocess.Popen(
        [sys.executable, "-m", "fpvcar", "wheels", f"--set=pins.port = {port}"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RUNTIME_DIRECTORY": str(tmp_path)},
    )
    assert wheels.stderr is not None
    try:
        said = wheels.stderr.readline()
        assert str(port) in said and "pigpiod" in said
    finally:
        wheels.terminate()
        wheels.wait(10)
        wheels.stderr.close()

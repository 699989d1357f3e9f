"""Loop around the wheels: it sleeps until work is due."""

import select
import signal
import socket
import stat
import threading
import time
from pathlib import Path

import pytest
from testkit.pins.fake_pins import PlayedAccess
from testkit.pins.wheels_car import at_each_line

from fpvcar.config import profiles
from fpvcar.devices.linux import pins_off
from fpvcar.devices.motors.bridge import MotorBoard
from fpvcar.devices.pins import PinsFault
from fpvcar.runtime import paths, sd_notify
from fpvcar.wheels.controller import Wheels
from fpvcar.wheels.pins_off_client import MOTOR_PINS, ask_helper, write_pins
from fpvcar.wheels.service import Service


def nobody() -> MotorBoard:
    raise PinsFault("no pins here")


def test_harmless_signal_leaves_no_busy_loop(tmp_path: Path) -> None:
    """The signal's byte is taken from the pipe; otherwise poll would return at once for good."""
    wheels = Wheels(profiles.load(paths.HARDWARE / "bench.toml"), PlayedAccess(nobody))
    # A clock that stands still: the next try for the pins never comes due.
    with Service(wheels, tmp_path, lambda: 0) as service:
        wheels.tick(0)
        before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
        try:
            signal.raise_signal(signal.SIGUSR1)
            service._round()  # wakes up for it
            began_s = time.monotonic()
            service._round()
            assert time.monotonic() - began_s > 0.02, "it did not wait"
        finally:
            signal.signal(signal.SIGUSR1, before)


def test_loop_feeds_the_watchdog_of_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle loop waits no longer than the unit's watchdog."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "20000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        wheels = Wheels(profiles.load(paths.HARDWARE / "bench.toml"), PlayedAccess(nobody))
        heard = []
        with Service(wheels, tmp_path, time.monotonic_ns) as service:

            def listen() -> None:
                while (word := manager.recv(100)) != b"end":
                    heard.append(word)
                    service._ending = heard.count(b"WATCHDOG=1") >= 5

            listener = threading.Thread(target=listen)
            listener.start()
            service.run()
            sd_notify.notify("end")
            listener.join()
    assert heard[0] == b"READY=1" and heard[1:] == [b"WATCHDOG=1"] * (len(heard) - 1)


def test_helper_reads_the_published_pins_and_chips(tmp_path: Path) -> None:
    write_pins(tmp_path, (17, 27), ((1, 0x60),), ((12, "auto"), (13, "1f00098000.pwm")))
    said = pins_off.parse((tmp_path / MOTOR_PINS).read_text())
    assert said == ([17, 27], [(1, 0x60)], [(12, "auto"), (13, "1f00098000.pwm")])
    assert stat.S_IMODE((tmp_path / MOTOR_PINS).stat().st_mode) == 0o640
    assert Path(pins_off.PINS).name == MOTOR_PINS


def test_helper_is_asked_before_the_log_line(tmp_path: Path) -> None:
    """The reader of the log may hang, and pigpiod does."""
    path = tmp_path / "pins-off.sock"
    with socket.socket(socket.AF_UNIX) as helper:
        helper.bind(str(path))
        helper.listen()
        with at_each_line(lambda: select.select([helper], [], [], 0)[0]) as asked:
            ask_helper(path, 812)
        assert asked == [[helper]]
        connection, _ = helper.accept()
        with connection:
            assert connection.recv(pins_off.REQUEST_MAX_B) == b"812"


def test_missing_helper_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ask_helper(tmp_path / "pins-off.sock")
    assert [one.getMessage() for one in caplog.records] == [
        f"no helper at {tmp_path / 'pins-off.sock'}: No such file or directory"
    ]

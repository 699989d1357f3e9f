"""Unmodified `pigpio` client that drives the emulator."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pigpio
import pytest
from testkit.pins.pigpio_clients import ECHO, TRIGGER, settled, stop, until
from testkit.pins.pigpiod import Emulator, start_emulator

from fpvbench.outside import drive
from fpvbench.pigpiod.__main__ import main


def test_versions(pi: Any) -> None:
    assert (pi.get_pigpio_version(), pi.get_hardware_revision()) == (79, 0xA020D3)
    now_us = time.monotonic_ns() // 1000
    assert pigpio.tickDiff(now_us & 0xFFFFFFFF, pi.get_current_tick()) < 5_000_000


def test_outputs(pi: Any, running: Emulator) -> None:
    pi.set_mode(17, pigpio.OUTPUT)
    pi.write(17, 1)
    assert (pi.get_mode(17), pi.read(17), running.soc.pin[17].duty()) == (1, 1, 1.0)
    pi.set_bank_1(1 << 27)
    pi.clear_bank_1(1 << 17)
    assert pi.read_bank_1() >> 17 & 1 == 0
    assert pi.read_bank_2() == 0x3FC01C  # GPIO 34-36 and 46-53 are pulled up


def test_pwm(pi: Any, running: Emulator) -> None:
    pi.set_PWM_frequency(17, 500)
    pi.set_PWM_range(17, 1000)
    pi.set_PWM_dutycycle(17, 250)
    assert running.soc.pin[17].pwm == 500 << 32 | 2000
    assert (pi.get_PWM_dutycycle(17), pi.get_PWM_range(17)) == (250, 1000)
    assert (pi.get_PWM_real_range(17), pi.get_PWM_frequency(17)) == (400, 500)
    pi.set_servo_pulsewidth(18, 1500)
    assert pi.get_servo_pulsewidth(18) == 1500
    pi.hardware_PWM(12, 25_000, 300_000)
    assert running.soc.pin[12].duty() == pytest.approx(0.3, abs=1e-3)


def test_errors_raise(pi: Any) -> None:
    for call in (
        lambda: pi.write(1, 1),
        lambda: pi.set_PWM_dutycycle(17, 256),
        lambda: pi.get_PWM_dutycycle(22),
        lambda: pi.read(54),
        lambda: pi.wave_create(),
        lambda: pi.spi_open(2, 50_000),
        lambda: pi.serial_open("/dev/ttyAMA0", 9600),
        lambda: pi.file_open("/etc/passwd", pigpio.FILE_READ),
    ):
        with pytest.raises(pigpio.error):
            call()  # type: ignore[no-untyped-call]


def test_callbacks_tally_and_wait(pi: Any, running: Emulator) -> None:
    seen: list[tuple[int, int, int]] = []
    first = pi.callback(22, pigpio.EITHER_EDGE, lambda *edge: seen.append(edge))
    second = pi.callback(22, pigpio.RISING_EDGE)
    time.sleep(0.05)
    for number in range(6):
        drive(running.soc, 22, 1 - number % 2)
        assert until(lambda wanted=number + 1: len(seen) >= wanted)  # type: ignore[misc]
    assert [edge[1] for edge in seen] == [1, 0, 1, 0, 1, 0]
    assert second.tally() == 3
    ticks = [edge[2] for edge in seen]
    assert ticks == sorted(ticks)
    assert not pi.wait_for_edge(22, pigpio.RISING_EDGE, 0.2)
    first.cancel()
    second.cancel()


def test_watchdog(pi: Any) -> None:
    seen: list[int] = []
    callback = pi.callback(22, pigpio.EITHER_EDGE, lambda g, level, t: seen.append(level))
    pi.set_watchdog(22, 20)
    assert until(lambda: seen.count(pigpio.TIMEOUT) >= 3)
    pi.set_watchdog(22, 0)
    callback.cancel()


def test_events(pi: Any) -> None:
    events: list[int] = []
    listener = pi.event_callback(7, lambda event, tick: events.append(event))
    pi.event_trigger(7)
    assert until(lambda: events == [7])
    listener.cancel()


def test_ultrasound_by_trigger(pi: Any, running: Emulator) -> None:
    running.soc.world.range_m[0] = 1.5
    pi.set_mode(TRIGGER, pigpio.OUTPUT)
    pi.write(TRIGGER, 0)
    ticks: list[int] = []
    callback = pi.callback(ECHO, pigpio.EITHER_EDGE, lambda g, v, t: ticks.append(t))
    pi.gpio_trigger(TRIGGER, 10, 1)
    assert until(lambda: len(ticks) == 2)
    assert pigpio.tickDiff(*ticks) == pytest.approx(1.5 * 2e6 / 343, abs=5)
    callback.cancel()


def test_scripts(pi: Any) -> None:
    script = pi.store_script(b"tag 0 inr p0 mils 5 jmp 0")
    assert until(lambda: pi.script_status(script)[0] != pigpio.PI_SCRIPT_INITING)
    pi.run_script(script, [7])
    assert until(lambda: pi.script_status(script)[1][0] > 9)
    pi.update_script(script, [5])
    assert pi.script_status(script)[0] == pigpio.PI_SCRIPT_RUNNING
    pi.stop_script(script)
    pi.delete_script(script)
    with pytest.raises(pigpio.error):
        pi.stop_script(script)


def test_i2c(pi: Any, running: Emulator) -> None:
    running.soc.world.battery_v = 7.4
    handle = pi.i2c_open(1, 0x40)
    count, data = pi.i2c_read_i2c_block_data(handle, 2, 2)
    assert (count, int.from_bytes(data, "big") >> 3) == (2, 1850)
    pi.i2c_write_device(handle, [5, 0x10, 0])
    assert pi.i2c_read_device(handle, 2) == (2, bytearray(b"\x10\0"))
    assert pi.i2c_zip(handle, [7, 1, 0, 6, 2, 0]) == (2, bytearray(b"\x39\x9f"))
    pi.i2c_close(handle)
    absent = pi.i2c_open(1, 0x29)
    with pytest.raises(pigpio.error, match="I2C read failed"):
        pi.i2c_read_byte(absent)


def test_pipe_notifications(pi: Any, tmp_path: Path) -> None:
    handle = pi.notify_open()
    pi.notify_begin(handle, 1 << 17)
    pi.write(17, 1)
    with (tmp_path / f"pigpio{handle}").open("rb", buffering=0) as pipe:
        assert len(pipe.read(12)) == 12
    pi.notify_close(handle)


def test_thirty_two_clients_are_served_at_once(running: Emulator) -> None:
    clients = [pigpio.pi("127.0.0.1", running.port) for _ in range(32)]
    assert all(client.connected for client in clients)
    for number, client in enumerate(clients):
        client.write(17, number % 2)
    assert running.soc.pin[17].out == 1
    for client in clients:
        stop(client)


def test_pwm_outlives_the_daemon_and_stops_with_the_next(tmp_path: Path) -> None:
    first = start_emulator(tmp_path)
    client = pigpio.pi("127.0.0.1", first.port)
    client.set_PWM_dutycycle(17, 128)
    client.write(5, 1)
    stop(client)
    first.process.kill()
    first.close()
    assert first.soc.pin[17].duty() == pytest.approx(0.5, abs=0.01)
    second = start_emulator(tmp_path, fresh=False)
    assert (second.soc.pin[17].pwm, second.soc.pin[5].duty()) == (0, 1.0)
    assert second.close() == 0


def test_port_in_use_is_reported_in_one_line(running: Emulator, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "fpvbench.pigpiod", "--soc"]
    argv += [str(tmp_path / "soc"), "--port", str(running.port)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1 and "in use" in ended.stderr
    argv[4] = str(tmp_path / "absent" / "soc")
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)


def test_emulator_alone_makes_its_own_chip_and_removes_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fpvbench.pigpiod", "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().rsplit(":", 1)[-1]
        client = pigpio.pi("127.0.0.1", int(port))
        assert client.connected
        client.write(17, 1)
        assert client.read(17) == 1
        stop(client)
        process.terminate()
        assert process.wait(20.0) == 0
    finally:
        process.kill()
        process.communicate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--spi=9:mcp3008", "SELECT_GPIO 8, 7 (main bus) or 18, 17, 16 (auxiliary)"),
        ("--spi=8:mcp3004", "'8:mcp3004': expected SELECT_GPIO:mcp3008"),
        ("--i2c=1:0x29:vl6180", "BUS:RANGE:vl53l0x"),
        ("--hcsr04=5,6", "'5,6': expected TRIGGER,ECHO,RANGE"),
        ("--wire=22,22", "'22,22': expected two different pins, GPIO 0 to 31"),
        *((f"--wire={pair}", "GPIO,GPIO") for pair in ("22", "22,32", "-1,5", "a,b", "1,2,3")),
    ],
)
def test_emulator_option_that_is_refused_names_the_choices(
    option: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([option])
    assert words in capsys.readouterr().err


def test_waves_over_a_wire(pi: Any) -> None:
    """Act like a program for infrared or steppers: build, repeat, chain, stop."""
    pi.set_mode(27, pigpio.OUTPUT)
    pi.write(27, 0)
    seen: list[tuple[int, int]] = []
    callback = pi.callback(22, pigpio.EITHER_EDGE, lambda g, v, t: seen.append((v, t)))
    assert pi.wave_clear() == 0
    square = [pigpio.pulse(1 << 27, 0, 500), pigpio.pulse(0, 1 << 27, 1500)]
    assert pi.wave_add_generic(square) == 2
    wave = pi.wave_create()
    assert pi.wave_send_repeat(wave) == 5
    assert until(lambda: len(seen) >= 10)
    assert (pi.wave_tx_busy(), pi.wave_tx_at()) == (1, wave)
    pi.wave_tx_stop()
    settled(pi)
    assert not pi.wave_tx_busy() and pi.wave_tx_at() == 9999
    rises = [tick for level, tick in seen if level]
    gaps = [pigpio.tickDiff(*pair) for pair in zip(rises, rises[1:], strict=False)]
    assert set(gaps) == {2000}
    seen.clear()
    assert pi.wave_chain([255, 0, wave, 255, 1, 7, 0, 255, 2, 100, 0]) == 0
    assert until(lambda: not pi.wave_tx_busy())
    settled(pi)
    assert len(seen) >= 13  # a pin that was left high swallows the first edge
    pi.wave_delete(wave)
    with pytest.raises(pigpio.error, match="non existent wave id"):
        pi.wave_send_once(wave)
    callback.cancel()


def test_bit_banged_buses_work(pi: Any) -> None:
    assert pi.bb_i2c_open(5, 6, 100_000) == 0
    with pytest.raises(pigpio.error, match="GPIO already in use"):
        pi.bb_spi_open(5, 9, 10, 11)
    written = [4, 0x53, 2, 7, 1, 0x32, 3, 0]
    assert pi.bb_i2c_zip(5, written)[0] == pigpio.PI_I2C_WRITE_FAILED
    assert pi.bb_i2c_close(5) == 0
    assert pi.bb_spi_open(8, 9, 10, 11, 100_000, 3) == 0
    assert pi.bb_spi_xfer(8, [1, 2, 0xFF]) == (3, bytearray([1, 2, 0xFF]))
    assert pi.bb_spi_close(8) == 0


def test_spi(pi: Any) -> None:
    loop, adc = pi.spi_open(0, 100_000), pi.spi_open(1, 100_000)
    assert pi.spi_xfer(loop, b"echo") == (4, bytearray(b"echo"))  # 9 and 10 are wired
    count, data = pi.spi_xfer(adc, [1, 0x90, 0])
    assert (count, (data[1] & 3) << 8 | data[2]) == (3, 512)
    assert pi.spi_write(loop, [1, 2, 3]) == 3
    pi.spi_close(loop)
    pi.spi_close(adc)
    assert pi.bsc_xfer(0, b"") == (0, 0, bytearray())

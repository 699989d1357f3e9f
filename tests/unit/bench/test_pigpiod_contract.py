"""The unmodified `pigpio` client and gpiozero drive the emulator, for real."""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pigpio
import pytest
from gpiozero import LED, PWMLED, Button, DistanceSensor, Motor, Robot, Servo
from gpiozero.pins.pigpio import PiGPIOFactory

from fpvcar.bench import soc as chip
from tests.rigs.pigpiod import Emulator, emulator, start_emulator

TRIGGER, ECHO = 20, 21
LIMIT_S = 10.0


def until(true: Callable[[], object]) -> bool:
    """Waits for a condition, far longer than it should take."""
    end_s = time.monotonic() + LIMIT_S
    while not true():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.005)
    return True


def stop(client: Any) -> None:
    """Stops a client and waits until its thread has read the answer to its NC."""
    thread = client._notify
    client.stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Emulator]:
    sonar, monitor = f"{TRIGGER},{ECHO},0", "1:0x40:ina219"
    options = ("--hcsr04", sonar, "--i2c", monitor, "--pipe-dir", str(tmp_path))
    with emulator(tmp_path, *options) as started:
        yield started


@pytest.fixture
def pi(running: Emulator) -> Iterator[Any]:
    client = pigpio.pi("127.0.0.1", running.port)
    assert client.connected
    yield client
    stop(client)


@pytest.fixture
def factory(running: Emulator) -> Iterator[PiGPIOFactory]:
    made = PiGPIOFactory(host="127.0.0.1", port=running.port)
    thread = made._connection._notify
    yield made
    made.close()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


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
        lambda: pi.spi_open(0, 50_000),
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
        running.soc.pin[22].external = 1 - number % 2
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
    callback = pi.callback(
        22, pigpio.EITHER_EDGE, lambda g, level, t: seen.append(level)
    )
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


def test_many_clients(running: Emulator) -> None:
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


def test_a_port_in_use_is_one_line(running: Emulator, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "fpvcar.bench.pigpiod", "--soc"]
    argv += [str(tmp_path / "soc"), "--port", str(running.port)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1 and "in use" in ended.stderr
    argv[4] = str(tmp_path / "absent")
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)


def test_led_and_button(factory: PiGPIOFactory, running: Emulator) -> None:
    with LED(5, pin_factory=factory) as led:
        led.on()
        assert running.soc.pin[5].duty() == 1.0
        led.toggle()
        assert running.soc.pin[5].duty() == 0.0
    # GPIO 7 is high after a reset; on a pin that was low when it connected, the
    # pigpio client would swallow the first press (reports carry levels, not edges).
    with Button(7, pin_factory=factory) as button:
        assert not button.is_pressed and running.soc.pin[7].pull == chip.PULL_UP
        presses: list[int] = []
        button.when_pressed = lambda: presses.append(1)
        running.soc.pin[7].external = 0
        assert button.wait_for_press(LIMIT_S)
        assert until(lambda: presses == [1])
        running.soc.pin[7].external = 1
        assert button.wait_for_release(LIMIT_S)


def test_button_with_bounce_time(factory: PiGPIOFactory, running: Emulator) -> None:
    with Button(7, bounce_time=0.02, pin_factory=factory) as button:
        time.sleep(0.05)
        running.soc.pin[7].external = 0
        assert button.wait_for_press(LIMIT_S)


def test_pwm_led(factory: PiGPIOFactory, running: Emulator) -> None:
    with PWMLED(6, pin_factory=factory) as led:
        led.value = 0.25
        assert running.soc.pin[6].duty() == pytest.approx(0.25, abs=0.01)
        assert led.value == pytest.approx(0.25, abs=0.01)
        led.off()
        assert running.soc.pin[6].duty() == 0.0


def test_robot(factory: PiGPIOFactory, running: Emulator) -> None:
    drive = Motor(17, 27, pin_factory=factory)
    other = Motor(24, 23, pin_factory=factory)
    with Robot(drive, other, pin_factory=factory) as robot:
        robot.forward(0.5)
        duties = [running.soc.pin[pin].duty() for pin in (17, 27, 24, 23)]
        assert duties == pytest.approx([0.5, 0, 0.5, 0], abs=0.01)
        robot.backward()
        duties = [running.soc.pin[pin].duty() for pin in (17, 27, 24, 23)]
        assert duties == [0, 1, 0, 1]
        robot.stop()
        assert not any(running.soc.pin[pin].duty() for pin in (17, 27, 24, 23))


def test_servo(factory: PiGPIOFactory, running: Emulator) -> None:
    with Servo(18, pin_factory=factory) as servo:
        for position, width_us in ((-1, 1000), (0, 1500), (1, 2000)):
            servo.value = position
            assert running.soc.pin[18].pwm >> 32 == pytest.approx(width_us, abs=25)


def test_distance_sensor(factory: PiGPIOFactory, running: Emulator) -> None:
    running.soc.world.range_m[0] = 0.8
    with DistanceSensor(
        echo=ECHO, trigger=TRIGGER, max_distance=2, queue_len=3, pin_factory=factory
    ) as sensor:
        assert until(lambda: math.isclose(sensor.distance, 0.8, abs_tol=0.01))
        running.soc.world.range_m[0] = 1.6
        assert until(lambda: math.isclose(sensor.distance, 1.6, abs_tol=0.01))

"""Contract of all pins: the fake, and the real client on the emulated chip."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from testkit.pins.fake_pins import FakePins
from testkit.pins.wheels import BENCH, START_S, Chip, until
from testkit.profiles import mx1508s

from fpvbench import soc as chips
from fpvcar import config
from fpvcar.config import Motors, profiles
from fpvcar.devices import backends
from fpvcar.devices.motors.bridge import MotorBoard, motor_drivers
from fpvcar.devices.pigpio import dead_man
from fpvcar.devices.pigpio.dead_man import MAGIC, ScriptDeadMan
from fpvcar.devices.pigpio.edges import PigpioEdges
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.devices.pins import DeadMan, Pins, PinsFault, PinsLost, PinsRefused, PinsSilent
from fpvcar.runtime import paths


@dataclass
class Bench:
    """Pins, a meter on them, and faults of the daemon."""

    pins: Pins
    duty: Callable[[int], float]
    cut: Callable[[], None]
    hang: Callable[[], None]


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    with Chip(tmp_path) as chip:
        yield chip


@pytest.fixture
def pins(chip: Chip) -> Iterator[PigpioPins]:
    pins = PigpioPins("127.0.0.1", chip.port, timeout_s=1.0)
    yield pins
    pins.close()


@pytest.fixture(params=["fake", "pigpio"])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "fake":
        fake = FakePins()
        return Bench(fake, fake.duty, fake.cut, fake.hang)
    chip, pins = (request.getfixturevalue(name) for name in ("chip", "pins"))
    return Bench(pins, lambda gpio: chip.soc.pin[gpio].duty(), chip.kill_pigpiod, chip.stop_pigpiod)


def shows(bench: Bench, **duties: float) -> None:
    for name, duty in duties.items():
        assert bench.duty(int(name[4:])) == pytest.approx(duty, abs=0.005), name


def test_write_drives_the_pin(bench: Bench) -> None:
    bench.pins.write(17, 1)
    shows(bench, gpio17=1.0, gpio27=0.0)
    bench.pins.write(17, 0)
    shows(bench, gpio17=0.0)


def test_pwm_is_a_share_of_time(bench: Bench) -> None:
    bench.pins.set_frequency(17, 800)
    for duty in (0.0, 0.14, 0.5, 1.0):
        bench.pins.pwm(17, duty)
        shows(bench, gpio17=duty)


def test_write_stops_a_pwm(bench: Bench) -> None:
    bench.pins.set_frequency(17, 800)
    bench.pins.pwm(17, 0.5)
    bench.pins.write(17, 0)
    shows(bench, gpio17=0.0)


def test_write_together(bench: Bench) -> None:
    bench.pins.write(17, 0)
    bench.pins.write(27, 0)
    bench.pins.write_together((17, 27), 1)
    shows(bench, gpio17=1.0, gpio27=1.0)
    bench.pins.write_together((17, 27), 0)
    shows(bench, gpio17=0.0, gpio27=0.0)


def test_servo_pulse_is_a_share_of_20_ms(bench: Bench) -> None:
    for pulse_us in (1500.0, 1000.0):
        bench.pins.servo(18, pulse_us)
        shows(bench, gpio18=pulse_us / 20_000)
    bench.pins.write(18, 0)
    shows(bench, gpio18=0.0)


def test_pin_of_the_system_is_refused(bench: Bench) -> None:
    with pytest.raises(PinsLost, match="GPIO 1: .*permission"):
        bench.pins.write(1, 1)


@pytest.mark.parametrize(("fail", "fault"), [("cut", PinsLost), ("hang", PinsSilent)])
def test_dead_daemon_is_lost_and_hung_one_silent(
    bench: Bench, fail: str, fault: type[Exception]
) -> None:
    bench.pins.write(17, 1)
    getattr(bench, fail)()
    with pytest.raises(fault):
        bench.pins.write(17, 0)
    shows(bench, gpio17=1.0)


# --- only the real client -----------------------------------------------------


def test_missing_daemon_is_reported_with_its_port_and_how_to_start_one(chip: Chip) -> None:
    chip.kill_pigpiod()
    refused = f"port {chip.port}: Connection refused(.|\n)*systemctl enable --now pigpiod"
    with pytest.raises(PinsLost, match=refused):
        PigpioPins("127.0.0.1", chip.port)
    with pytest.raises(PinsLost, match='Connection refused.* Pi 5 .*pins.backend = "auto"'):
        PigpioPins("::1", chip.port)


def test_daemon_that_listens_only_at_ipv6_is_found(tmp_path: Path) -> None:
    """Options of Debian's unit: pigpiod -l."""
    with Chip(tmp_path, "--host=::1", host="::1") as chip:
        pins = PigpioPins("127.0.0.1", chip.port)
        pins.write(17, 1)
        assert chip.soc.pin[17].level() == 1
        pins.close()


def test_unplugged_echo_pin_is_low(chip: Chip, pins: PigpioPins) -> None:
    chip.soc.pin[5].external = chips.FLOATING  # pulled up since its reset
    assert chip.soc.pin[5].level() == 1
    pins.input_pull_down(5)
    assert chip.soc.pin[5].level() == 0


def test_daemon_that_accepts_and_never_answers_is_silent(chip: Chip) -> None:
    chip.stop_pigpiod()
    with pytest.raises(PinsSilent, match="does not answer"):
        PigpioPins("127.0.0.1", chip.port)


def test_trigger_fault_is_raised_by_the_next_check(pins: PigpioPins) -> None:
    pins.trigger(20, 10)
    pins.trigger(20, 101, 0.001)  # pigpiod: 1 to 100 us
    with pytest.raises(PinsRefused, match="trigger GPIO 20: "):
        pins.check()
    pins.check()


def test_daemon_that_hangs_behind_a_trigger_is_silent(chip: Chip) -> None:
    pins = PigpioPins("127.0.0.1", chip.port, timeout_s=0.2)
    with contextlib.closing(pins):
        chip.stop_pigpiod()
        pins.trigger(20, 10)
        with pytest.raises(PinsSilent):
            pins.trigger(20, 10)


def test_two_edges_are_waited_for_together(chip: Chip) -> None:
    """The second edge arrives although the first was not read: Nagle's algorithm at the daemon
    waits for the kernel's acknowledgement."""
    with contextlib.closing(PigpioPins("127.0.0.1", chip.port, 1.0)) as pins:
        pins.write(21, 0)
        edges = PigpioEdges("127.0.0.1", chip.port, [21, 22], 1.0)
        with contextlib.closing(edges):
            pins.write(21, 1)
            later = threading.Timer(0.005, pins.write, [21, 0])
            later.start()
            assert [edge.level for edge in edges.read(5.0, 2)] == [1, 0]
            later.join()
            pins.write(21, 1)
            assert [edge.level for edge in edges.read(0.3, 2)] == [1], "in vain"
            assert edges.read(0.05, 2) == edges.read(0.05, 2) == edges.read(0.0) == []
            assert edges.level(21) == 1
            chip.pigpiod.kill()
            with pytest.raises(PinsFault):
                edges.read(START_S)


def test_smallest_duty_is_never_rounded_to_nothing(chip: Chip, pins: PigpioPins) -> None:
    pins.set_frequency(17, 800)
    pins.pwm(17, 1e-6)
    assert 0.0 < chip.soc.pin[17].duty() <= 1 / 250
    pins.pwm(17, 0.4)
    assert 0.4 - 1 / 250 < chip.soc.pin[17].duty() <= 0.4


def wake(dead_man: DeadMan) -> None:
    """Feed until it is awake: on a busy machine it may trip before it is asked."""

    def awake() -> bool:
        dead_man.feed()
        return dead_man.awake()

    until(awake, START_S, "it does not wake up")


def test_dead_man_stops_unless_fed(chip: Chip, pins: PigpioPins) -> None:
    dead_man = ScriptDeadMan(pins, (17, 27))
    assert not dead_man.awake(), "it starts tripped"
    wake(dead_man)
    dead_man.feed()
    pins.set_frequency(17, 800)
    pins.pwm(17, 0.5)
    until(lambda: chip.soc.pin[17].duty() == 0.0, START_S, "it does not stop")
    assert not dead_man.awake()


def test_dead_man_releases_a_brake(chip: Chip, pins: PigpioPins) -> None:
    dead_man = ScriptDeadMan(pins, (17, 27))
    wake(dead_man)
    pins.write(17, 0)
    pins.write(27, 0)
    pins.write_together((17, 27), 1)
    pin = chip.soc.pin
    until(lambda: pin[17].duty() == pin[27].duty() == 0.0, START_S, "it brakes for ever")


def test_dead_man_outlives_its_client_and_is_replaced(chip: Chip, pins: PigpioPins) -> None:
    for _ in range(40):  # a daemon has 32 slots
        with contextlib.closing(PigpioPins("127.0.0.1", chip.port, 1.0)) as former:
            ScriptDeadMan(former, (17, 27))
    found = [pins.client.script_status(slot) for slot in range(32)]
    ours = [values for status, values in found if status >= 0 and values[7] == MAGIC]
    assert len(ours) == 1


def test_dead_man_lets_go_of_all_enables(chip: Chip, pins: PigpioPins) -> None:
    profile = profiles.load(paths.HARDWARE / "l298n.toml")
    for gpio in profile.motor_pins():
        pins.write(gpio, 0)
    dead_man = ScriptDeadMan(pins, profile.motor_pins())
    drivers = motor_drivers(profile, pins)

    def duties() -> list[float]:
        return [chip.soc.pin[gpio].duty() for gpio in profile.motor_pins()]

    def drives() -> bool:
        dead_man.feed()
        for driver, duty in zip(drivers, (0.5, -0.5), strict=True):
            driver.drive(duty, 0.0)
        return duties() == pytest.approx([0.5, 1.0, 0.0, 0.5, 0.0, 1.0], abs=0.01)

    until(drives, START_S, "it does not drive")
    until(lambda: not any(duties()), START_S, "it does not stop")


def _bench_board(chip: Chip, runtime: Path, *overrides: str) -> MotorBoard:
    profile = profiles.load(BENCH, [f"pins.port = {chip.port}", *overrides])
    return backends.open_motors(profile, runtime)


def test_wheels_do_not_drive_a_motor_above_its_bridge(chip: Chip, tmp_path: Path) -> None:
    """The process runs on, and sends the sentence that names the resistor."""
    slow = ("motors.drive.pwm_hz = 800", "motors.steer.pwm_hz = 800")
    fitted = (f"motors.{name}.resistor_ohm = 2.2" for name in ("drive", "steer"))
    with pytest.raises(PinsRefused, match=r"^motors\.drive is not driven: .* resistor of 2\.2 Ω"):
        _bench_board(chip, tmp_path, *slow)
    _bench_board(chip, tmp_path, *slow, *fitted).close()


def test_pigpio_board_close_while_moving_switches_off_and_frees_the_script(
    chip: Chip, pins: PigpioPins, tmp_path: Path
) -> None:
    board = _bench_board(chip, tmp_path)
    board.drivers[0].drive(0.3, 0.0)
    board.drivers[1].drive(-0.3, 0.0)
    board.close()
    assert [chip.soc.pin[gpio].duty() for gpio in (17, 27, 24, 23)] == [0.0] * 4
    states = [pins.client.script_status(slot) for slot in range(32)]
    assert not any(status >= 0 and values[7] == MAGIC for status, values in states)


def test_pigpio_board_close_after_a_silent_call_keeps_the_dead_man(
    chip: Chip, pins: PigpioPins, tmp_path: Path
) -> None:
    board = _bench_board(chip, tmp_path)
    wake(board.dead_man)
    board.drivers[0].drive(0.3, 0.0)
    chip.stop_pigpiod()
    with pytest.raises(PinsSilent):
        board.drivers[0].drive(0.3, 0.0)
    with pytest.raises(PinsLost, match="connection closed"):
        board.drivers[0].drive(0.3, 0.0)
    board.close()
    chip.continue_pigpiod()
    until(lambda: chip.soc.pin[17].duty() == 0.0, START_S, "it runs on")


def test_failed_board_closes_its_connection(
    chip: Chip, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = profiles.load(paths.HARDWARE / "bench.toml")
    drive, steer = mx1508s(bench)
    drive = msgspec.structs.replace(drive, forward=1)  # not permitted
    motors, where = Motors(drive, steer), config.Pins(port=chip.port)
    profile = msgspec.structs.replace(bench, pins=where, motors=motors)
    closed = []

    class Noted(PigpioPins):
        def close(self) -> None:
            closed.append(self)
            super().close()

    monkeypatch.setattr(dead_man, "PigpioPins", lambda host, port: Noted(host, port, 5.0))
    with pytest.raises(PinsLost, match="GPIO 1: .*permission"):
        backends.open_motors(profile, tmp_path)
    assert len(closed) == 1


def test_dead_man_leaves_scripts_of_others_alone(pins: PigpioPins) -> None:
    other = pins.client.store_script("tag 0 mils 10 jmp 0")
    ScriptDeadMan(pins, (17, 27)).remove()
    assert pins.client.script_status(other)[0] >= 0

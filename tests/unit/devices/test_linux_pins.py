"""Kernel pins without a kernel: requests to it, and handling of its answers. Over a real
gpiochip: tests/vm_sensors/inside_gpio.py."""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from fpvcar.cli.command_line import parser
from fpvcar.config import Profile, profiles
from fpvcar.config.pwm import MOST_HZ
from fpvcar.devices import backends
from fpvcar.devices.linux import gpio, gpiochip, strict
from fpvcar.devices.linux import pulses as linux_pulses
from fpvcar.devices.linux.gpio import LinuxBoard, LinuxPins
from fpvcar.devices.linux.pulses import Pulses, Schedule
from fpvcar.devices.pins import PinsLost, PinsRefused
from fpvcar.runtime import paths

BENCH = paths.HARDWARE / "bench.toml"
TOAD = paths.HARDWARE / "mx1508.toml"
FORWARD, REVERSE = 17, 27


class FakeLines:
    """Single request; `chip.sets` has each call to the kernel."""

    def __init__(self, chip: "FakeChip", gpios: Sequence[int]) -> None:
        self.chip, self.gpios, self.open = chip, tuple(gpios), True

    def set(self, levels: dict[int, int]) -> None:
        assert self.open and set(levels) <= set(self.gpios)
        self.chip.sets.append(levels)

    def close(self) -> None:
        self.open = False


class FakeChip:
    """Chip with all lines except those in `taken`."""

    label, lines = "pinctrl-bcm2835", 54

    def __init__(self, taken: Sequence[int] = ()) -> None:
        self.taken, self.closed = taken, False
        self.sets: list[dict[int, int]] = []
        self.requests: list[FakeLines] = []
        self.asked: list[tuple[int, int]] = []

    def request(
        self, gpios: Sequence[int], flags: int, consumer: str, debounce_us: int = 0
    ) -> FakeLines:
        if set(gpios) & set(self.taken):
            raise PinsRefused("taken")
        self.asked.append((flags, debounce_us))
        self.requests.append(FakeLines(self, gpios))
        return self.requests[-1]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def chip(monkeypatch: pytest.MonkeyPatch) -> FakeChip:
    made = FakeChip()
    monkeypatch.setattr(gpiochip, "find", lambda: made)
    return made


def loaded(*overrides: str, path: Path = TOAD) -> Profile:
    return profiles.load(path, overrides)


def test_structures_are_as_the_kernel_has_them() -> None:
    """Sizes and numbers are those of a C compiler for linux/gpio.h."""
    assert ctypes.sizeof(gpiochip._Request) == 592
    assert ctypes.sizeof(gpiochip._LineInfo) == 256
    assert gpiochip.EVENT.size == 48
    assert gpiochip.CHIP_INFO == 0x8044B401
    assert gpiochip.LINE_INFO == 0xC100B405
    assert gpiochip.REQUEST == 0xC250B407
    assert (gpiochip.GET_VALUES, gpiochip.SET_VALUES) == (0xC010B40E, 0xC010B40F)


def test_missing_chip_error_lists_the_chips_found(tmp_path: Path) -> None:
    with pytest.raises(PinsLost, match="found: no gpiochip.; without a Pi: fpvcar b"):
        gpiochip.find(tmp_path)
    (tmp_path / "gpiochip0").write_text("no device")
    with pytest.raises(PinsLost, match="gpiochip0: Inappropriate ioctl"):
        gpiochip.find(tmp_path)


def test_pins_that_are_claimed_together_switch_by_one_call(chip: FakeChip) -> None:
    pins = LinuxPins("a test")
    pins.claim((FORWARD, REVERSE))
    pins.write_together((FORWARD, REVERSE), 1)
    pins.write(FORWARD, 0)
    pins.write(5, 1)
    assert chip.sets == [{FORWARD: 1, REVERSE: 1}, {FORWARD: 0}, {5: 1}]
    assert [one.gpios for one in chip.requests] == [(FORWARD, REVERSE), (5,)]
    pins.close()
    assert chip.closed and not any(one.open for one in chip.requests)


def test_lines_of_a_gone_owner_are_pulled_down(chip: FakeChip) -> None:
    """The bias of a request stays when the kernel makes its line an input."""
    pins = LinuxPins("a test")
    pins.claim((FORWARD, REVERSE))
    pins.write(5, 1)
    gpio.MotorPinHold((FORWARD, REVERSE))()
    assert chip.asked == [(gpiochip.OUTPUT | gpiochip.PULL_DOWN, 0)] * 3


def test_full_and_zero_duty_are_steady_levels(chip: FakeChip) -> None:
    pins = LinuxPins("a test")
    pins.pwm(FORWARD, 1.0)
    pins.pwm(FORWARD, 0.0)
    assert chip.sets == [{FORWARD: 1}, {FORWARD: 0}]


def test_taken_line_is_released_after_next_is_refused(chip: FakeChip) -> None:
    chip.taken = (8,)
    pins = LinuxPins("a test")
    pins.input_pull_down(7)
    pins.input_pull_up(8, 1000)
    with pytest.raises(PinsRefused):
        pins.edges((7, 8))
    assert not chip.requests[0].open
    inputs = gpiochip.INPUT | gpiochip.BOTH_EDGES | gpiochip.PULL_DOWN
    assert chip.asked == [(inputs, 0)]


@pytest.mark.parametrize(("word", "says"), [("Y\n", "would run on"), (None, "may run on")])
def test_kernel_that_may_leave_a_motor_on_is_refused(
    tmp_path: Path, chip: FakeChip, monkeypatch: pytest.MonkeyPatch, word: str | None, says: str
) -> None:
    monkeypatch.setattr(gpio, "ROOT", tmp_path)
    path = tmp_path / strict.PARAMETER.format("pinctrl_bcm2835")
    path.parent.mkdir(parents=True)
    if word is not None:
        path.write_text(word)
    with pytest.raises(PinsLost, match=f"{says}.*dtparam=strict_gpiod.*--unsafe"):
        LinuxBoard(loaded(), tmp_path / "lock")
    assert chip.closed and not chip.requests
    path.write_text("N\n")
    strict.require_strict(chip.label, tmp_path)


@pytest.mark.parametrize("label", gpiochip.LABELS)
def test_chip_labels_have_a_module(label: str) -> None:
    assert label in strict.MODULES


def test_motors_whose_pin_is_taken_are_let_go(tmp_path: Path, chip: FakeChip) -> None:
    chip.taken = (REVERSE,)
    with pytest.raises(PinsRefused):
        LinuxBoard(loaded("pins.unsafe = true"), tmp_path / "lock")
    assert chip.closed


def test_profile_and_machine_choose_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpio, "suits", lambda: True)
    for pins, i2c, expected in (
        ("auto", "auto", ("linux", "linux")),
        ("pigpio", "auto", ("pigpio", "pigpio")),
        ("linux", "pigpio", ("linux", "pigpio")),
    ):
        profile = loaded(f'pins.backend = "{pins}"', f'i2c.backend = "{i2c}"')
        found = backends.pins_backend(profile), backends.i2c_backend(profile)
        assert found == expected
    assert backends.pins_backend(loaded('pins.host = "far"')) == "pigpio"
    monkeypatch.setattr(gpio, "suits", lambda: False)
    assert backends.pins_backend(loaded()) == "pigpio"


def test_pi_5_or_pi_without_daemon_suits_kernel_pins(
    monkeypatch: pytest.MonkeyPatch, chip: FakeChip
) -> None:
    daemon, none = (str(BENCH),), ("/nowhere/pigpiod",)
    assert gpio.suits(none) and not gpio.suits(daemon)
    monkeypatch.setattr(FakeChip, "label", "pinctrl-rp1")
    assert gpio.suits(daemon)


def test_pi_with_forbidden_chip_suits_only_without_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> FakeChip:
        raise PinsLost("not allowed")

    monkeypatch.setattr(gpiochip, "find", find)
    none = ("/nowhere/pigpiod",)
    assert gpio.suits(none, BENCH) and not gpio.suits((str(BENCH),), BENCH)
    assert not gpio.suits(none, Path("/nowhere/model"))


class TestSchedule:
    @pytest.fixture
    def schedule(self) -> Schedule:
        made = Schedule()
        made.run(FORWARD, 0.010, 0.004, 1.0)
        return made

    def test_both_edges_keep_to_the_plan_however_late(self, schedule: Schedule) -> None:
        edges = []
        for now_s in (1.0, 1.0045, 1.012, 1.0141, 1.0201):
            edges.append(schedule.due(now_s).get(FORWARD))
        assert edges == [1, 0, 1, 0, 1]
        assert schedule.next_s == pytest.approx(1.024)

    def test_pulse_edges_are_not_due_early(self, schedule: Schedule) -> None:
        assert Schedule().next_s is None
        assert schedule.due(1.0) == {FORWARD: 1} and schedule.due(1.0039) == {}

    def test_change_applies_to_the_next_pulse(self, schedule: Schedule) -> None:
        schedule.due(1.0)
        schedule.run(FORWARD, 0.010, 0.008, 1.001)
        assert schedule.due(1.004) == {FORWARD: 0}
        assert schedule.due(1.010) == {FORWARD: 1}
        assert schedule.next_s == pytest.approx(1.018)

    def test_late_schedule_does_not_catch_up(self, schedule: Schedule) -> None:
        schedule.due(1.0)
        schedule.due(1.004)
        assert schedule.due(3.0) == {FORWARD: 1}
        assert schedule.next_s == pytest.approx(3.004)

    def test_stopped_pin_has_no_more_edges(self, schedule: Schedule) -> None:
        schedule.stop(FORWARD)
        assert schedule.due(2.0) == {} and schedule.next_s is None


def test_lost_chip_ends_the_pulses_and_raises() -> None:
    def put(levels: dict[int, int]) -> None:
        raise OSError(19, "No such device")

    pulses = Pulses(put)
    pulses.run(FORWARD, 0.01, 0.004)
    assert pulses._thread is not None
    pulses._thread.join(20.0)
    with pytest.raises(PinsLost, match="GPIO 17: No such device"):
        pulses.run(FORWARD, 0.01, 0.004)
    pulses.close()


@pytest.mark.parametrize("fault", [KeyError(17), SystemExit()])
def test_pulse_thread_that_dies_is_reported(
    monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda ended: None)

    def put(levels: dict[int, int]) -> None:
        raise fault

    pulses = Pulses(put)
    pulses.run(FORWARD, 0.01, 0.004)
    assert pulses._thread is not None
    pulses._thread.join(20.0)
    with pytest.raises(PinsLost, match="GPIO 17: (KeyError.17|the pulse thread has ended)"):
        pulses.run(FORWARD, 0.01, 0.004)
    pulses.close()


@pytest.mark.parametrize("wakes", [False, True])
def test_pulses_that_stand_still_are_lost(monkeypatch: pytest.MonkeyPatch, wakes: bool) -> None:
    """A thread that was only stopped together with us catches up while we wait."""
    now_s = [1.0]
    asleep, woken, caught_up, over = (threading.Event() for _ in range(4))

    def sleep(duration_s: float) -> None:
        if threading.current_thread().name != "pulses":
            if wakes:
                woken.set()
                assert caught_up.wait(20.0)
            now_s[0] += duration_s
        elif not asleep.is_set():
            asleep.set()
            woken.wait(20.0)
        else:
            caught_up.set()
            over.wait(20.0)

    clock = SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep)
    monkeypatch.setattr(linux_pulses, "time", clock)
    pulses = Pulses(lambda levels: None)
    pulses.run(FORWARD, 0.01, 0.004)
    assert asleep.wait(20.0)
    now_s[0] += 0.004 + linux_pulses.STALLED_S - 0.01
    pulses.run(FORWARD, 0.01, 0.004)
    now_s[0] += 0.02
    if wakes:
        pulses.run(FORWARD, 0.01, 0.004)
    else:
        with pytest.raises(PinsLost, match="GPIO 17: pulses are 0.13 s late"):
            pulses.run(FORWARD, 0.01, 0.004)
    pulses._ending = True
    woken.set()
    over.set()
    pulses.close()


def test_pulses_come_until_the_stop_and_then_no_more(chip: FakeChip) -> None:
    pins = LinuxPins("a test")
    pins.set_frequency(FORWARD, 4000)
    assert pins._hz[FORWARD] == MOST_HZ
    pins.pwm(FORWARD, 0.5)
    while len(chip.sets) < 4:
        pass
    pins.write(FORWARD, 0)
    count = len(chip.sets)
    assert chip.sets[:4] == [{FORWARD: 1}, {FORWARD: 0}] * 2
    pins.close()
    assert len(chip.sets) == count and chip.sets[-1] == {FORWARD: 0}


REFUSED = """
from pathlib import Path
from fpvcar.devices import backends
from fpvcar.devices.linux import gpiochip, pins_off
from fpvcar.devices.linux.i2c import SmbusI2c
backends.refuse_real_devices()
for device in (
    lambda: gpiochip.Chip(Path("/dev/gpiochip0")),
    lambda: SmbusI2c(1, 0x40),
    lambda: pins_off.put("/sys/class/pwm/pwmchip0/export", 0),
    lambda: pins_off.hat_off(1, 0x60),
    lambda: open(pins_off.DEVICE, "r+b"),
):
    try:
        device()
    except Exception as fault:
        print(fault)
"""


@pytest.mark.parametrize("words", [["wheels", "--emulated"], ["run", "--soc=soc"]], ids=" ".join)
def test_verb_of_an_emulated_car_refuses_devices_first(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(Exception):
        """Raised instead of the refusal, which a process cannot take back."""

    monkeypatch.setattr(backends, "refuse_real_devices", Mock(side_effect=Refusing))
    monkeypatch.setattr(profiles, "load", Mock(side_effect=AssertionError("not refused")))
    arguments = parser().parse_args(words)
    with pytest.raises(Refusing):
        arguments.act(arguments)


def test_emulated_car_opens_no_device_of_this_computer() -> None:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    refusals = done.stdout.splitlines()
    assert len(refusals) == 5, done.stdout + done.stderr
    for refusal, path in zip(
        refusals, ("gpiochip0", "i2c-1", "pwmchip0", "i2c-1", "gpiomem"), strict=True
    ):
        assert path in refusal and "an emulated car uses no device of this computer" in refusal

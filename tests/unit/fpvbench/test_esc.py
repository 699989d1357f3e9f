"""Model of an ESC: arming, brake before reverse, loss of signal; wrong pulses are reported."""

from typing import Any

import pytest

from fpvbench.world.bridge import Bridge
from fpvbench.world.esc import ARMS_S, EscModel
from fpvcar.config import Esc
from fpvcar.devices.motors.esc import PulseLaw

STEP_S, NEUTRAL_US, LOSS_S = 0.01, 1500.0, 0.2


def esc(**keys: Any) -> Esc:
    return Esc(signal=18, **({"esc_loss_s": LOSS_S, "limit": 1.0} | keys))


class Wheel:
    """Model under pulses of one width after the other."""

    def __init__(self, motor: Esc, armed: bool = True) -> None:
        self.model, self.now_s = EscModel(motor, armed), 50.0

    def send(self, pulse_us: float, for_s: float = 0.05) -> Bridge:
        for _ in range(round(for_s / STEP_S)):
            self.now_s += STEP_S
            state = self.model.step(pulse_us, self.now_s)
        return state


def test_esc_drives_only_after_neutral_for_a_while() -> None:
    wheel = Wheel(esc(), armed=False)
    assert wheel.send(1800.0, 3.0).drive == 0.0
    assert wheel.model.faults == {"throttle before it was armed"}
    wheel.send(NEUTRAL_US, ARMS_S - 0.1)
    assert wheel.send(1800.0).drive == 0.0, "the time of neutral counts anew"
    wheel.send(NEUTRAL_US, ARMS_S + 0.05)
    assert wheel.send(1750.0).drive == pytest.approx(0.5)


def test_first_pull_back_brakes_and_the_second_one_reverses() -> None:
    wheel = Wheel(esc())
    wheel.send(1800.0)
    state = wheel.send(1250.0, 1.0)
    assert state.drive == 0.0 and state.brake == 0.5
    wheel.send(NEUTRAL_US)
    assert wheel.send(1250.0).drive == -0.5
    wheel.send(1800.0)
    assert wheel.send(1250.0).brake == 0.5, "after forward the brake comes first again"


@pytest.mark.parametrize(("kind", "drive"), [("direct", -0.5), ("forward-only", 0.0)])
def test_other_kinds_have_no_sequence(kind: str, drive: float) -> None:
    assert Wheel(esc(reverse=kind)).send(1250.0).drive == drive


def test_silence_keeps_the_throttle_until_the_loss_time_and_disarms() -> None:
    wheel = Wheel(esc())
    wheel.send(1750.0)
    assert wheel.send(0.0, LOSS_S - 0.05).drive == 0.5
    assert wheel.send(0.0, 0.1).drive == 0.0
    assert wheel.model.faults == {"silence while it drove"}
    assert wheel.send(1750.0).drive == 0.0, "it must be armed again"


def test_silence_after_neutral_is_no_fault() -> None:
    wheel = Wheel(esc())
    wheel.send(1750.0)
    wheel.send(NEUTRAL_US)
    wheel.send(0.0, 1.0)
    assert wheel.model.faults == set()


@pytest.mark.parametrize("pulse_us", [300.0, 2400.0])
def test_stub_is_a_fault_and_changes_nothing(pulse_us: float) -> None:
    wheel = Wheel(esc())
    wheel.send(1750.0)
    assert wheel.send(pulse_us).drive == 0.5
    assert wheel.model.faults == {f"a pulse of {pulse_us:.0f} us"}


@pytest.mark.parametrize("kind", ["direct", "brake-first"])
def test_pulse_law_drives_the_model_both_ways(kind: str) -> None:
    """The sequence of the law is the one that the ESC needs."""
    motor = esc(reverse=kind, forward_us=1200.0, reverse_us=1800.0)
    law, model, now_s = PulseLaw(motor), EscModel(motor), 10.0
    drives: dict[float, float] = {}
    for duty, until_s in ((0.0, 12.0), (0.6, 13.0), (-0.6, 14.0), (0.6, 15.0)):
        while now_s < until_s:
            now_s += STEP_S
            law.drive(duty, now_s)
            drives[until_s] = model.step(law.pulse_us, now_s).drive
    assert drives[12.0] == 0.0 and drives[13.0] > 0.5 and drives[14.0] < -0.5 < 0.5 < drives[15.0]
    assert model.faults == set()

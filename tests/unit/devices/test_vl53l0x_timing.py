"""Timing registers of the time-of-flight sensor, and values beyond their range."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar.devices.chips import vl53l0x_timing


@given(some.integers(1, 0xFF << 16))
def test_timeout_register_loses_at_most_a_128th(mclks: int) -> None:
    back = vl53l0x_timing.decode_timeout(vl53l0x_timing.encode_timeout(mclks))
    assert 0 <= mclks - back <= mclks / 128


@pytest.mark.parametrize("mclks", [0, -1, (0xFF << 16) + 1])
def test_timeout_beyond_the_register_is_refused(mclks: int) -> None:
    with pytest.raises(ValueError, match="macro clocks"):
        vl53l0x_timing.encode_timeout(mclks)


def test_budget_after_tuning_is_the_documented_33_ms() -> None:
    """ST and others give some 33 ms for the default settings."""
    steps = vl53l0x_timing.Steps(0xE8, 0x26, 0x97, 0x1FD, 14, 10)
    assert 30_000 <= steps.budget_us() <= 34_000

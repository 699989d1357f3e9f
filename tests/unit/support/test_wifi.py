"""Effect of distance on Wi-Fi, by the model."""

import pytest
from testkit.network import wifi


def test_received_power_falls_as_p1238_predicts() -> None:
    """P.1238: 39.7 dB at a metre on channel 6, and DECADE_DB for each ten times."""
    assert wifi.received_dbm(1.0) == pytest.approx(wifi.SENT_DBM - 39.7, abs=0.1)
    for near_m in (1.0, 7.0):
        fall_db = wifi.received_dbm(near_m) - wifi.received_dbm(10 * near_m)
        assert fall_db == pytest.approx(wifi.DECADE_DB)


def test_tenth_of_frames_is_lost_at_the_limit_of_a_rate() -> None:
    assert wifi.frames_lost(0.0) == pytest.approx(0.1)
    assert wifi.frames_lost(2.0) == pytest.approx(0.01)
    assert wifi.frames_lost(-9.0) == 1.0


def test_farther_is_never_better() -> None:
    links = [wifi.link(metres) for metres in range(5, 140)]
    rates, losses = zip(*links, strict=True)
    shown = [round(one, 6) for one in losses]
    assert sorted(shown) == shown and (shown[0], shown[-1]) == (0.0, 1.0)
    assert rates[0] == pytest.approx(0.6 * 65e6, rel=0.01)
    # Just before the next slower rate some frames are sent twice.
    assert all(b <= a * 1.05 for a, b in zip(rates, rates[1:], strict=False))


def test_frames_at_the_edge_are_resent_and_then_lost() -> None:
    (near, well), (edge, weak), (_, gone) = map(wifi.link, (100.0, 126.0, 140.0))
    assert near > 3e6 and well < 1e-4
    assert 5e5 < edge < 2e6 and 0.01 < weak < 0.2
    assert gone == 1.0

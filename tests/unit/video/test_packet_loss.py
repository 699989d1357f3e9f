"""Share of lost packets, from counts and seconds."""

from fpvcar.video.packet_loss import EVERY_S, LossMeter


def test_share_covers_the_last_five_seconds() -> None:
    meter = LossMeter()
    assert meter.due_s < 0.0 and meter.share is None
    shares: list[float | None] = []
    for second in range(12):
        lost = 10 * min(second, 4)  # 4 seconds of 10 of 100, and no more
        meter.sample(float(second), 100 * second, lost)
        shares.append(meter.share)
    assert meter.due_s == 11.0 + EVERY_S
    assert shares[:6] == [None, 0.1, 0.1, 0.1, 0.1, 0.08]
    assert shares[9:] == [0.0, 0.0, 0.0]


def test_recent_share_covers_three_seconds() -> None:
    meter = LossMeter()
    assert meter.recent == 0.0
    shares: list[float] = []
    for second in range(7):
        meter.sample(float(second), 10 * second, min(second, 2))
        shares.append(meter.recent)
    assert shares == [0.0, 0.1, 0.1, 2 / 30, 1 / 30, 0.0, 0.0]


def test_share_is_none_for_few_packets() -> None:
    meter = LossMeter()
    meter.sample(0.0, 0, 0)
    meter.sample(1.0, 49, 20)
    assert meter.share is None
    meter.sample(2.0, 50, 20)
    assert meter.share == 0.4


def test_share_is_at_most_one() -> None:
    """The kernel counts a retransmission when it is sent; the two figures are not read at once."""
    meter = LossMeter()
    meter.sample(0.0, 0, 0)
    meter.sample(1.0, 60, 61)
    assert meter.share == 1.0


def test_losses_taken_back_are_no_negative_share() -> None:
    """The peer reports a duplicate a round trip after its retransmission."""
    meter = LossMeter()
    meter.sample(0.0, 0, 4)
    meter.sample(1.0, 100, 0)
    assert meter.share == meter.recent == 0.0

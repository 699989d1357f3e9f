"""Seat of the driver: handed over, reserved for a returning driver, freed when unused."""

import pytest

from fpvcar.drive.seat import Holder, Seat


def seated(name: str = "Ann", now_s: float = 100.0) -> Seat:
    seat = Seat()
    assert seat.take(f"client-{name}", name, grown_up=False, now_s=now_s) == 0.0
    return seat


def test_a_free_seat_is_taken_at_once() -> None:
    seat = seated()
    assert seat.holds("client-Ann")
    assert not seat.holds("client-Bob")


def test_a_driver_who_drives_keeps_the_seat() -> None:
    seat = seated()
    seat.wished("client-Ann", neutral=False, now_s=105.0)
    assert seat.take("client-Bob", "Bob", False, 110.0) == 5.0
    assert seat.holds("client-Ann")


def test_ten_neutral_seconds_free_it_for_who_asks() -> None:
    seat = seated()
    seat.wished("client-Ann", neutral=False, now_s=105.0)
    seat.wished("client-Ann", neutral=True, now_s=114.0)
    assert seat.take("client-Bob", "Bob", False, 115.0) == 0.0
    assert seat.holds("client-Bob")


def test_an_idle_driver_stays_while_nobody_asks() -> None:
    seat = seated()
    assert not seat.expire(1000.0)
    assert seat.holds("client-Ann")


def test_a_wish_of_somebody_else_keeps_nothing() -> None:
    seat = seated()
    seat.wished("client-Bob", neutral=False, now_s=109.0)
    assert seat.wait_s(110.0) == 0.0


def test_a_grown_up_takes_it_at_any_time() -> None:
    seat = seated()
    seat.wished("client-Ann", neutral=False, now_s=105.0)
    assert seat.take("client-Mum", "Mum", grown_up=True, now_s=105.0) == 0.0
    assert seat.holds("client-Mum")


def test_the_same_client_gets_its_seat_back() -> None:
    seat = seated()
    seat.lost("client-Ann", 101.0)
    assert seat.back("client-Ann", "Ann")
    assert not seat.back("client-Bob", "Bob")
    assert not seat.expire(200.0)


def test_a_seat_whose_page_is_gone_is_kept_for_ten_seconds() -> None:
    seat = seated(now_s=100.0)
    seat.wished("client-Ann", neutral=False, now_s=101.0)
    seat.lost("client-Ann", 101.0)
    assert not seat.expire(110.9)
    assert seat.take("client-Bob", "Bob", False, 110.0) == 1.0
    assert seat.expire(111.0)
    assert seat.holder is None
    assert not seat.expire(112.0)


def test_the_ten_seconds_count_from_the_last_that_was_heard() -> None:
    """The earlier of the last wish and the loss of the page counts."""
    seat = seated(now_s=100.0)
    seat.lost("client-Ann", 106.0)
    assert seat.wait_s(106.0) == 4.0
    seat.back("client-Ann", "Ann")
    seat.wished("client-Ann", neutral=False, now_s=107.0)
    assert seat.wait_s(107.0) == 10.0


def test_release_is_only_the_holders() -> None:
    seat = seated()
    assert not seat.release("client-Bob")
    assert seat.release("client-Ann")
    assert seat.holder is None and seat.wait_s(100.0) == 0.0


def test_nothing_happens_to_an_empty_seat() -> None:
    seat = Seat()
    seat.lost("client-Ann", 1.0)
    seat.wished("client-Ann", False, 1.0)
    assert not seat.back("client-Ann", "Ann") and not seat.expire(100.0)


def test_the_one_who_sits_there_may_take_it_again_and_keeps_it_longer() -> None:
    seat = seated(now_s=100.0)
    seat.wished("client-Ann", neutral=False, now_s=104.0)
    assert seat.take("client-Ann", "Ann", False, 105.0) == 0.0
    assert seat.holder == Holder("client-Ann", "Ann", active_s=105.0)
    assert seat.wait_s(106.0) == 9.0


def test_taken_is_exactly_zero_and_free_is_not_less() -> None:
    seat = Seat()
    assert seat.wait_s(5.0) == 0.0
    assert seat.take("client-Ann", "Ann", False, 5.0) == 0.0
    assert seat.wait_s(1000.0) == 0.0
    assert seat.take("client-Bob", "Bob", False, 14.95) == pytest.approx(0.05)
    assert seat.holds("client-Ann")


def test_the_wait_counts_from_the_loss_if_that_was_first() -> None:
    seat = seated(now_s=100.0)
    seat.wished("client-Ann", neutral=False, now_s=109.0)
    seat.lost("client-Ann", 102.0)
    assert seat.wait_s(103.0) == 9.0


def test_somebody_elses_loss_is_not_the_drivers() -> None:
    seat = seated()
    seat.lost("client-Bob", 101.0)
    assert not seat.expire(1000.0)
    assert seat.holds("client-Ann")


def test_whoever_comes_back_may_have_another_name() -> None:
    seat = seated()
    assert seat.back("client-Ann", "Anna")
    assert seat.holder is not None and seat.holder.name == "Anna"

"""Seat of the driver: handed over, reserved for a returning driver, freed when unused."""

import pytest

from fpvcar.drive.seat import Holder, Seat


def seated(name: str = "Ann", now_s: float = 100.0) -> Seat:
    seat = Seat()
    assert seat.take(f"client-{name}", name, grown_up=False, now_s=now_s) == 0.0
    return seat


@pytest.fixture
def seat() -> Seat:
    return seated()


def test_free_seat_is_taken_at_once(seat: Seat) -> None:
    assert seat.holds("client-Ann")
    assert not seat.holds("client-Bob")


def test_active_driver_keeps_the_seat(seat: Seat) -> None:
    seat.wished("client-Ann", neutral=False, now_s=105.0)
    assert seat.take("client-Bob", "Bob", False, 110.0) == 5.0
    assert seat.holds("client-Ann")


def test_ten_neutral_seconds_free_the_seat_on_request(seat: Seat) -> None:
    seat.wished("client-Ann", neutral=False, now_s=105.0)
    seat.wished("client-Ann", neutral=True, now_s=114.0)
    assert seat.take("client-Bob", "Bob", False, 115.0) == 0.0
    assert seat.holds("client-Bob")


def test_idle_driver_keeps_the_seat_without_a_request(seat: Seat) -> None:
    assert not seat.expire(1000.0)
    assert seat.holds("client-Ann")


def test_other_clients_wish_does_not_extend_the_seat(seat: Seat) -> None:
    seat.wished("client-Bob", neutral=False, now_s=109.0)
    assert seat.wait_s(110.0) == 0.0


def test_grown_up_takes_the_seat_at_any_time(seat: Seat) -> None:
    seat.wished("client-Ann", neutral=False, now_s=105.0)
    assert seat.take("client-Mum", "Mum", grown_up=True, now_s=105.0) == 0.0
    assert seat.holds("client-Mum")


def test_returning_client_gets_its_seat_back(seat: Seat) -> None:
    seat.lost("client-Ann", 101.0)
    assert seat.back("client-Ann", "Ann")
    assert not seat.back("client-Bob", "Bob")
    assert not seat.expire(200.0)


def test_seat_of_a_lost_page_is_kept_for_ten_seconds() -> None:
    seat = seated(now_s=100.0)
    seat.wished("client-Ann", neutral=False, now_s=101.0)
    seat.lost("client-Ann", 101.0)
    assert not seat.expire(110.9)
    assert seat.take("client-Bob", "Bob", False, 110.0) == 1.0
    assert seat.expire(111.0)
    assert seat.holder is None
    assert not seat.expire(112.0)


def test_wait_for_a_lost_seat_counts_from_the_last_wish() -> None:
    """The earlier of the last wish and the loss of the page counts."""
    seat = seated(now_s=100.0)
    seat.lost("client-Ann", 106.0)
    assert seat.wait_s(106.0) == 4.0
    seat.back("client-Ann", "Ann")
    seat.wished("client-Ann", neutral=False, now_s=107.0)
    assert seat.wait_s(107.0) == 10.0


def test_release_works_for_the_holder_only(seat: Seat) -> None:
    assert not seat.release("client-Bob")
    assert seat.release("client-Ann")
    assert seat.holder is None and seat.wait_s(100.0) == 0.0


def test_empty_seat_ignores_loss_wish_and_return() -> None:
    seat = Seat()
    seat.lost("client-Ann", 1.0)
    seat.wished("client-Ann", False, 1.0)
    assert not seat.back("client-Ann", "Ann") and not seat.expire(100.0)


def test_holder_taking_the_seat_again_extends_it() -> None:
    seat = seated(now_s=100.0)
    seat.wished("client-Ann", neutral=False, now_s=104.0)
    assert seat.take("client-Ann", "Ann", False, 105.0) == 0.0
    assert seat.holder == Holder("client-Ann", "Ann", active_s=105.0)
    assert seat.wait_s(106.0) == 9.0


def test_wait_is_zero_when_free_and_never_negative() -> None:
    seat = Seat()
    assert seat.wait_s(5.0) == 0.0
    assert seat.take("client-Ann", "Ann", False, 5.0) == 0.0
    assert seat.wait_s(1000.0) == 0.0
    assert seat.take("client-Bob", "Bob", False, 14.95) == pytest.approx(0.05)
    assert seat.holds("client-Ann")


def test_wait_counts_from_the_loss_before_a_later_wish() -> None:
    seat = seated(now_s=100.0)
    seat.wished("client-Ann", neutral=False, now_s=109.0)
    seat.lost("client-Ann", 102.0)
    assert seat.wait_s(103.0) == 9.0


def test_other_clients_loss_does_not_free_the_seat(seat: Seat) -> None:
    seat.lost("client-Bob", 101.0)
    assert not seat.expire(1000.0)
    assert seat.holds("client-Ann")


def test_returning_driver_may_have_another_name(seat: Seat) -> None:
    assert seat.back("client-Ann", "Anna")
    assert seat.holder is not None and seat.holder.name == "Anna"

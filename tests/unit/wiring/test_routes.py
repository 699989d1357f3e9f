"""Tracks: their crossings, and the order with the fewest."""

from itertools import permutations

from fpvcar.wiring.routes import Net, crossings, tracks

DOWN, LOWER = Net((0,), (100,)), Net((20,), (120,))


def total(nets: list[Net], order: list[int]) -> int:
    return sum(
        crossings(nets[one], nets[other])
        for place, one in enumerate(order)
        for other in order[place + 1 :]
    )


def test_wire_crosses_the_track_that_it_passes() -> None:
    assert crossings(DOWN, LOWER) == 2
    assert crossings(LOWER, DOWN) == 0


def test_nets_that_do_not_meet_never_cross() -> None:
    above, below = Net((0,), (10,)), Net((30,), (40,))
    assert crossings(above, below) == crossings(below, above) == 0


def test_lower_of_two_descending_nets_is_on_the_left() -> None:
    assert tracks([DOWN, LOWER]) == [1, 0]
    assert tracks([]) == []


def test_track_order_of_five_nets_has_fewest_crossings() -> None:
    nets = [DOWN, LOWER, Net((60,), (10, 90)), Net((40, 130), ()), Net((80,), (30,))]
    least = min(total(nets, list(order)) for order in permutations(range(5)))
    assert total(nets, tracks(nets)) == least

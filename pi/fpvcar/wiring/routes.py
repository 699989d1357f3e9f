"""Routing of wires between two columns: a vertical track for each, with few crossings. Pure."""

from collections.abc import Sequence
from typing import NamedTuple


class Net(NamedTuple):
    """Heights at which a wire, or a rail, leaves the column on either side."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def span(self) -> tuple[int, int]:
        """Upper and lower end of its track."""
        ys = (*self.left, *self.right)
        return min(ys), max(ys)


def crossings(first: Net, second: Net) -> int:
    """Return how often two nets cross, with the first one's track on the left."""
    (low, high), (under, over) = first.span, second.span
    return sum(under <= y <= over for y in first.right) + sum(low <= y <= high for y in second.left)


def tracks(nets: Sequence[Net]) -> list[int]:
    """Return the order of tracks from left to right, as indices of `nets`.

    Whether two nets cross depends on the order of these two only. Nets are moved, one at a time, to
    the place with the fewest crossings, until no move is an improvement.
    """
    cost = [[crossings(first, second) for second in nets] for first in nets]
    order = list(range(len(nets)))
    better = True
    while better:
        better = False
        for net in range(len(nets)):
            at = order.index(net)
            rest = [other for other in order if other != net]
            prices = [sum(cost[net][other] for other in rest)]
            for other in rest:  # past one more of them
                prices.append(prices[-1] - cost[net][other] + cost[other][net])
            best = min(range(len(prices)), key=prices.__getitem__)
            if prices[best] < prices[at]:
                order = [*rest[:best], net, *rest[best:]]
                better = True
    return order

"""Nets: groups of pins joined by wires, with one level each."""

from collections.abc import Iterable, Sequence

from fpvbench import soc as chip

GPIOS = 32


def wire(text: str) -> tuple[int, int]:
    """Parse two pins, as in 22,27. Raises ValueError."""
    first, second = (int(part, 0) for part in text.split(","))
    if first == second or not (0 <= first < GPIOS and 0 <= second < GPIOS):
        raise ValueError(f"{text}: expected two different GPIO of 0 to {GPIOS - 1}")
    return first, second


class Nets:
    """Groups of pins that are wired together; a pin without a wire is in no net."""

    def __init__(self, wires: Iterable[tuple[int, int]]) -> None:
        self.members: dict[int, tuple[int, ...]] = {}
        for left, right in wires:
            left_net = self.members.get(left, (left,))
            right_net = self.members.get(right, (right,))
            net = tuple(sorted({*left_net, *right_net}))
            self.members.update(dict.fromkeys(net, net))
        self.bits = {gpio: sum(1 << member for member in net) for gpio, net in self.members.items()}
        """GPIO -> a bit for each pin of its net."""
        self.all_bits = sum(1 << gpio for gpio in self.members)


def pulled(pulls: Sequence[int]) -> int:
    """Return the level of undriven pins.

    The more frequent pull wins; a draw, half the supply, reads low.
    """
    return int(pulls.count(chip.PULL_UP) > pulls.count(chip.PULL_DOWN))

"""Which lights are on. Pure."""

from fpvcar.config import Lights


def levels(lights: Lights, head: bool, reversing: bool) -> dict[int, int]:
    """The level of every light's pin."""
    front = {gpio: int(head) for gpio in lights.head}
    return front | {gpio: int(reversing) for gpio in lights.rear}

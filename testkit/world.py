"""World of the bench behind MX1508 bridges."""

from fpvbench.world.bridge import Bridges, mx1508


def inputs(
    forward: float = 0.0, reverse: float = 0.0, left: float = 0.0, right: float = 0.0
) -> Bridges:
    """Return the state of the bridges with these duties on their inputs."""
    return Bridges(mx1508(forward, reverse), mx1508(left, right))

"""Which seeds a soak tries: others each time, unless the environment names them."""

import os
import random

SEED_MOST = 1_000_000


def chosen(count: int) -> range:
    """SOAK_SEED is the first one, SOAK_SEEDS how many there are."""
    first = int(os.environ.get("SOAK_SEED") or random.randrange(SEED_MOST))
    return range(first, first + int(os.environ.get("SOAK_SEEDS") or count))

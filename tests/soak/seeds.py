"""Seeds of a soak: different each time, unless the environment sets them."""

import os
import random

SEED_MOST = 1_000_000


def chosen(count: int) -> range:
    """Return the seeds. SOAK_SEED is the first one, SOAK_SEEDS their number."""
    first = int(os.environ.get("SOAK_SEED") or random.randrange(SEED_MOST))
    return range(first, first + int(os.environ.get("SOAK_SEEDS") or count))

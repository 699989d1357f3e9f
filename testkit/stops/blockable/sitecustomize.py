"""Make any Python process of the bench blockable: put this folder on PYTHONPATH.

SIGUSR2 blocks the main thread for 0.6 s, as a slow disk or a careless loop would. SIGUSR1 blocks it
for good. The product has no code for this.
"""

import signal
import time
from types import FrameType

LONG_S = 0.6


def _block(number: int, frame: FrameType | None) -> None:
    time.sleep(LONG_S)


def _block_for_good(number: int, frame: FrameType | None) -> None:
    while True:
        time.sleep(1.0)


signal.signal(signal.SIGUSR2, _block)
signal.signal(signal.SIGUSR1, _block_for_good)

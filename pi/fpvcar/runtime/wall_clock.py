"""Is the wall clock to be believed? Without network and battery a Pi may be in 1970."""

import time

EARLIEST_S = 1_767_225_600.0
"""2026-01-01 UTC: before it there was no car."""


def sane(utc_s: float) -> bool:
    """May it stand in certificates and in names of recordings?"""
    return utc_s >= EARLIEST_S


def shown(utc_s: float) -> str:
    """As people read it, UTC."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(max(0.0, utc_s)))


def wrong(utc_s: float) -> str:
    """What is wrong with it, and what to do."""
    return (
        f"the clock is wrong, {shown(utc_s)} UTC: bring the car into a network with "
        'internet, or sudo date -s "2026-12-31 12:00"; then sudo systemctl restart '
        "fpvcar"
    )

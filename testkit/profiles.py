"""Shipped profiles, and the least one as a table to be parsed."""

from typing import Any

from fpvcar.config import Mx1508, Profile, profiles
from fpvcar.runtime import paths


def profile_of(name: str, *overrides: str) -> Profile:
    """Load a shipped profile, with override lines."""
    return profiles.load(paths.HARDWARE / f"{name}.toml", overrides)


def mx1508s(profile: Profile) -> tuple[Mx1508, Mx1508]:
    """Return the motors of a profile that has two MX1508."""
    first, second = profile.motors.pair
    assert isinstance(first, Mx1508) and isinstance(second, Mx1508)
    return first, second


def minimal(**more: Any) -> dict[str, Any]:
    """Return the least profile, and more."""
    return {
        "car": {"name": "Test"},
        "motors": {
            "drive": {"forward": 17, "reverse": 27},
            "steer": {"forward": 24, "reverse": 23},
        },
        **more,
    }

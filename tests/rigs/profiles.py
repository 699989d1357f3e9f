"""Profiles as tables, to be parsed."""

from typing import Any


def minimal(**more: Any) -> dict[str, Any]:
    """The least that a profile has, and more."""
    return {
        "car": {"name": "Test"},
        "motors": {
            "drive": {"forward": 17, "reverse": 27},
            "steer": {"forward": 24, "reverse": 23},
        },
        **more,
    }

"""Firmware of a robot car that is driven from a browser."""

__version__ = "0.2.0"

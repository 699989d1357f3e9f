"""Writes recordings, on the car."""

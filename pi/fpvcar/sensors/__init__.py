"""A part of `run` for each kind of sensor, and what all of them say."""

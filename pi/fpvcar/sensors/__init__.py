"""A part of `run` for each kind of sensor, and the suite of them all."""

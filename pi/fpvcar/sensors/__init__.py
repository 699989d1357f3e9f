"""Part of `run` for each kind of sensor, and the suite of all sensors."""

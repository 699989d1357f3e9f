"""Calibration: values missing from a car's profile, measured on the car, saved beside it. Pure."""

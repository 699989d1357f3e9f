"""Drivers of motor bridges and servos."""

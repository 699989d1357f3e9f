"""Drivers of sensor and PWM chips."""

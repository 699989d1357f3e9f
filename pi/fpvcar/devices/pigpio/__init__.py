"""Pins, edges and I2C through the daemon pigpiod."""

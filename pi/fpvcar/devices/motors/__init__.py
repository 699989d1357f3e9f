"""Drivers of motor bridges."""

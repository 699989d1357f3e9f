"""Drivers of sensor chips."""

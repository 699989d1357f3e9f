"""Servos that do not steer: their wishes, and their state on pages."""

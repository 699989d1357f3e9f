"""Recorder of the car: writes recordings to the card."""

"""Recordings: reading, listing, export, repair and replay, on the car or any computer."""

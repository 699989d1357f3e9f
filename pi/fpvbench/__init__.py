"""Emulated car: pins, world and camera, each in a process of its own."""

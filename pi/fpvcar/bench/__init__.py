"""The emulated car: pins, world and camera, each a process of its own."""

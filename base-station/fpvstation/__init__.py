"""The base station: brings the car's recordings home."""

"""The bench's camera: renders what the car sees, encodes it."""

"""Camera of the bench: renders the car's view and encodes it."""

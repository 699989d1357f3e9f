"""What writes recordings on the car."""

"""The room, the car's physics, and the process that runs them."""

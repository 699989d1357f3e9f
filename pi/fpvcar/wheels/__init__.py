"""Process that owns the motor pins, and the `run` end of its socket."""

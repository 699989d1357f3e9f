"""The process that owns the motor pins, and `run`'s end of its socket."""

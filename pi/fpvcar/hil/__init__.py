"""Hardware in the loop: one set of checks for the bench and for a rig with a real car."""

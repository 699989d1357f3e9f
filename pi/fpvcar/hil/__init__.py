"""Hardware in the loop: the same checks of a car on the bench and on a rig."""

"""Children's buttons and lights: game, panel, and the thread at the pins."""

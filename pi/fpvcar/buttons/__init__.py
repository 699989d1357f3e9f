"""Children's buttons and lights: the game, the panel, the pins' thread."""

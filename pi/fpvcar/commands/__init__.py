"""Command lines of verbs that read recordings."""

"""The verbs of the command line that read recordings."""

"""Access units from a camera's process to every viewer."""

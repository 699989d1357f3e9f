"""Path of access units from a camera's process to every viewer."""

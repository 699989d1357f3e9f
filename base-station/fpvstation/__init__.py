"""Base station: copies the cars' recordings into a local store."""

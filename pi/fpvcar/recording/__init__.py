"""What happened, in files that other people's tools open: MCAP, a minute each."""

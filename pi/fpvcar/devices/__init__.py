"""Hardware: what it means above, pins and registers below. Nothing else imports it."""

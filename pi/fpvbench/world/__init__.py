"""Room and car physics, and the process that runs them."""

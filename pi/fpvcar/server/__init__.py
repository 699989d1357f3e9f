"""What `run` serves: pages, sockets, HTTP, and who may use them."""

"""Server of `run`: pages, sockets, HTTP, and access rights."""

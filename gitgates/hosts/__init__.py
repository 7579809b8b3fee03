"""Each host's own language: its bytes in, an `Event` out; a `Decision` in, its bytes out. Pure."""

"""Reviews: what a session changed, whether that was reviewed, and whom a command speaks for."""

"""One event of an agent: the driver, and what several features know of a session."""

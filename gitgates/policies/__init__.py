"""Handle events: the driver, and one file for each policy."""

"""What becomes of an event: the driver, and one file for each policy."""

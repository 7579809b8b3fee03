"""Which gates run on an event, on which paths, and what their results mean."""

"""Plan and run gates, and decide what their results mean."""

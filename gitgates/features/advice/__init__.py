"""Show advice to agents, and run its hooks."""

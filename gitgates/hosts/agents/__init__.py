"""The coding agents, one module each."""

"""Run gates at git's and agents' events."""

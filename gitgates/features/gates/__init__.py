"""Run gates at events of git and of agents."""

"""Run the gates of a plan."""

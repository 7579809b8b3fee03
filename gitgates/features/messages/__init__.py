"""A repository's message log."""

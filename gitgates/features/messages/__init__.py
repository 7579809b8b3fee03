"""The message log of a repository."""

"""Writes hooks and settings where hosts look for them, and takes them out again."""

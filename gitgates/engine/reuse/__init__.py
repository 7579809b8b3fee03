"""Reuse passes for the same content."""

"""Servers that gates share: a cache of verdicts."""

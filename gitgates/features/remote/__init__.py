"""Servers that gates share: a cache of verdicts, and a server on which gates run."""

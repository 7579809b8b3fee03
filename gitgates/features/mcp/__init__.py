"""Verbs as tools of a Model Context Protocol server."""

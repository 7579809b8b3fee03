"""Require a review of a session's changes."""

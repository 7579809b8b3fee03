"""Require a review of what a session changed."""

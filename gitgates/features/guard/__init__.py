"""Refuse tool calls that bypass the gates."""

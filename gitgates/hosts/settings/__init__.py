"""Formats of the settings of coding agents."""

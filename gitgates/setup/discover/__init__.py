"""Discover the checks of a project. Cold; pure except for `project.py`, which reads."""

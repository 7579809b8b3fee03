"""Discover the checks of a project. Cold; pure but for `project.py`, which reads."""

"""Find out how a project already checks itself. Cold; pure but for `project.py`, which reads."""

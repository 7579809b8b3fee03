"""Set up a project: find its checks, install hooks, diagnose."""

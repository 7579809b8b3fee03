"""Set up a project: find its checks, install hooks, convert, and diagnose."""

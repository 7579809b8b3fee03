"""Command lines of a shell: the commands in them, and the repositories these are about."""

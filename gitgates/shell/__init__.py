"""Shell command lines: their commands, and the repositories that these apply to."""

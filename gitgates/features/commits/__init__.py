"""What an agent's commit has in it that is not its own: files of others, and secrets."""

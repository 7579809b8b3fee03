"""The world: processes, git, files, signals. Everything that can fail for reasons not ours."""

"""Everything on disk: files, locks, logs, sessions, runs, messages."""

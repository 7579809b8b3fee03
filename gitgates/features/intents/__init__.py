"""Intents: what agents may work on, and where. Read by hooks; pure except for reading the file."""

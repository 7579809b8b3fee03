"""Intents: what agents may work on, and where. Read by hooks; pure but for reading the file."""

"""Intents: what agents may work on, and where."""

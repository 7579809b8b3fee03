"""Isolate the working tree while gates run, and restore it."""

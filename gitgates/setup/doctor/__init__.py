"""Diagnose why gates do not run, and how to fix it."""

"""Diagnose whether the gates run, and how to fix what keeps them from it."""

"""Proofs that travel: signed statements of what gates have passed, and whose are believed."""

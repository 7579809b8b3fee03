"""Proofs that travel: signed statements that gates passed, and whose statements are believed."""

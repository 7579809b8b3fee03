"""Publish proofs with a push, and lend those of trusted signers."""

from __future__ import annotations

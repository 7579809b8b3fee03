"""Lend the cache of verdicts."""

from __future__ import annotations

"""Environment variables for reviews."""

from __future__ import annotations

NAMES = (("GITGATES_REVIEW_FILE", "gitgates", "for a second opinion: a file with its prompt"),)

"""The environment names of headless runs."""

from __future__ import annotations

NAMES = (("GITHUB_STEP_SUMMARY", "CI", "a file that the summary of a headless run is appended to"),)

"""Report a run: text, a live line, JSON, JUnit. Pure, except for the live line."""

"""Report a run: text, a live line, JSON, JUnit. Pure, but for the live line."""

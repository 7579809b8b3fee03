"""How a run is told: text, a live line, JSON, JUnit. Pure, but for the live line."""

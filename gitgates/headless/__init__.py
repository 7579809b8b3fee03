"""Run an agent with nobody watching: until its gates pass, then commit; else lose nothing."""

"""The trace: which agent, with which intent, wrote which block of which file."""

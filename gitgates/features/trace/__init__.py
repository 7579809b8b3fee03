"""The trace: which agent wrote which block of which file, with which intent."""

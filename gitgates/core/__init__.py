"""The vocabulary: records, errors, names of hooks and of the environment."""

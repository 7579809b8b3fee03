"""The features, one folder each."""

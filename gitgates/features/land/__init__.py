"""Land branches: merge them one behind the other, and move the target to what was tested."""

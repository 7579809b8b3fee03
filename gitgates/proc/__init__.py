"""Start, limit, capture and end child processes."""

"""What the output of a gate tells: failures, numbers, nothing checked."""

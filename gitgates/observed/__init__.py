"""What a gate read, seen by strace, and whether all of that is as it was."""

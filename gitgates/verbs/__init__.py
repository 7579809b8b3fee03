"""What verbs share: output, and the current folder's repository."""

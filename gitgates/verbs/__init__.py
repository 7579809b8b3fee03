"""What the verbs of the command line share: output, and the repository of the current folder."""

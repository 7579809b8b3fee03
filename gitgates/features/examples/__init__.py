"""A gate's examples: files on which it must fail, and files on which it must pass."""

"""Save points: what agents change is recorded, and can be undone and redone."""

"""Save points: agents' changes are recorded, and can be undone and redone."""

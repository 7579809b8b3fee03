"""Look at everything that must be right for the gates to run, and say what mends the rest."""

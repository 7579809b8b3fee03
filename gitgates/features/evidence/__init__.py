"""Evidence that commits have passed their gates."""

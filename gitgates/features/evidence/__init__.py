"""Evidence that commits passed their gates."""

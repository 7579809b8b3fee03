"""Convert what other hook managers run into gates."""

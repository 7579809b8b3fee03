"""The built-in gates. Pure: facts in, a verdict out. None yet."""

"""Edit a user's text file without changing any other byte."""

"""The programs that hosts start: small, standard library only, no click."""

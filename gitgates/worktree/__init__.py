"""The working tree while gates run: isolated from what is not in the commit, and put back."""

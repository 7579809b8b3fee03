"""What gates need in private checkouts and in agents' worktrees: the table, and the policy."""

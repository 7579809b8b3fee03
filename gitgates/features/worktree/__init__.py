"""Install what gates need in private checkouts and in agents' worktrees."""

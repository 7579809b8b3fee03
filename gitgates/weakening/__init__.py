"""Find what a change does to its checks: tests, assertions, rules, gates, hooks."""

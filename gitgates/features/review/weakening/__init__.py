"""Detect changes that weaken checks: tests, assertions, rules, gates, hooks."""

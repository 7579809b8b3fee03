"""Examples of a gate: content on which it must fail, and content on which it must pass."""

"""The file memory: what working trees held, as raw bytes, by whom and when.

    look    → what a working tree holds now: tree ids
    record  → a point: such trees, with who made them, as a commit
    changes → what differs between two trees, or what one author has changed

Everything is in one git directory of ours for all worktrees (`memory.py`).
"""

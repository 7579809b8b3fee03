"""The memory of files: what working trees held, as raw bytes, by whom and when.

    look    → what a working tree holds now: ids of trees
    record  → a point: such trees, with who made them, as a commit
    changes → what differs between two trees, or what one author has changed

Everything is in one git directory of ours for all worktrees (`memory.py`).
"""

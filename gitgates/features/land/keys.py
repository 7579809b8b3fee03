"""The table `[tool.gitgates.land]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.core.lifecycle import HOOK_OF

_KEYS = (
    Key("target", v.TEXT, '"main"').meaning("The branch that `gitgates land` lands on."),
    Key("method", v.one_of("merge", "rebase", "squash"), '"merge"').meaning(
        "How a branch lands: as a merge commit, as its commits on top of the target, or as one "
        "commit."
    ),
    Key(
        "hook",
        v.one_of("pre-push", "pre-commit", "manual", HOOK_OF["turn-end"]),
        '"pre-push"',
        weaker="any",
    ).meaning(
        "The hook whose gates run on the merged commit. If it has none there, those of "
        "`pre-commit` run."
    ),
    Key("batch", v.COUNT, "4").meaning(
        "How many waiting branches are tested together. 1: each merge is tested by itself."
    ),
    Key("push", v.FLAG, "false").meaning("Whether the landed commit is pushed, without force."),
    Key("conflicts", v.FLAG, "true").meaning(
        "Whether you are told, when an agent stops in a linked worktree, which other worktrees "
        "have changes that conflict with its own."
    ),
    Key("remote", v.TEXT, '"origin"').meaning("The remote that it is pushed to."),
)

TABLE = Table(
    name="land",
    keys=_KEYS,
    meaning="How `gitgates land` merges and tests branches, as set in the target.",
    example='target = "main"',
)

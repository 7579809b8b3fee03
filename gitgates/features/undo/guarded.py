"""The guard's rules for commands that destroy what no commit holds, or things elsewhere."""

from __future__ import annotations

from gitgates.core.guarded import Rule

RULES = (
    Rule(
        name="lost_work",
        answer="save",
        answers=("save", "ask", "deny", "off"),
        by_pattern=True,
        meaning="A command that destroys what no commit holds: `git reset --hard`, `git clean`, "
        "`rm`, `>` over a file and the like. `save`: a save point is taken first, and you are told "
        "what was destroyed; you are asked about what cannot be saved. Or a table of patterns of "
        'commands, `{ "git clean *" = "ask" }`: the last match counts, and without one, `save`.',
        why="No commit holds that.",
        instead="Commit it first, or leave it alone.",
    ),
    Rule(
        name="destructive",
        answer="off",
        answers=("ask", "off"),
        meaning="A command that changes what lies elsewhere, or cannot come back: `git push "
        "--force` to the default branch, `docker volume rm`, `DROP TABLE`, `terraform destroy`, "
        "`kubectl delete`, `aws s3 rm` and others.",
        why="Nothing here can bring that back.",
        instead="Say what you would run, and why.",
    ),
)

"""The guard's rules for commands that destroy what no commit has, or things elsewhere."""

from __future__ import annotations

from gitgates.core.guarded import Rule

RULES = (
    Rule(
        name="lost_work",
        answer="save",
        answers=("save", "ask", "deny", "off"),
        by_pattern=True,
        meaning="A command that destroys what no commit has: `git reset --hard`, `git clean`, "
        "`rm`, `>` over a file and similar. `save`: a save point is taken first, and you are told "
        "what was destroyed; you are asked about what cannot be saved. Or a table of command "
        'patterns, `{ "git clean *" = "ask" }`: the last match counts, and without one, `save`.',
        why="No commit has it.",
        instead="Commit it first, or leave it alone.",
    ),
    Rule(
        name="destructive",
        answer="off",
        answers=("ask", "off"),
        meaning="A command that changes something elsewhere, or destroys it for good: `git push "
        "--force` to the default branch, `docker volume rm`, `DROP TABLE`, `terraform destroy`, "
        "`kubectl delete`, `aws s3 rm` and others.",
        why="Nothing here can bring it back.",
        instead="Say what you would run, and why.",
    ),
)

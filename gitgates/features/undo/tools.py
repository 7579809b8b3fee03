"""A tool for agents: undo their own turn."""

from __future__ import annotations

import os

from gitgates.verbs.tool import caller_option, run_verb


async def undo_turn(
    paths: list[str] | None = None, *, dry_run: bool = False, caller: str = ""
) -> str:
    """Undo what you have changed in this turn, in all files or in these; dry_run: only show it."""
    options = ("--dry-run",) if dry_run else ()
    inside = [os.path.join(".", path) for path in paths or ()]  # a number would be an ID
    return await run_verb("undo", "--turn", *caller_option(caller), *options, "--", *inside)


TOOLS = (undo_turn,)

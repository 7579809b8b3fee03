"""What to do where a gate did not pass in a private checkout in which nothing is installed."""

from __future__ import annotations

import json
import os

from gitgates.core.clean import first_few, visible_line
from gitgates.store.files import read_or_empty
from gitgates.worktree.lock_files import install_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

_MOST_NAMED = 4
_ANY = "make deps"  # where no lock file tells
_CACHES = ("__pycache__/", "_cache/")


def setup_hints(repo: Repo, config: Config, hook: str) -> tuple[str, ...]:
    """Return why the gates of a hook may have missed something, and the ways to change that.

    Nothing, where the working tree has no more than git has, and no lock file.
    """
    ask = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    ignored = [name for name in repo.git.names(*ask) if not name.endswith(_CACHES)]
    commands = install_commands(
        os.listdir(repo.root_abs), read_or_empty(f"{repo.root_abs}/yarn.lock")
    )
    if not (ignored or commands):
        return ()
    has = f": {first_few(ignored, _MOST_NAMED)}" if ignored else ""
    setup = json.dumps(commands[0] if len(commands) == 1 else [*commands] or _ANY)
    source = next(iter(config.sources), "pyproject.toml")
    table = "tool.gitgates.worktree" if source.endswith("pyproject.toml") else "worktree"
    place, others = f"[{table}] setup = {setup} in {source}", "commit or stash your changes first"
    ways = f'{place}; or {others}; or write unstaged = "hide" in the table of {hook}'
    return (
        f"a private checkout has nothing that git ignores in the working tree{visible_line(has)}",
        f"if gates need it, have it installed there: {ways}",
    )

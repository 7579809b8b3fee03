"""What to do if a gate did not pass in a private checkout in which nothing is installed."""

from __future__ import annotations

import json

from gitgates.core.clean import first_few, visible_line
from gitgates.worktree.lock_files import as_setting, install_commands
from gitgates.worktree.setup import worktree_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

_MOST_NAMED = 4
_ANY = "the command that installs it"  # if no lock file tells
_CACHES = ("__pycache__", "_cache")


def setup_hints(repo: Repo, config: Config, hook: str = "") -> tuple[str, ...]:
    """Return why gates may have missed something in a checkout, and the ways to change that.

    Nothing if `setup` is declared, or if the working tree has no more than git has, and no lock
    file. With a `hook`, also the ways without a checkout.
    """
    if worktree_settings(config).setup:
        return ()
    ignored, commands = ignored_in(repo), install_commands(repo.root_abs)
    if not (ignored or commands):
        return ()
    has = f": {first_few(ignored, _MOST_NAMED)}" if ignored else ""
    setup = json.dumps(as_setting(commands) or _ANY)
    source = next(iter(config.sources), "pyproject.toml")
    table = "tool.gitgates.worktree" if source.endswith("pyproject.toml") else "worktree"
    ways = f"[{table}] setup = {setup} in {source}"
    if hook:
        ways += "; or commit or stash your changes first; "
        ways += f'or write unstaged = "hide" in the table of {hook}'
    return (
        f"private checkouts lack what git ignores in the working tree{visible_line(has)}",
        f"if gates need it, have it installed there: {ways}",
    )


def ignored_in(repo: Repo) -> list[str]:
    """Return what git ignores in a working tree, except for caches: folders, then files."""
    ask = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    names = [
        name
        for name in repo.git.names(*ask)
        if not any(part.endswith(_CACHES) for part in name.split("/"))
    ]
    return sorted(names, key=lambda name: not name.endswith("/"))

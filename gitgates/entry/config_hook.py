"""Hooks that git has from its configuration: whether the gates are to run, and by this one."""

from __future__ import annotations

import os

from gitgates.config.load import load
from gitgates.core.errors import ConfigError
from gitgates.engine.plan import find_hook
from gitgates.git.hook_file import runs_gates
from gitgates.session.trust import is_approved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.report.text import Terminal

_GLOBAL = "--via=global"  # from a person's own configuration, for all repositories


def is_wanted(via: str, hook: str, repo: Repo, terminal: Terminal) -> bool:
    """Return whether the gates are to run: no file runs them, and the repository is trusted."""
    path = os.fsdecode(repo.git.configured("rev-parse", "--git-path", f"hooks/{hook}").stdout)
    if runs_gates(os.path.join(repo.root_abs, path.rstrip("\n")), repo.root_abs):
        return False
    if via != _GLOBAL or is_approved(repo):
        return True
    if _has_gates(repo, hook):
        terminal.write(
            b"gitgates %s: nothing was checked: you have not trusted the gates of this repository\n"
            b"  To look at them: gitgates explain %s\n"
            b"  To trust them, once: gitgates approve gates\n" % (hook.encode(), hook.encode())
        )
    return False


def _has_gates(repo: Repo, hook: str) -> bool:
    try:
        config = load(repo.root_abs)  # nothing of it is run, and nothing written
    except ConfigError:
        return True
    return config is not None and find_hook(config, hook) is not None

"""Git's hooks in a session on the vendor's machines, whose clone is new: install them as it begins.

Only if the configuration asks for it. Others' hooks are kept, as `install-hooks` keeps them.
"""

from __future__ import annotations

from gitgates.config.load import load
from gitgates.core.errors import GitgatesError
from gitgates.git.repo import current_folder, find_repo
from gitgates.setup.install import githooks
from gitgates.setup.install.hookspath import hooks_folder, require_usable
from gitgates.setup.install.selection import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def install_hooks(folder_abs: str, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Install the configured hooks of the repository of a folder; empty: of the current one."""
    try:
        repo = find_repo(folder_abs or current_folder(), env)
        config = load(repo.root_abs)
        if config and config.cloud_hooks:
            folder = hooks_folder(repo)
            require_usable(folder, force=False)
            githooks.install(folder.path_abs, select(config)[0], force=False)
    except (GitgatesError, OSError) as error:
        say(f"git's hooks were not installed: {error}")

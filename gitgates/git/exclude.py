"""Make git ignore a personal gitgates file, in the `info/exclude` of a repository. Cold."""

from __future__ import annotations

import os

from gitgates.core.errors import GitError
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

_NAME = "info/exclude"


def exclude(repo: Repo, name: str) -> str:
    """Add a file at the root to `info/exclude`; return a message about it.

    Nothing is done or said if it does not exist, or is tracked or ignored already.
    The file is that of all worktrees. Git reads no other one that is not shared with everybody.
    """
    if not os.path.lexists(f"{repo.root_abs}/{name}"):
        return ""
    try:
        if repo.git.ask("ls-files", "--error-unmatch", "--", name).exit_status == 0:
            return ""
        if repo.git.ignored([name]):
            return ""
        _append(f"{repo.common_dir_abs}/{_NAME}", f"/{name}\n".encode())
    except GitError:
        return ""  # git cannot say: whoever asked meets the same
    except OSError as error:
        why = error.strerror or str(error)
        return f"{name} is not ignored by git, and .git/{_NAME} cannot be written: {why}"
    return f"{name} is only for this clone: git now ignores it (.git/{_NAME})"


def _append(path_abs: str, line: bytes) -> None:
    os.makedirs(os.path.dirname(path_abs), exist_ok=True)
    with open(path_abs, "ab+", opener=open_regular) as file:
        file.seek(0)
        before = file.read()
        file.write(b"\n" + line if before and not before.endswith(b"\n") else line)

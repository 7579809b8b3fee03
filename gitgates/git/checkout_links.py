"""Link what git ignores, installed packages above all, from the user's root into a checkout."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.run import Git


def make_links(
    git: Git, root_abs: str, names: tuple[str, ...]
) -> tuple[tuple[str, ...], list[str]]:
    """Link `names` of the user's root into `root_abs`; return those linked, and what to say.

    `names` are relative to the root. One that the user does not have is passed over in silence;
    one that git does not ignore, or that the tree has itself, is not linked, and that is said.

    Raises: GitError where git does not tell what it ignores; OSError where nothing can be written.
    """
    linked: list[str] = []
    notes: list[str] = []
    plain = {_plain(name): None for name in names}
    present = [name for name in plain if os.path.lexists(os.path.join(git.cwd_abs, name))]
    ignored = _ignored(git, present)
    for name in present:
        if name not in ignored:
            notes.append(f"`{name}` is not linked: git does not ignore it")
        elif _make(git.cwd_abs, root_abs, name):
            linked.append(name)
        else:
            notes.append(f"`{name}` is not linked: what is checked has something else there")
    return tuple(linked), notes


def _plain(name: str) -> str:
    return os.path.normpath(name.strip("/"))


def _ignored(git: Git, names: list[str]) -> set[str]:
    """Ask git which of the names it ignores. A name that leads out of the root is none of them."""
    inside = [name for name in names if name != "." and name.split("/")[0] != ".."]
    if not inside:
        return set()
    stdin = b"".join(os.fsencode(name) + b"\0" for name in inside)
    # `check-ignore` refuses what our other git commands are told about their names.
    done = git.ask("--no-literal-pathspecs", "check-ignore", "-z", "--stdin", stdin=stdin)
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


def _make(source_abs: str, root_abs: str, name: str) -> bool:
    """Make one link; False where the tree has something there, or no folder to put it in."""
    folder_abs = root_abs
    for part in name.split("/")[:-1]:
        folder_abs = os.path.join(folder_abs, part)
        if not os.path.lexists(folder_abs):
            os.mkdir(folder_abs)
        elif not stat.S_ISDIR(os.lstat(folder_abs).st_mode):
            return False
    try:
        os.symlink(os.path.join(source_abs, name), os.path.join(root_abs, name))
    except FileExistsError:
        return False
    return True

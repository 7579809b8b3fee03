"""What another run has hidden, seen by a snapshot: it counts as if it were in its place."""

from __future__ import annotations

import os

from gitgates.record import Record
from gitgates.store.files import remove_tree
from gitgates.store.rescue import Rescue, StashedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git


class Hidden(Record):
    """What is hidden at one moment. Two that are equal: nothing was moved between them."""

    entries: tuple[
        StashedPath, ...
    ] = ()  # what is moved out of the working tree, or never was in it
    journal: tuple[int, int] = (0, 0)  # inode and time of the journal


def find_hidden(state_abs: str) -> Hidden:
    """Return what another run has hidden; what this one has is hidden on purpose.

    Raises: StateError where the journal cannot be understood.
    """
    rescue = Rescue(f"{state_abs}/rescue")
    try:
        found = os.stat(rescue.at("journal"))
    except OSError:
        return Hidden()
    journal = rescue.read()
    if journal.pid == os.getpid():
        return Hidden()
    moved = [entry for entry in journal.entries if not entry.saved or _is_saved(rescue, entry)]
    return Hidden(tuple(moved), (found.st_ino, found.st_mtime_ns))


def show_saved(git: Git, repo: Repo, hidden: Hidden) -> None:
    """Put what is saved in place of what is shown, in the index that `git` works on.

    Raises: GitError or OSError; the run that hides may put it back meanwhile.
    """
    rescue = Rescue(f"{repo.state_abs}/rescue")
    folder_abs = f"{repo.state_abs}/snapshot.saved"
    paths = b"".join(os.fsencode(entry.path) + b"\0" for entry in hidden.entries)
    git.out("update-index", "--force-remove", "-z", "--stdin", stdin=paths)
    if os.path.lexists(folder_abs):
        remove_tree(folder_abs)
    os.mkdir(folder_abs, mode=0o700)
    try:
        names: list[str] = []
        for entry in hidden.entries:
            if entry.saved:
                found = _link(rescue.at("saved", entry.saved), folder_abs, entry.path)
                names += found if found == [entry.path] else _without_ignored(git, found)
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        # As a working tree of its own, so that filters see each file under its name.
        there = git._replace(cwd_abs=folder_abs, env={**git.env, "GIT_WORK_TREE": folder_abs})
        there.out("update-index", "--add", "--replace", "-z", "--stdin", stdin=stdin)
    finally:
        remove_tree(folder_abs)


def _without_ignored(git: Git, names: list[str]) -> list[str]:
    """Leave out what a saved folder holds that git ignores."""
    stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
    ask = ("--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin")
    ignored = {os.fsdecode(name) for name in git.ask(*ask, stdin=stdin).stdout.split(b"\0")}
    return [name for name in names if name not in ignored]


def _is_saved(rescue: Rescue, entry: StashedPath) -> bool:
    return os.path.lexists(rescue.at("saved", entry.saved))


def _link(saved_abs: str, folder_abs: str, path: str) -> list[str]:
    """Link a saved file, or all in a saved folder, below `folder_abs`; return the paths."""
    if os.path.isdir(saved_abs) and not os.path.islink(saved_abs):
        found: list[str] = []
        inside = sorted(os.listdir(saved_abs))
        if ".git" in inside:
            return []  # a repository of its own is in no snapshot
        for name in inside:
            found += _link(f"{saved_abs}/{name}", folder_abs, f"{path}/{name}")
        return found
    target_abs = os.path.join(folder_abs, path)
    os.makedirs(os.path.dirname(target_abs), exist_ok=True)
    os.link(saved_abs, target_abs, follow_symlinks=False)
    return [path]

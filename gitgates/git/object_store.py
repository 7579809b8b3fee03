"""The private object directory: git objects of gitgates, outside the user's repository.

There `git gc --prune=now` would destroy it, and a ref that protects it would be published by
`git push --mirror`. It is shared by all worktrees, and we prune it ourselves, by age.
"""

from __future__ import annotations

import os

from gitgates.git.repo import Git
from gitgates.store.files import make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.git.repo import Repo

KEPT_S = 30 * 24 * 3600.0  # since an object was last part of a snapshot
LARGEST = 1 << 20  # bytes of a file; nobody writes more by hand
_OWN = "GIT_OBJECT_DIRECTORY"
_OTHERS = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


def reading_git(repo: Repo) -> Git:
    """Return git for reading commands, with the private objects as an alternate."""
    ours = _folder(repo)
    if not os.path.isdir(ours):
        return repo.git  # git complains about a folder that is not there
    return Git(cwd_abs=repo.root_abs, env={**repo.env, _OTHERS: _joined(ours, repo)})


def storing_git(repo: Repo) -> Git:
    """Return git for writing commands: new objects go to the private directory.

    Raises: OSError where that cannot be made.
    """
    ours = _folder(repo)
    make_folder(ours)
    env = {**repo.env, _OWN: ours, _OTHERS: _joined(_users(repo), repo)}
    return Git(cwd_abs=repo.root_abs, env=env)


def sources(repo: Repo) -> list[str]:
    """Return all object directories, each as a line of `objects/info/alternates`."""
    ours = _folder(repo)
    # Git complains about a folder that is not there.
    found = [_users(repo), ours] if os.path.isdir(ours) else [_users(repo)]
    return [quoted(folder_abs) for folder_abs in found] + [
        part for part in (repo.env.get(_OTHERS, ""),) if part
    ]


def keep(repo: Repo, ids: Iterable[str]) -> list[str]:
    """Postpone the pruning of these objects; return the ids of those that are not ours."""
    folder_abs, missing = _folder(repo), []
    for object_id in ids:
        try:
            os.utime(f"{folder_abs}/{object_id[:2]}/{object_id[2:]}")
        except OSError:
            missing.append(object_id)
    return missing


def has(repo: Repo, object_id: str) -> bool:
    """Return whether an object is in the private directory."""
    return os.path.exists(f"{_folder(repo)}/{object_id[:2]}/{object_id[2:]}")


def prune(repo: Repo, now_s: float) -> int:
    """Remove objects in no snapshot of the last month; return how many."""
    gone = 0
    try:
        folders = [one for one in os.scandir(_folder(repo)) if one.is_dir(follow_symlinks=False)]
        # A killed git leaves tmp_obj_… files, which age the same way.
        for entry in [entry for folder in folders for entry in os.scandir(folder.path)]:
            is_file = entry.is_file(follow_symlinks=False)
            if is_file and entry.stat().st_mtime < now_s - KEPT_S:
                os.unlink(entry.path)
                gone += 1
    except OSError:
        return gone  # another run prunes, or nothing can be written: it is tried again
    return gone


def _folder(repo: Repo) -> str:
    return f"{repo.shared_state_abs}/objects"


def _users(repo: Repo) -> str:
    """Return the repository's own object folder. A relative name is git's, from the root."""
    named = repo.env.get(_OWN, "")
    return os.path.join(repo.root_abs, named) if named else f"{repo.common_dir_abs}/objects"


def _joined(folder_abs: str, repo: Repo) -> str:
    return os.pathsep.join(filter(None, (quoted(folder_abs), repo.env.get(_OTHERS, ""))))


def quoted(text: str) -> str:
    """Return a text in double quotes, as git reads it in its settings and lists of folders."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def read_blobs(git: Git, names: Iterable[str], largest: int = LARGEST) -> dict[str, bytes]:
    """Return name → content of objects, without huge ones.

    Raises: GitError where git cannot be asked.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    asked = b"".join(os.fsencode(name) + b"\n" for name in wanted)
    sizes = git.out("cat-file", "--batch-check=%(objectsize)", stdin=asked).splitlines()
    small = [
        name
        for name, size in zip(wanted, sizes, strict=True)
        if size.isdigit() and int(size) <= largest
    ]
    asked = b"".join(os.fsencode(name) + b"\n" for name in small)
    data = git.out("cat-file", "--batch=%(objectsize)", stdin=asked) if small else b""
    found: dict[str, bytes] = {}
    at = 0
    for name in small:
        end = data.index(b"\n", at)
        size = int(data[at:end])
        found[name] = data[end + 1 : end + 1 + size]
        at = end + size + 2
    return found

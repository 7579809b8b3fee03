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
    from collections.abc import Iterable, Iterator

    from gitgates.git.repo import Repo

KEPT_S = 30 * 24 * 3600.0  # since an object was last part of a snapshot
LARGEST = 1 << 20  # bytes of a file; nobody writes more by hand
_MOST_BYTES = 32 << 20  # of objects in memory at once, but for a single one
_OBJECTS = "GIT_OBJECT_DIRECTORY"
_ALTERNATES = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


def reading_git(repo: Repo) -> Git:
    """Return git for reading commands, with the private objects as an alternate."""
    private_abs = _folder(repo)
    if not os.path.isdir(private_abs):
        return repo.git  # git complains about a folder that is not there
    return Git(cwd_abs=repo.root_abs, env={**repo.env, _ALTERNATES: _joined(private_abs, repo)})


def storing_git(repo: Repo) -> Git:
    """Return git for writing commands: new objects go to the private directory.

    Raises: OSError where that cannot be made.
    """
    private_abs = _folder(repo)
    make_folder(private_abs)
    env = {**repo.env, _OBJECTS: private_abs, _ALTERNATES: _joined(_users(repo), repo)}
    return Git(cwd_abs=repo.root_abs, env=env)


def sources(repo: Repo) -> list[str]:
    """Return all object directories, each as a line of `objects/info/alternates`."""
    private_abs = _folder(repo)
    # Git complains about a folder that is not there.
    folders = [_users(repo), private_abs] if os.path.isdir(private_abs) else [_users(repo)]
    return [quoted(folder_abs) for folder_abs in folders] + [
        part for part in (repo.env.get(_ALTERNATES, ""),) if part
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
    removed = 0
    try:
        folders = [
            entry for entry in os.scandir(_folder(repo)) if entry.is_dir(follow_symlinks=False)
        ]
        # A killed git leaves tmp_obj_… files, which age the same way.
        for entry in [entry for folder in folders for entry in os.scandir(folder.path)]:
            is_file = entry.is_file(follow_symlinks=False)
            if is_file and entry.stat().st_mtime < now_s - KEPT_S:
                os.unlink(entry.path)
                removed += 1
    except OSError:
        return removed  # another run prunes, or nothing can be written: it is tried again
    return removed


def _folder(repo: Repo) -> str:
    return f"{repo.shared_state_abs}/objects"


def _users(repo: Repo) -> str:
    """Return the repository's own object folder. A relative name is git's, from the root."""
    configured = repo.env.get(_OBJECTS, "")
    return (
        os.path.join(repo.root_abs, configured) if configured else f"{repo.common_dir_abs}/objects"
    )


def _joined(folder_abs: str, repo: Repo) -> str:
    return os.pathsep.join(filter(None, (quoted(folder_abs), repo.env.get(_ALTERNATES, ""))))


def quoted(text: str) -> str:
    """Return a text in double quotes, as git reads it in its settings and lists of folders."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def read_blobs(git: Git, names: Iterable[str], largest: int = LARGEST) -> dict[str, bytes]:
    """Return name → content of objects, without those that are missing or larger.

    Raises: GitError where git cannot be asked.
    """
    return dict(iterate_blobs(git, names, largest))


def iterate_blobs(git: Git, names: Iterable[str], largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of objects as `read_blobs`, with a part of them in memory at once.

    Source: git-cat-file(1), BATCH OUTPUT. Raises: GitError where git cannot be asked.
    """
    unique = list(dict.fromkeys(names))
    if not unique:
        return
    answer = git.out(
        "cat-file", "--batch-check=%(objectsize)", "--buffer", stdin=_lines(unique)
    ).splitlines()
    part: list[str] = []
    total = 0
    for name, text in zip(unique, answer, strict=True):
        size = int(text) if text.isdigit() else largest + 1
        if size > largest:
            continue
        if part and total + size > _MOST_BYTES:
            yield from _read_part(git, part)
            part, total = [], 0
        part.append(name)
        total += size
    if part:
        yield from _read_part(git, part)


def _read_part(git: Git, names: list[str]) -> Iterator[tuple[str, bytes]]:
    data = git.out("cat-file", "--batch=%(objectsize)", "--buffer", stdin=_lines(names))
    at = 0
    for name in names:
        end = data.index(b"\n", at)
        size = int(data[at:end])
        yield name, data[end + 1 : end + 1 + size]
        at = end + size + 2


def _lines(names: list[str]) -> bytes:
    return b"".join([os.fsencode(name) + b"\n" for name in names])

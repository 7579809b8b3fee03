"""The private object directory: gitgates' git objects, outside the user's repository.

Inside it, `git gc --prune=now` would destroy them, and `git push --mirror` would publish a ref that
protects them. All worktrees share the directory, and we prune it ourselves, by age.

The objects in the memory of files can also be read: sessions and runs name trees there.
"""

from __future__ import annotations

import os

from gitgates.git.repo import Git
from gitgates.store.files import make_folder, read_or_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.git.repo import Repo

KEPT_S = 30 * 24 * 3600.0  # since an object was last stored
LARGEST = 1 << 20  # bytes of a file; nobody writes a larger one by hand
_MOST_BYTES = 32 << 20  # of objects in memory at once, unless a single one is larger
_OBJECTS = "GIT_OBJECT_DIRECTORY"
_ALTERNATES = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


def reading_git(repo: Repo) -> Git:
    """Return git for reading commands, with the private objects as an alternate."""
    own = _own(repo)
    if not own:
        return repo.git
    return Git(cwd_abs=repo.root_abs, env={**repo.env, _ALTERNATES: _joined(own, repo)})


def storing_git(repo: Repo) -> Git:
    """Return git for writing commands, whose new objects go to the private directory.

    Raises: OSError if that cannot be created.
    """
    private_abs = _folder(repo)
    make_folder(private_abs)
    others = [_users(repo), *_own(repo)[1:]]
    env = {**repo.env, _OBJECTS: private_abs, _ALTERNATES: _joined(others, repo)}
    return Git(cwd_abs=repo.root_abs, env=env)


def sources(repo: Repo) -> list[str]:
    """Return all object directories, each as a line of `objects/info/alternates`."""
    folders = [_users(repo), *_own(repo)]
    return [quoted(folder_abs) for folder_abs in folders] + [
        part for part in (repo.env.get(_ALTERNATES, ""),) if part
    ]


def prune(repo: Repo, now_s: float) -> int:
    """Remove objects that were stored more than a month ago; return how many."""
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
        return removed  # another run prunes, or nothing can be written: the next run tries again
    return removed


def _folder(repo: Repo) -> str:
    return f"{repo.shared_state_abs}/objects"


def _own(repo: Repo) -> list[str]:
    """Return our existing object folders, the private one first; git complains about missing ones.

    Source: `_point_to` of files/memory.py.
    """
    state_abs = repo.shared_state_abs
    memory_abs = os.fsdecode(read_or_empty(f"{state_abs}/files.at")) or f"{state_abs}/files.git"
    if not os.path.isdir(memory_abs):
        memory_abs = f"{state_abs}/files.git"
    folders = [_folder(repo), f"{memory_abs}/objects"]
    return [folder_abs for folder_abs in folders if os.path.isdir(folder_abs)]


def _users(repo: Repo) -> str:
    """Return the repository's own object folder. A relative name starts at the root."""
    configured = repo.env.get(_OBJECTS, "")
    return (
        os.path.join(repo.root_abs, configured) if configured else f"{repo.common_dir_abs}/objects"
    )


def _joined(folders: list[str], repo: Repo) -> str:
    parts = [*map(quoted, folders), repo.env.get(_ALTERNATES, "")]
    return os.pathsep.join(filter(None, parts))


def quoted(text: str) -> str:
    """Return a text in double quotes, as git reads it in its settings and lists of folders."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def read_blobs(git: Git, names: Iterable[str], largest: int = LARGEST) -> dict[str, bytes]:
    """Return name → content of objects, without those that are missing or larger.

    Raises: GitError if git fails.
    """
    return dict(iterate_blobs(git, names, largest))


def iterate_blobs(git: Git, names: Iterable[str], largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of objects as `read_blobs` does, with few in memory at once.

    Source: git-cat-file(1), BATCH OUTPUT. Raises: GitError if git fails.
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

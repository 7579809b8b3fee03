"""The repository that gates find in a private checkout: complete to look at, and nobody else's.

It borrows the user's objects, and has a copy of the refs and settings. So `git log`, `git diff
main` and `git status` answer as they would in the user's own working tree, and whatever a gate does
(commit, stash, reset, fetch) stays in there. Everything but the objects is written anew each time.
"""

from __future__ import annotations

import os

from gitgates.git.index import copy_index
from gitgates.git.object_store import sources
from gitgates.git.repo import Repo
from gitgates.record import Record
from gitgates.store.files import open_state, remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.run import Git

# Later than what is included, so that these hold.
_SETTINGS = """\
[core]
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	splitIndex = false
	untrackedCache = false
	sparseCheckout = false
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
"""
# Of one worktree only, or not for a gate to find.
_NOT_COPIED = (b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/", b"refs/stash")


class Look(Record):
    """What the repository shows besides the files."""

    commit: str  # what HEAD is; empty: what it is for the user
    index_abs: str
    ignored: tuple[str, ...]  # names at which links were made, relative to the root


def make_repository(root_abs: str, repo: Repo, look: Look) -> Repo:
    """Make the repository of a private checkout in `root_abs`, in place of what was there.

    Raises: GitError where git does not tell what it needs; OSError where it cannot be written.
    """
    git = repo.git
    git_dir_abs = f"{root_abs}/.git"
    if os.path.isdir(git_dir_abs) and not os.path.islink(git_dir_abs):
        remove_tree(git_dir_abs)
    elif os.path.lexists(git_dir_abs):
        os.unlink(git_dir_abs)
    for folder in ("objects/info", "refs/heads", "refs/tags", "info"):
        os.makedirs(f"{git_dir_abs}/{folder}")
    texts = {
        "objects/info/alternates": _lines(sources(repo)),
        "packed-refs": _refs(git),
        "config": _config(repo),
        "info/exclude": _exclude(repo, look.ignored),
        "info/attributes": _content(f"{repo.common_dir_abs}/info/attributes"),
        "info/grafts": _content(f"{repo.common_dir_abs}/info/grafts"),
        "shallow": _content(f"{repo.common_dir_abs}/shallow"),
    }
    for name, text in texts.items():
        if text:
            _write(f"{git_dir_abs}/{name}", text)
    copy_index(look.index_abs, f"{git_dir_abs}/index")
    # Last: without it, this is no repository.
    _write(f"{git_dir_abs}/HEAD", _head(git, look.commit))
    return Repo(root_abs, git_dir_abs, git_dir_abs, repo.env)


def _head(git: Git, commit: str) -> bytes:
    """Return HEAD: as the user's, branch and all, unless another commit is laid out."""
    current = git.ask("rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()
    if commit and os.fsencode(commit) != current:
        return _lines([commit])
    branch = git.ask("symbolic-ref", "--quiet", "HEAD").stdout.strip()
    return b"ref: " + branch + b"\n" if branch else current + b"\n"


def _refs(git: Git) -> bytes:
    listed = git.ask("for-each-ref", "--format=%(objectname) %(refname)").stdout
    kept = [
        line for line in listed.splitlines() if not line.partition(b" ")[2].startswith(_NOT_COPIED)
    ]
    return b"".join(line + b"\n" for line in kept)


def _config(repo: Repo) -> bytes:
    """Return the settings: the user's by inclusion, so that filters and remotes are the same."""
    form = repo.git.out("rev-parse", "--show-object-format").decode().strip()
    if form == "sha1":
        head = "[core]\n\trepositoryformatversion = 0\n"
    else:
        head = f"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {form}\n"
    included = [f"{repo.common_dir_abs}/config", f"{repo.git_dir_abs}/config.worktree"]
    paths = "".join(f"\tpath = {_value(path)}\n" for path in included if os.path.exists(path))
    return os.fsencode(f"{head}[include]\n{paths}{_SETTINGS}")


def _value(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def _exclude(repo: Repo, ignored: tuple[str, ...]) -> bytes:
    """Return what is ignored: `.venv/` in the user's rules does not mean a link of that name."""
    lines = [f"/{''.join(_pattern(char) for char in name)}" for name in ignored]
    return _content(f"{repo.common_dir_abs}/info/exclude") + b"\n" + _lines(lines)


def _pattern(char: str) -> str:
    return f"\\{char}" if char in "*?[\\ " else char


def _lines(lines: list[str]) -> bytes:
    return b"".join(os.fsencode(line) + b"\n" for line in lines)


def _content(path_abs: str) -> bytes:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _write(path_abs: str, text: bytes) -> None:
    with open(path_abs, "wb", opener=open_state) as file:
        file.write(text)

"""Lay out a commit, a tree or an index in a folder, with its own repository.

Git writes the files, so filters, line endings, modes and links are as in any checkout. The user's
files, index, refs and stash are not touched. Why it is not a linked worktree:
docs/adr/0004-private-checkouts.md.

The repository that gates find there looks complete, and belongs to nobody else. It borrows the
user's objects, and has a copy of the refs and settings: `git log`, `git diff main` and `git status`
answer as in the user's own working tree, and whatever a gate does (commit, stash, reset, fetch)
stays inside. Everything except the objects is written again each time.
"""

from __future__ import annotations

import os
import re

from gitgates.core.errors import GitError, StateError
from gitgates.git.index import SETTINGS, copy_index, write_tree
from gitgates.git.object_store import quoted, reading_git, sources
from gitgates.git.repo import Repo, without_git
from gitgates.store.files import make_folder, no_folder_in, open_state, read_or_empty, remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.git.repo import Git
    from gitgates.store.slots import Slot

_SETTINGS = (*SETTINGS, ("core.sparseCheckout", "false"))
_LAYOUT = r"^(core\.(autocrlf|eol|symlinks|filemode|attributesfile)|filter\.)"
_AFTER_A_PATH = r"""\s:;,="'`&|<>(){}\[\]"""  # may follow a path in a value
_A_PATH = re.compile(rf"/[^{_AFTER_A_PATH}]+")
# Variables that name another repository, index or folder.
_NOT_OURS = ("GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX")
# For its repository: after the included files, so that these settings win.
_OWN_CONFIG = """\
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
# Refs of one worktree only, and refs that a gate must not find.
_NOT_COPIED = (
    *(b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/", b"refs/stash", b"refs/replace/"),
)


class Layout:
    """A folder in which git writes one tree after another."""

    def __init__(self, repo: Repo, slot: Slot) -> None:
        repo = repo.as_stored
        self.folder_abs = slot.folder_abs
        self._repo, self._slot = repo, slot
        self._git = _git_inside(repo, slot)
        self.settings = _checkout_settings(repo)

    def fill(self, tree: str) -> None:
        """Write a tree into an empty folder. Raises: GitError, StateError, OSError."""
        self._slot.empty()
        make_folder(self.folder_abs, exist_ok=False)
        self.reset(tree)

    def update(self, previous_tree: str, tree: str, kept: Iterable[str] = ()) -> bool:
        """Remove what gates left, except for `kept`, and write what differs.

        Returns whether that was possible. If not, everything must be written: git has, or had, a
        file in `kept`, for example.
        """
        differs = self._git.ask(
            *("diff-tree", "-r", "-z", "--name-only", "--no-renames", previous_tree, tree)
        )
        paths = [os.fsdecode(name).split("/") for name in differs.stdout.split(b"\0")]
        # Other attributes may write a file differently although git has the same blob.
        if differs.exit_status or any(parts[-1] == ".gitattributes" for parts in paths):
            return False
        touched = {"/".join(parts[:count]) for parts in paths for count in range(1, len(parts) + 1)}
        if any(name.rstrip("/") in touched for name in kept):
            return False
        try:
            self.clean(kept)
            self.reset(tree)
        except (GitError, OSError):
            return False
        return True

    def clean(self, kept: Iterable[str] = ()) -> None:
        """Remove everything that is not in the index, except for `kept`. Raises: GitError."""
        self._empty_submodules()
        excluded = [word for name in kept for word in ("-e", ignore_line(name))]
        self._git.out("clean", "-ffdxq", *excluded)

    def reset(self, tree: str) -> None:
        """Write what differs from a tree. Raises: GitError, OSError."""
        alone = ("--no-recurse-submodules", "--no-sparse-checkout")
        self._git.out("read-tree", "--reset", "-u", *alone, tree)
        self._empty_submodules()

    def put_back(self, tree: str) -> None:
        """Write what differs from the tree that was laid out. Raises: GitError, OSError."""
        self._empty_submodules()  # git fails if a link leads to one
        self.reset(tree)

    def _empty_submodules(self) -> None:
        """Empty the folders of submodules, which git does not clean.

        A link above one may lead to somebody's files, which stay.
        """
        for name in self.submodules():
            folder_abs = f"{self.folder_abs}/{name}"
            if path_abs := no_folder_in(self.folder_abs, name):
                os.unlink(path_abs)
            if os.path.isdir(folder_abs) and os.listdir(folder_abs):
                remove_tree(folder_abs)
                os.mkdir(folder_abs)

    def submodules(self) -> list[str]:
        """Return the paths of submodules, which are empty folders here."""
        entries = self._git.names("ls-files", "--stage", "-z")
        return [entry.partition("\t")[2] for entry in entries if entry.startswith("160000")]

    def has(self, name: str) -> bool:
        """Return whether the tree has a path, or something below it."""
        return bool(self._git.names("ls-files", "-z", "--", name))

    def entries(self, patterns: Iterable[str]) -> list[str]:
        """Return the tree's `matching_entries`."""
        return matching_entries(self._git, patterns)

    def changed(self) -> list[str]:
        """Return the paths of the tree's files that have changed since they were written."""
        self._git.ask("update-index", "-q", "--refresh")
        return self._git.names("diff-files", "-z", "--name-only", "--ignore-submodules")

    def added(self) -> list[str]:
        """Return paths that are not in the tree; a folder with only such files is listed as one."""
        return self._git.names("ls-files", "-z", "--others", "--directory")

    def open_repository(self, commit: str, ignored: Iterable[str]) -> Repo:
        """Make a repository in the folder, replacing any other, and return it.

        `commit`: the commit of HEAD; empty: the user's. `ignored`: more paths that git ignores
        there. Its environment has none of git's variables, because it is found by its folder, and
        paths into the user's working tree lead into the folder instead.

        Raises: GitError if git does not say what is needed; OSError if it cannot be written.
        """
        repo = _make_repository(self._repo, self._slot, commit, ignored)
        return repo._replace(env=env_in(self.folder_abs, self._repo))


def matching_entries(git: Git, patterns: Iterable[str]) -> list[str]:
    """Return mode, object and name of each file in an index that matches one of the patterns."""
    words = [f"--exclude={pattern}" for pattern in patterns]
    ask = ("ls-files", "--stage", "-z", "--cached", "--ignored")
    return git.names(*ask, *words) if words else []  # git takes no patterns for a mistake


def resolve(repo: Repo, treeish: str) -> tuple[str, str]:
    """Return the commit, or "", and the tree of a commit, a tag or a tree. Raises: GitError."""
    git = reading_git(repo.as_stored)
    tree = git.resolve(f"{treeish}^{{tree}}")
    if not tree:
        raise GitError(
            f"`{treeish}` is neither a commit nor a tree", "See: git log --oneline --all"
        )
    return git.resolve(f"{treeish}^{{commit}}"), tree


def tree_of_index(repo: Repo, index_abs: str) -> str:
    """Return the tree that a commit from an index would have; the index is only read.

    Raises: GitError if it has conflicts; StateError if the tree cannot be stored.
    """
    try:
        return write_tree(repo, index_abs)
    except OSError as error:
        raise StateError(f"{repo.state_abs}: cannot be written: {error.strerror}") from error


def ignore_line(name: str) -> str:
    """Return the pattern of .gitignore that matches one path, or a folder if it ends in `/`."""
    escaped = "".join(f"\\{char}" if char in "*?[\\ " else char for char in name)
    return f"/{escaped}"


def env_in(folder_abs: str, repo: Repo) -> dict[str, str]:
    """Return the environment for a folder that stands in for the user's working tree.

    It has none of git's variables, and paths into the working tree lead into the folder: otherwise,
    for example, an active virtual environment there would be used, with its packages. A home folder
    in the working tree stays; if it is the working tree, nothing is changed, because programs may
    be anywhere in it.
    """
    env, root_abs = without_git(repo.env), os.path.realpath(repo.root_abs)
    home_abs = os.path.realpath(env.get("HOME") or "/")
    if home_abs == root_abs:
        return env
    is_in, after = home_abs.startswith(f"{root_abs}/"), f"[/{_AFTER_A_PATH}]|$"
    but = rf"(?!{re.escape(home_abs.removeprefix(root_abs))}(?:{after}))" if is_in else ""
    names = "|".join(map(re.escape, dict.fromkeys((repo.root_abs, root_abs))))
    in_root = re.compile(rf"(?:{names}){but}(?={after})")

    def moved(path: str) -> str:
        real = f"{os.path.realpath(path)}/"
        if not real.startswith(f"{root_abs}/") or (is_in and real.startswith(f"{home_abs}/")):
            return path
        return folder_abs + real.removeprefix(root_abs)[:-1]

    def all_moved(part: str) -> str:
        text = in_root.sub(lambda _found: folder_abs, moved(part) if part[:1] == "/" else part)
        return _A_PATH.sub(lambda found: moved(found[0]), text)

    return {name: ":".join(map(all_moved, value.split(":"))) for name, value in env.items()}


def _git_inside(repo: Repo, slot: Slot) -> Git:
    """Return git with the user's settings and filters, and our folder as its working tree."""
    env = {name: value for name, value in repo.env.items() if name not in _NOT_OURS}
    env |= {
        "GIT_DIR": repo.git_dir_abs,
        "GIT_WORK_TREE": slot.folder_abs,
        "GIT_INDEX_FILE": slot.index_abs,
    }
    git = reading_git(repo._replace(env=env)).with_settings(_SETTINGS)
    return git._replace(cwd_abs=slot.folder_abs)


def _checkout_settings(repo: Repo) -> bytes:
    """Return an opaque key of all settings that decide how git writes a file."""
    git = repo.git
    # Exit status 1: nothing is set.
    settings = git.ask("config", "-z", "--get-regexp", _LAYOUT).stdout
    # The user's own attributes. Source: gitattributes(5).
    configured = git.ask("config", "--type=path", "--get", "core.attributesFile")
    config_abs = repo.env.get("XDG_CONFIG_HOME", "") or f"{repo.env.get('HOME', '')}/.config"
    usual = f"{config_abs}/git/attributes"
    attributes_file = (
        usual if configured.exit_status else os.fsdecode(configured.stdout).rstrip("\n")
    )
    files = (f"{repo.common_dir_abs}/info/attributes", os.path.join(repo.root_abs, attributes_file))
    return b"\0\0".join((settings, *map(read_or_empty, files)))


def _make_repository(repo: Repo, slot: Slot, commit: str, ignored: Iterable[str]) -> Repo:
    git = repo.git
    git_dir_abs = f"{slot.folder_abs}/.git"
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
        "info/exclude": _exclude(repo, ignored),
        "info/attributes": read_or_empty(f"{repo.common_dir_abs}/info/attributes"),
        "info/grafts": read_or_empty(f"{repo.common_dir_abs}/info/grafts"),
        "shallow": read_or_empty(f"{repo.common_dir_abs}/shallow"),
    }
    for name, text in texts.items():
        if text:
            _write(f"{git_dir_abs}/{name}", text)
    copy_index(slot.index_abs, f"{git_dir_abs}/index")
    # Last: without it, this is not a repository.
    _write(f"{git_dir_abs}/HEAD", _lines([_head(git, commit)]))
    return Repo(slot.folder_abs, git_dir_abs, git_dir_abs, repo.env)


def _head(git: Git, commit: str) -> str:
    """Return HEAD: the user's, with its branch, unless another commit is laid out."""
    current = git.resolve("HEAD")
    if commit and commit != current:
        return commit
    branch = os.fsdecode(git.ask("symbolic-ref", "--quiet", "HEAD").stdout).rstrip("\n")
    return f"ref: {branch}" if branch else current


def _refs(git: Git) -> bytes:
    refs = git.ask("for-each-ref", "--format=%(objectname) %(refname)").stdout
    copied = [
        line for line in refs.splitlines() if not line.partition(b" ")[2].startswith(_NOT_COPIED)
    ]
    return b"".join(line + b"\n" for line in copied)


def _config(repo: Repo) -> bytes:
    """Return the settings, which include the user's, so that filters and remotes are the same."""
    form = repo.object_format
    if form == "sha1":
        head = "[core]\n\trepositoryformatversion = 0\n"
    else:
        head = f"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {form}\n"
    included = [f"{repo.common_dir_abs}/config", f"{repo.git_dir_abs}/config.worktree"]
    paths = "".join(f"\tpath = {quoted(path)}\n" for path in included if os.path.exists(path))
    return os.fsencode(f"{head}[include]\n{paths}{_OWN_CONFIG}")


def _exclude(repo: Repo, ignored: Iterable[str]) -> bytes:
    lines = _lines([ignore_line(name) for name in ignored])
    return read_or_empty(f"{repo.common_dir_abs}/info/exclude") + b"\n" + lines


def _lines(lines: list[str]) -> bytes:
    return b"".join(os.fsencode(line) + b"\n" for line in lines)


def _write(path_abs: str, text: bytes) -> None:
    with open(path_abs, "wb", opener=open_state) as file:
        file.write(text)

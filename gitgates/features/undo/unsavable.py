"""What of that which a command destroys no save point holds, and why."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from gitgates.core.record import Record
from gitgates.features.undo.destroyers import (
    BROUGHT,
    EDITS,
    HISTORY,
    IGNORED,
    MODULES,
    NESTED,
    OBJECTS,
    REFS,
    REMOVES,
    TRACKED,
    UNTRACKED,
)
from gitgates.files.ignored import can_be_made
from gitgates.git.repo import Git
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.features.undo.destroyers import Destroyer
    from gitgates.files.look import Look
    from gitgates.git.repo import Repo

_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/dev/shm")  # noqa: S108 - of everybody
_MOST_ARGS = 500  # paths, of one command of git
_MOST_MATCHES = 1000  # of a pattern; with more, its folder stands for them
# What a repository is made of; the rest of `.git` is of git's commands, and comes again.
_GIT_DATA = (
    *("HEAD", "config", "index", "lfs", "logs", "modules", "objects", "packed-refs", "refs"),
    *("shallow", "worktrees"),
)
_OUTSIDE = "it is outside of the repository"
_OTHER = "it is in another worktree or repository"
_REPOSITORY = "a repository of its own"
_GIT = "it is `.git` itself"
_UNKNOWN = "only the shell knows which path it is"
_UNNAMED = "no branch and no stash entry names it, and a save point has no more than these"
_DIRTY = "a repository of its own, with uncommitted changes"
_HOME_CACHES = (".cache", ".npm", ".cargo/registry", "Library/Caches", ".gradle/caches")


class Unsavable(Record):
    """What no save point can hold, and why."""

    path: str
    why: str


class Surroundings(Record):
    """Where a line is run, and what the last look has found there."""

    cwd_abs: str
    repo: Repo
    env: Mapping[str, str]
    look: Look | None = None  # None: there was none
    temporary: tuple[str, ...] = _TEMPORARY


class Search:
    """Looks for what cannot be saved."""

    def __init__(self, place: Surroundings) -> None:
        self._place = place
        self._root_abs = os.path.realpath(place.repo.root_abs)
        git_dirs = (f"{self._root_abs}/.git", place.repo.git_dir_abs, place.repo.common_dir_abs)
        self._git_dirs = tuple(dict.fromkeys(map(os.path.realpath, git_dirs)))
        look = place.look
        self._left_out = {**look.left_out, **look.ignored_out} if look else {}
        for doubt in look.unseen if look else ():
            if doubt.startswith("submodules"):
                modules = doubt.partition(": ")[2].split(", ")
                self._left_out |= dict.fromkeys(modules, _DIRTY)

    def of(self, destroyer: Destroyer, cwd_abs: str) -> Iterator[Unsavable]:
        """Yield what cannot be saved of what a command destroys that runs in a folder."""
        if destroyer.takes:
            yield from self._of_git(destroyer, os.path.join(cwd_abs, destroyer.folder))
            return
        for word in destroyer.paths:
            for path_abs, is_known in _paths(os.path.join(cwd_abs, destroyer.folder), word):
                why = self._why(path_abs, destroyer, is_known=is_known)
                if why:
                    yield Unsavable(word.replace(UNKNOWN, "…"), why)
                    continue
                if destroyer.below:
                    yield from self._linked(path_abs, destroyer.names)
                if _is_below(path_abs, self._root_abs) or _is_below(self._root_abs, path_abs):
                    yield from self._inside(path_abs, destroyer)

    def _why(self, path_abs: str, destroyer: Destroyer, *, is_known: bool) -> str:
        """Return why what is at a path cannot be saved as a whole."""
        below = destroyer.below and os.path.isdir(path_abs) and not os.path.islink(path_abs)
        for git_dir in self._git_dirs:
            name = path_abs[len(git_dir) :].strip("/").partition("/")[0]
            if _is_below(path_abs, git_dir):
                is_lock = path_abs.endswith(".lock")
                return _GIT if (not name or name in _GIT_DATA) and not is_lock else ""
            if below and is_known and not destroyer.spares_git and _is_below(git_dir, path_abs):
                return _GIT
        if below and not is_known and destroyer.does == REMOVES and path_abs == self._root_abs:
            return _UNKNOWN
        root_abs = _root_of(path_abs)
        if root_abs == self._root_abs:
            return ""
        is_there = below or (os.path.lexists(path_abs) and not os.path.isdir(path_abs))
        if not is_there or _is_empty(path_abs) or self._is_temporary(path_abs, root_abs):
            return ""
        if root_abs:
            return _OTHER if self._holds_own(root_abs, path_abs) else ""
        is_edit = destroyer.does == EDITS or (not is_known and destroyer.does != REMOVES)
        if is_edit or self._is_made(path_abs):
            return ""
        return _OUTSIDE if is_known else _UNKNOWN

    def _inside(self, path_abs: str, destroyer: Destroyer) -> Iterator[Unsavable]:
        """Yield what the last look has left out at a path, or below it."""
        relative = os.path.relpath(path_abs, self._root_abs)
        for path, why in self._left_out.items():
            is_below = relative == "." or path.startswith(f"{relative}/")
            is_nested = why in (_REPOSITORY, _DIRTY)
            if relative == path and is_nested and not destroyer.below:
                continue
            if relative != path and not (destroyer.below and is_below):
                continue
            name, names = os.path.basename(path), destroyer.names
            is_named = not names or any(fnmatchcase(name, pattern) for pattern in names)
            if is_named or (is_nested and self._holds_any(f"{self._root_abs}/{path}", names)):
                yield Unsavable(path, f"it is {why}")

    def _of_git(self, destroyer: Destroyer, folder_abs: str) -> Iterator[Unsavable]:
        root_abs, takes = _root_of(os.path.realpath(folder_abs)), destroyer.takes
        if not root_abs or not os.path.isdir(folder_abs):
            return
        if root_abs != self._root_abs:
            if not self._is_temporary(root_abs, root_abs) and self._holds_own(root_abs):
                yield Unsavable(root_abs, _OTHER)
            return
        git = self._place.repo.git
        if HISTORY in takes and git.resolve("HEAD"):
            yield Unsavable("all commits", "it removes the commits that a save point refers to")
        if OBJECTS in takes:
            ask = ("rev-list", "--max-count=1", "--reflog", "--not", "--all")
            if git.ask(*ask).stdout:
                yield Unsavable("commits that only the reflog names", _UNNAMED)
        if REFS in takes:
            yield from self._other_refs(destroyer, git)
        if BROUGHT in takes:
            yield from self._brought(git)
        if not {TRACKED, UNTRACKED, IGNORED, MODULES}.isdisjoint(takes):
            yield from self._in_worktree(destroyer, folder_abs, git)

    def _brought(self, git: Git) -> Iterator[Unsavable]:
        """Yield what git ignores here, and would overwrite from a commit that has it."""
        ignored = self._place.look.ignored_out if self._place.look else {}
        paths, ask = [*ignored], ("log", "--all", "--max-count=1", "--format=", "--name-only", "-z")
        for start in range(0, len(paths), _MOST_ARGS):
            part = paths[start : start + _MOST_ARGS]
            # One of them is reason enough to ask.
            for path in git.names(*ask, "-m", "--", *part)[:1]:
                yield Unsavable(path, f"it is {ignored.get(path, 'too large')}")
                return

    @staticmethod
    def _other_refs(destroyer: Destroyer, git: Git) -> Iterator[Unsavable]:
        """Yield the tags, and other refs than branches, whose commits nothing else names."""
        if destroyer.words[1:2] not in (("tag",), ("update-ref",)):
            return
        for name in destroyer.paths:
            ref = name if name.startswith("refs/") else f"refs/tags/{name}"
            rest = ("rev-list", "--max-count=1", ref, "--not", f"--exclude={ref}", "--all")
            if not ref.startswith("refs/heads/") and git.ask(*rest).stdout:
                yield Unsavable(ref, "a save point has branches and the stash only")

    def _in_worktree(self, destroyer: Destroyer, folder_abs: str, git: Git) -> Iterator[Unsavable]:
        takes, is_rm = destroyer.takes, git_call(list(destroyer.words[1:])).verb == "rm"
        folders = destroyer.paths if is_rm or destroyer.does == REMOVES else ()
        places = [os.path.relpath(f"{folder_abs}/{path}", self._root_abs) for path in folders]
        places = [] if "." in places else places
        if NESTED in takes:
            for place in places or ["."]:
                yield from self._linked(os.path.normpath(f"{self._root_abs}/{place}"))
        ignored = self._place.look.ignored_out if self._place.look else {}
        for path, why in self._left_out.items():
            if places and not any(_is_below(path, place) for place in places):
                continue
            if why == _DIRTY:
                is_all = is_rm or _recurses(destroyer, git)
                is_taken = MODULES in takes or (TRACKED in takes and is_all)
            elif why == _REPOSITORY or path in ignored:
                is_taken = (why != _REPOSITORY or NESTED in takes) and (
                    path not in ignored or IGNORED in takes
                )
            else:
                is_tracked = bool(git.ask("ls-files", "-z", "--", path).stdout)
                is_taken = (TRACKED if is_tracked else UNTRACKED) in takes
            if is_taken:
                yield Unsavable(path, f"it is {why}")

    def _linked(self, folder_abs: str, names: tuple[str, ...] = ()) -> Iterator[Unsavable]:
        """Yield the other worktrees below a folder that have what no commit has."""
        for root_abs in _linked_worktrees(self._place.repo.common_dir_abs):
            is_other = root_abs not in (folder_abs, self._root_abs) and os.path.isdir(root_abs)
            if is_other and _is_below(root_abs, folder_abs) and self._holds_any(root_abs, names):
                yield Unsavable(os.path.relpath(root_abs, self._root_abs), _OTHER)

    def _holds_any(self, root_abs: str, names: tuple[str, ...]) -> bool:
        """Return whether a worktree has files with such names, or any, that no commit has."""
        if not names:
            return self._holds_own(root_abs)
        return any(self._holds_own(root_abs, f":(glob,icase)**/{name}") for name in names)

    def _holds_own(self, root_abs: str, path_abs: str = "") -> bool:
        """Return whether another worktree has, at a path, what no commit has."""
        if path_abs and (path_abs == root_abs or f"{root_abs}/.git" in path_abs):
            path_abs = ""
        git = Git(cwd_abs=root_abs, env=_without_git(self._place.env))
        ask = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching")
        magic = ("--no-literal-pathspecs",) if path_abs.startswith(":(") else ()
        paths = [path_abs] if path_abs else []
        lines = git.ask(*magic, *ask, "--", *paths).stdout.split(b"\0")
        is_other = os.path.realpath(_common(git)) != os.path.realpath(
            self._place.repo.common_dir_abs
        )
        is_whole = not path_abs and is_other and os.path.isdir(f"{root_abs}/.git")
        return is_whole or any(line[:2] not in (b"", b"!!") for line in lines)

    def _is_temporary(self, path_abs: str, root_abs: str) -> bool:
        if root_abs and os.path.isfile(f"{root_abs}/.git"):
            return False  # a worktree, or a submodule
        folders = (*self._place.temporary, self._place.env.get("TMPDIR", "").rstrip("/"))
        return any(folder and _is_below(path_abs, folder) for folder in folders)

    def _is_made(self, path_abs: str) -> bool:
        home = self._place.env.get("HOME", "")
        caches = [f"{home}/{folder}" for folder in _HOME_CACHES] if home else []
        if any(_is_below(path_abs, folder) for folder in caches):
            return True
        return path_abs.endswith((".pyc", ".o", ".log", ".tmp", ".pid")) or (
            os.path.isdir(path_abs) and can_be_made(path_abs, os.listdir(path_abs))
        )


def _recurses(destroyer: Destroyer, git: Git) -> bool:
    """Return whether a command of git discards what is in submodules, too."""
    given = [word.lower() for word in destroyer.words if "recurse" in word.lower()]
    if given:
        return not given[-1].startswith("--no-") and not given[-1].endswith("=false")
    return bool(git.ask("config", "--type=bool", "submodule.recurse").stdout.strip() == b"true")


def _paths(cwd_abs: str, word: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths that a word stands for, and whether they are known."""
    is_device = word.startswith(("/dev/", "/proc/", "/sys/")) and not word.startswith("/dev/shm/")  # noqa: S108 - not ours
    if not word or is_device or "\0" in word:
        return
    known, _, rest = word.partition(UNKNOWN)
    if rest or UNKNOWN in word:
        folder = known.rpartition("/")[0] or ("/" if known.startswith("/") else ".")
        yield os.path.realpath(os.path.join(cwd_abs, os.path.expanduser(folder))), False
        return
    path_abs = os.path.join(cwd_abs, os.path.expanduser(word) if word[0] == "~" else word)
    if {*"*?["}.isdisjoint(path_abs) or os.path.lexists(path_abs):
        yield _placed(path_abs), True
        return
    from glob import iglob  # few commands have patterns
    from itertools import islice

    found = list(islice(iglob(path_abs), _MOST_MATCHES + 1))
    if len(found) > _MOST_MATCHES:
        found = [path_abs.partition("*")[0].rpartition("/")[0]]
    for path in found:
        if os.path.basename(path) not in (".", ".."):
            yield _placed(path), True


def _placed(path_abs: str) -> str:
    """Return a path without links in its folder."""
    folder, name = os.path.split(os.path.normpath(path_abs))
    return os.path.join(os.path.realpath(folder), name)


def _root_of(path_abs: str) -> str:
    """Return the root of the worktree that a path is in; empty: none."""
    folder = path_abs if os.path.isdir(path_abs) else os.path.dirname(path_abs)
    while folder != "/":
        if os.path.lexists(f"{folder}/.git"):
            return folder
        folder = os.path.dirname(folder)
    return ""


def _is_below(path_abs: str, folder_abs: str) -> bool:
    return path_abs == folder_abs or path_abs.startswith(f"{folder_abs.rstrip('/')}/")


def _is_empty(path_abs: str) -> bool:
    try:
        return not (os.listdir(path_abs) if os.path.isdir(path_abs) else os.path.getsize(path_abs))
    except OSError:
        return False


def _linked_worktrees(common_dir_abs: str) -> list[str]:
    """Return the roots of the linked worktrees of a repository."""
    folder_abs, roots = f"{common_dir_abs}/worktrees", []
    for name in sorted(os.listdir(folder_abs)) if os.path.isdir(folder_abs) else ():
        try:
            with open(f"{folder_abs}/{name}/gitdir", "rb") as file:
                git_abs = os.path.join(folder_abs, name, os.fsdecode(file.read()).rstrip("\n"))
        except OSError:
            continue
        roots.append(os.path.realpath(os.path.dirname(git_abs)))
    return roots


def _common(git: Git) -> str:
    output = git.ask("rev-parse", "--git-common-dir").stdout
    return os.path.join(git.cwd_abs, os.fsdecode(output).strip())


def _without_git(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith("GIT_")}

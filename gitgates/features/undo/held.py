"""What git knows of files: which of them hold what no commit holds, in which repository."""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.features.undo.threats import IGNORED, INDEX, STAGED, UNSTAGED, UNTRACKED
from gitgates.git.repo import Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.git.repo import Repo

_STATUS = ("status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all")
_FIELDS = {"1": 8, "u": 10}  # fields before the path, of `git status --porcelain=v2`
_WOULD = "Would remove "


class FileState(Record):
    """A file that is not as a commit has it."""

    path: str  # from the root; a folder ends with `/`
    kind: str  # `1`: tracked, `u`: in conflict, `?`: untracked, `!`: ignored
    staged: str = "."  # the change in the index, and in the worktree: as git prints it
    worktree: str = "."
    is_submodule: bool = False
    has_own: bool = False  # a submodule with changes in it


class Held:
    """Asks git what is in which repository, once."""

    def __init__(self, repo: Repo, env: Mapping[str, str]) -> None:
        self._repo = repo
        self._env = env
        self._entries: dict[tuple[str, ...], list[FileState]] = {}

    def git(self, folder_abs: str) -> Git:
        """Return git, run in a folder."""
        return Git(cwd_abs=folder_abs, env=self._env)

    def root_of(self, path_abs: str) -> str:
        """Return the root of the worktree that a path is in, or is; empty if it is in none."""
        folder = path_abs
        while not os.path.lexists(f"{folder}/.git"):
            parent = os.path.dirname(folder)
            if parent == folder:
                return ""
            folder = parent
        return folder

    def is_ours(self, root_abs: str) -> bool:
        """Return whether a worktree is one of this repository."""
        real = os.path.realpath(root_abs)
        if real == os.path.realpath(self._repo.root_abs):
            return True
        common = f"{real}/.git" if os.path.isdir(f"{real}/.git") else _common_dir(real)
        ours = os.path.realpath(self._repo.common_dir_abs)
        return bool(common) and os.path.realpath(common) == ours

    def entries(self, folder_abs: str, paths: tuple[str, ...], *, literal: bool) -> list[FileState]:
        """Return what is not as a commit has it, below paths; (): in the whole worktree."""
        key = (folder_abs, str(literal), *paths)
        if key not in self._entries:
            self._entries[key] = list(self._ask(folder_abs, paths, literal=literal))
        return self._entries[key]

    def _ask(
        self, folder_abs: str, paths: tuple[str, ...], *, literal: bool
    ) -> Iterator[FileState]:
        magic = () if literal else ("--no-literal-pathspecs",)
        args = (*magic, *_STATUS, "--ignored=matching", "--", *paths)
        for record in self.git(folder_abs).ask(*args).stdout.split(b"\0")[:-1]:
            yield _entry(os.fsdecode(record))

    def would_remove(self, folder_abs: str, words: tuple[str, ...]) -> list[str]:
        """Return what `git clean -n` lists, from the root of the filesystem."""
        completed = self.git(folder_abs).ask("--no-literal-pathspecs", *words)
        lines = os.fsdecode(completed.stdout).split("\n")
        names = [line.removeprefix(_WOULD) for line in lines if line.startswith(_WOULD)]
        return [os.path.normpath(os.path.join(folder_abs, _unquoted(name))) for name in names]


def _common_dir(root_abs: str) -> str:
    """Return the common folder of a linked worktree; of a submodule, its own."""
    try:
        with open(f"{root_abs}/.git", "rb") as file:
            git_dir = os.fsdecode(file.read()).partition("gitdir: ")[2].rstrip("\r\n")
        git_dir = os.path.join(root_abs, git_dir)
        with open(f"{git_dir}/commondir", "rb") as file:
            return os.path.join(git_dir, os.fsdecode(file.read()).rstrip("\r\n"))
    except OSError:
        return ""


def _entry(record: str) -> FileState:
    kind, _, rest = record.partition(" ")
    if kind not in _FIELDS:
        return FileState(path=rest, kind=kind)
    *fields, path = record.split(" ", _FIELDS[kind])
    change, submodule = fields[1], fields[2]
    return FileState(
        path=path,
        kind=kind,
        staged=change[0],
        worktree=change[1],
        is_submodule=submodule[0] == "S",
        has_own=not {"M", "U"}.isdisjoint(submodule),
    )


def is_taken(entry: FileState, takes: tuple[str, ...]) -> bool:
    """Return whether what no commit holds of a file is among what is taken."""
    if entry.kind in "?!":
        return (UNTRACKED if entry.kind == "?" else IGNORED) in takes
    is_index, is_worktree = entry.staged not in ".D", entry.worktree not in ".D"
    if entry.kind == "u":
        return UNSTAGED in takes or STAGED in takes
    if STAGED in takes and UNTRACKED in takes:  # the file itself, which may be gone
        return entry.worktree != "D" and (is_index or is_worktree)
    return (
        (UNSTAGED in takes and is_worktree)
        or (STAGED in takes and is_index)
        or (INDEX in takes and is_index and entry.worktree != ".")
    )


def _unquoted(name: str) -> str:
    """Return a name that git has put in quotes, as it does with odd characters."""
    if not name.startswith('"'):
        return name
    from codecs import escape_decode  # few names are so odd

    return os.fsdecode(escape_decode(os.fsencode(name[1:-1]))[0])

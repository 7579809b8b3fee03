"""Which repository a git command applies to, by its folder, `-C`, `--git-dir` and `GIT_DIR`.

It reads files, and runs nothing. Source: gitrepository-layout(5).
"""

from __future__ import annotations

import os

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# git's own options that take a value.
GIT_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env")
# Verbs that make a repository or a worktree → their options that take a value.
_MAKING = {
    "init": ("-b", "--initial-branch", "--template", "--separate-git-dir", "--object-format"),
    "clone": (
        *("-b", "--branch", "-o", "--origin", "--depth", "-c", "--config", "--reference", "-j"),
        *("--jobs", "--template", "--filter", "-u", "--upload-pack", "--separate-git-dir"),
    ),
    "worktree": ("-b", "-B", "--reason"),
}


class GitCall(Record):
    """A git command, parsed."""

    folder: str = ""  # the value of `-C`, relative to the current folder
    git_dir: str = ""  # the value of `--git-dir`
    verb: str = ""
    rest: tuple[str, ...] = ()  # words after the verb
    settings: tuple[str, ...] = ()  # the values of `-c` and `--config-env`


class MadeRepository(Record):
    """A repository that a command makes."""

    folder: str
    is_worktree: bool = False  # of the repository that the command applies to


def git_call(words: list[str]) -> GitCall:
    """Parse a git command; `words` follow `git`."""
    folder = git_dir = ""
    settings: list[str] = []
    while words and words[0].startswith("-"):
        option, *words = words
        name, equals, value = option.partition("=")
        if name in GIT_WITH_VALUE and not equals and words:
            value, *words = words
        if name == "-C":
            folder = os.path.join(folder, value)
        elif name == "--git-dir":
            git_dir = value
        elif name in ("-c", "--config-env"):
            settings.append(value)
    verb, *rest = words or [""]
    return GitCall(
        folder=folder, git_dir=git_dir, verb=verb, rest=tuple(rest), settings=tuple(settings)
    )


def repositories_made(words: list[str]) -> list[MadeRepository]:
    """Return the repositories that a git command makes, relative to its current folder."""
    call = git_call(words)
    valued, plain, rest = _MAKING.get(call.verb, ()), [], list(call.rest)
    while rest:
        word, *rest = rest
        if word in valued:
            rest = rest[1:]
        elif not word.startswith("-"):
            plain.append(word)
    match call.verb, plain:
        case "init", _:
            goal = plain[0] if plain else ""
        case "clone", [source]:
            goal = os.path.basename(source.rstrip("/")).removesuffix(".git")
        case "clone", [_, goal]:
            pass
        case "worktree", ["add", goal, *_]:
            pass
        case _:
            return []
    folder = os.path.join(call.folder, goal)
    return [MadeRepository(folder=folder, is_worktree=call.verb == "worktree")]


class Repositories:
    """Where our repository is, and other repositories that a command line creates."""

    def __init__(self, cwd_abs: str, common_dir_abs: str, unknown: str) -> None:
        self._cwd_abs = cwd_abs
        self._common = os.path.realpath(common_dir_abs) if common_dir_abs else ""
        self._unknown = unknown
        self._made: dict[str, bool] = {}

    def is_ours(self, cwd: str, words: list[str], env: Mapping[str, str]) -> bool | None:
        """Return whether a command applies to this repository; None: it applies to none.

        `words`: those after `git`; empty for another program. If unknown, it counts as ours.
        """
        call = git_call(words)
        folder = os.path.join(self._cwd_abs, cwd, call.folder)
        git_dir = call.git_dir or env.get("GIT_DIR", "")
        if not self._common or self._unknown in f"{folder}{git_dir}":
            return True
        if git_dir:
            path = os.path.realpath(os.path.join(folder, git_dir))
            return self._is_same(path) if os.path.isdir(path) else None
        return next(self._around(os.path.realpath(folder)), None)

    def note(self, cwd: str, words: list[str], env: Mapping[str, str]) -> None:
        """Remember the repositories that a git command makes."""
        for repository in repositories_made(words):
            path = os.path.realpath(os.path.join(self._cwd_abs, cwd, repository.folder))
            is_there = os.path.lexists(os.path.join(path, ".git"))
            is_ours = bool(repository.is_worktree and self.is_ours(cwd, words, env))
            if not is_there and self._unknown not in repository.folder:
                self._made[path] = is_ours

    def _around(self, folder: str) -> Iterator[bool]:
        """Yield, for each repository around a folder, whether it is ours; innermost first."""
        while True:
            dot_git = f"{folder}/.git"
            if folder in self._made:
                yield self._made[folder]
            elif os.path.isfile(f"{dot_git}/HEAD"):
                yield self._is_same(dot_git)
            elif linked := _first_line(dot_git).partition("gitdir: ")[2]:
                yield self._is_same(os.path.join(folder, linked))
            elif os.path.isfile(f"{folder}/HEAD") and (
                os.path.isdir(f"{folder}/objects") or os.path.isfile(f"{folder}/commondir")
            ):
                yield self._is_same(folder)
            if folder == os.path.dirname(folder):
                return
            folder = os.path.dirname(folder)

    def _is_same(self, git_dir: str) -> bool:
        common = _first_line(f"{git_dir}/commondir")
        return os.path.realpath(os.path.join(git_dir, common)) == self._common


def _first_line(path_abs: str) -> str:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            return os.fsdecode(file.read(1 << 13)).partition("\n")[0]
    except OSError:
        return ""

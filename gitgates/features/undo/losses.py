"""What the commands of a shell line would destroy that no commit holds.

The line is parsed, and each command looked at by its words; then git is asked what of it there is.
What a script or a program in another language removes (`python -c "shutil.rmtree(…)"`) is not seen.
Where in doubt, nothing is reported: a save point is taken in any case.
"""

from __future__ import annotations

import functools
import os

from gitgates.core.record import Record
from gitgates.features.undo.file_threats import file_threats, is_named
from gitgates.features.undo.git_threats import git_threats, is_known
from gitgates.features.undo.held import Held, is_taken
from gitgates.features.undo.spelled import is_git_data, is_temporary, spelled_paths
from gitgates.features.undo.threats import (
    COMMITS,
    HISTORY,
    INDEX,
    OBJECTS,
    REFS,
    STASH,
    UNTRACKED,
    WORKTREE,
    Threat,
)
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN, SimpleCommand, read_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from gitgates.features.undo.held import FileState
    from gitgates.features.undo.spelled import SpelledPath
    from gitgates.git.repo import Repo

_MOST_COMMANDS = 500
_OUTSIDE = "it is outside of the repository"
_OTHER = "it is in another worktree or repository"
_NESTED = "it is a repository of its own"
_GIT = "it is `.git` itself"
_UNKNOWN = "only the shell knows which path it is"
_UNNAMED = "no branch and no stash entry names it, and a save point has no more than these"
_OTHER_REF = "a save point has branches and the stash, and no other refs"
_REWRITTEN = "it removes the commits that a save point refers to"
_STASHING = ("push", "save", "-u", "-a", "-q", "-m", "-k", "--include-untracked", "--all")
_BRANCHES = "refs/heads/"
UNLIMITED = 1 << 60  # bytes


class Unsavable(Record):
    """What no save point can hold, and why."""

    path: str
    why: str


class Loss(Record):
    """What one command would destroy that no commit holds."""

    words: tuple[str, ...]
    does: str  # a verb: what the command does with it
    what: str  # a noun phrase
    scope: str = "files"  # or as of `Threat`
    paths: tuple[str, ...] = ()  # files, from the root of their worktree, or else absolute
    root_abs: str = ""  # that worktree: a save point of it is needed
    unsavable: tuple[Unsavable, ...] = ()


class Situation(Record):
    """Where a line would be run, and what save points hold."""

    cwd_abs: str
    repo: Repo
    env: Mapping[str, str] = {}
    max_file_bytes: int = UNLIMITED
    alias: Callable[[str], str] | None = None  # of git; None: git is asked
    output_of: Callable[[tuple[str, ...], str], str] = lambda _words, _cwd: UNKNOWN
    temporary: tuple[str, ...] | None = None  # folders, in which nothing counts


@functools.cache
def data() -> dict[str, Any]:
    """Return what `destructive.toml` holds."""
    import tomllib  # most commands threaten nothing

    with open(os.path.join(os.path.dirname(__file__), "destructive.toml"), "rb") as file:
        return tomllib.load(file)


def commands_of(text: str, situation: Situation) -> tuple[SimpleCommand, ...]:
    """Return the commands of a line that run in this file system, aliases of git replaced."""
    env = {**situation.env, "PWD": situation.cwd_abs}
    line = read_command_line(
        text,
        env,
        situation.output_of,
        is_folder=lambda path: os.path.isdir(os.path.join(situation.cwd_abs, path)),
    )
    return tuple(
        plain
        for command in line.commands
        if not command.elsewhere
        for plain in _without_alias(_without_nul(command), situation)
    )


def _without_nul(command: SimpleCommand) -> SimpleCommand:
    """Return a command without NUL characters, which a shell drops."""
    return command._replace(
        words=tuple(word.replace("\0", "") for word in command.words),
        cwd=command.cwd.replace("\0", ""),
        fallback=command.fallback.replace("\0", ""),
    )


def _without_alias(command: SimpleCommand, situation: Situation) -> Iterator[SimpleCommand]:
    """Yield a command; if it is an alias of git, the commands that it stands for."""
    words = command.words
    call = git_call(list(words[1:])) if _program(words) == "git" else None
    if call is None or not call.verb or is_known(call.verb):
        yield command
        return
    text = _alias(call.verb, situation)
    if not text:
        yield command
        return
    shell = text[1:] if text.startswith("!") else f"git {text}"
    inner = read_command_line(shell).commands
    for at, one in enumerate(inner):
        more = call.rest if at == len(inner) - 1 else ()
        folder = os.path.join(command.cwd, call.folder)
        yield one._replace(words=(*one.words, *more), cwd=folder, fallback=command.fallback)


def _alias(name: str, situation: Situation) -> str:
    if situation.alias is not None:
        return situation.alias(name)
    completed = situation.repo.git.ask("config", "--get", f"alias.{name}")
    return os.fsdecode(completed.stdout).strip()


def _program(words: tuple[str, ...]) -> str:
    return os.path.basename(words[0]) if words else ""


def threats_of(
    command: SimpleCommand, cwd_abs: str, find: tuple[str, ...] = ()
) -> Iterator[Threat]:
    """Yield what a command destroys by its words, where it runs in `cwd_abs`."""
    yield from file_threats(command, cwd_abs, find)
    if _program(command.words) == "git":
        yield from git_threats(command.words, command.stdin)


def find_losses(text: str, situation: Situation) -> Iterator[Loss]:
    """Yield what a line would destroy that no commit holds; of a very long one, its beginning.

    Raises: GitError where git does not exist.
    """
    finder = _Finder(situation)
    for command in commands_of(text, situation)[:_MOST_COMMANDS]:
        for cwd in dict.fromkeys((command.cwd, command.fallback or command.cwd)):
            yield from finder.of(command, "" if UNKNOWN in cwd else cwd)


class _Finder:
    """Finds out what there is of each threat, with what the commands before it have done."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._held = Held(situation.repo, situation.repo.env)
        self._stashed = False
        self._find: tuple[str, ...] = ()
        repo = situation.repo
        self._root_abs = os.path.realpath(repo.root_abs)
        git_dirs = (f"{self._root_abs}/.git", repo.git_dir_abs, repo.common_dir_abs)
        self._git_dirs = tuple(dict.fromkeys(map(os.path.realpath, git_dirs)))

    def of(self, command: SimpleCommand, cwd: str) -> Iterator[Loss]:
        """Yield the losses by a command that runs in `cwd`."""
        cwd_abs = os.path.realpath(os.path.join(self._situation.cwd_abs, cwd))
        if not os.path.isdir(cwd_abs):
            return
        for threat in threats_of(command, cwd_abs, self._find):
            folder_abs = os.path.realpath(os.path.join(cwd_abs, threat.folder))
            match threat.scope:
                case "files" if threat.is_git:
                    yield from self._in_git(threat, folder_abs)
                case "files":
                    yield from self._in_files(threat, cwd_abs)
                case _:
                    yield from self._of_git(threat, folder_abs)
        if _program(command.words) == "find":
            self._find = command.words
        stash = command.words[1:3] if _program(command.words) == "git" else ()
        if stash[:1] == ("stash",) and (not stash[1:] or stash[1] in _STASHING):
            self._stashed = True

    # Files that a command of git discards

    def _in_git(self, threat: Threat, folder_abs: str) -> Iterator[Loss]:
        root_abs = self._held.root_of(folder_abs) if os.path.isdir(folder_abs) else ""
        if not root_abs or self._is_revision(threat, folder_abs):
            return
        entries = self._held.entries(folder_abs, threat.paths, literal=False)
        lost_entries = [
            entry
            for entry in entries
            if (entry.is_submodule and entry.has_own and threat.with_submodules)
            or (not entry.is_submodule and is_taken(entry, threat.takes))
        ]
        if threat.dry_run and lost_entries:
            removed = self._held.would_remove(folder_abs, threat.dry_run)
            lost_entries = [
                entry for entry in lost_entries if _is_below(f"{root_abs}/{entry.path}", removed)
            ]
        yield from self._loss(threat, root_abs, lost_entries)

    def _is_revision(self, threat: Threat, folder_abs: str) -> bool:
        word = threat.unless_rev
        return bool(word) and (word == "-" or bool(self._held.git(folder_abs).resolve(word)))

    def _loss(self, threat: Threat, root_abs: str, entries: list[FileState]) -> Iterator[Loss]:
        """Yield the loss of files of one worktree, but for what can be made again."""
        rebuilt = tuple(data()["rebuilt"]["names"])
        entries = [
            entry for entry in entries if entry.kind != "!" or not is_named(entry.path, rebuilt)
        ]
        if not entries:
            return
        is_ours = root_abs == self._root_abs
        if not self._held.is_ours(root_abs) and is_temporary(
            root_abs, self._situation.temporary, self._situation.env
        ):
            return
        why_not = {entry.path: self._why_not(entry, root_abs, is_ours=is_ours) for entry in entries}
        paths = tuple(why_not)
        yield Loss(
            words=threat.words,
            does=threat.does,
            what="staged changes" if threat.takes == (INDEX,) else _kind_of(entries),
            paths=paths if is_ours else tuple(f"{root_abs}/{path}" for path in paths),
            root_abs=root_abs if is_ours else "",
            unsavable=tuple(Unsavable(path, why) for path, why in why_not.items() if why),
        )

    def _why_not(self, entry: FileState, root_abs: str, *, is_ours: bool) -> str:
        if not is_ours:
            return _OTHER
        if entry.is_submodule or os.path.lexists(f"{root_abs}/{entry.path}/.git"):
            return _NESTED
        try:
            size = os.lstat(f"{root_abs}/{entry.path}").st_size
        except OSError:
            return ""
        most = self._situation.max_file_bytes
        is_file = not entry.path.endswith("/")
        return f"it is larger than {most:,} bytes" if is_file and size > most else ""

    # Files that other programs remove or overwrite

    def _in_files(self, threat: Threat, cwd_abs: str) -> Iterator[Loss]:
        by_root: dict[str, list[str]] = {}
        for path in spelled_paths(threat, cwd_abs):
            root_abs, why_not = self._place_of(path, threat)
            if why_not:
                shown = path.text.replace(UNKNOWN, "…")
                yield Loss(
                    words=threat.words,
                    does=threat.does,
                    what=shown,
                    paths=(shown if path.is_unknown else path.path_abs,),
                    unsavable=(Unsavable(shown, why_not),),
                )
            elif root_abs:
                relative = os.path.relpath(path.path_abs, root_abs)
                by_root.setdefault(root_abs, []).append(relative)
                threat = threat._replace(spares_git=threat.spares_git or path.is_unknown)
        for root_abs, paths in by_root.items():
            entries = self._held.entries(root_abs, tuple(paths), literal=True)
            lost_entries = [
                entry for entry in entries if self._is_in(entry, threat, root_abs, paths)
            ]
            yield from self._loss(threat, root_abs, lost_entries)

    def _is_in(self, entry: FileState, threat: Threat, root_abs: str, paths: list[str]) -> bool:
        if entry.is_submodule:
            return entry.has_own and threat.below
        if not is_taken(entry, threat.takes) or not is_named(entry.path, threat.names):
            return False
        if entry.kind == "!" and threat.spares_git and not threat.names:
            return False  # as `.git`, it may be left out by what is not understood
        if entry.path.endswith("/") and not threat.below:
            return False
        if threat.copied_abs:
            below = os.path.relpath(entry.path, paths[0])
            return os.path.lexists(os.path.join(threat.copied_abs, below))
        return os.path.lexists(f"{root_abs}/{entry.path}")

    def _place_of(self, path: SpelledPath, threat: Threat) -> tuple[str, str]:
        """Return the worktree that a path is in, or why what is lost there cannot be saved.

        Neither, where nothing counts.
        """
        situation, removes = self._situation, threat.does == "removes" and threat.below
        is_whole = removes and not (path.is_unknown or threat.spares_git)
        if is_whole and any(_is_around(path.path_abs, place) for place in self._git_dirs):
            return "", _GIT
        for git_dir in self._git_dirs:
            if path.path_abs == git_dir or path.path_abs.startswith(f"{git_dir}/"):
                return "", _GIT if is_git_data(path.path_abs, git_dir) else ""
        root_abs = self._held.root_of(path.path_abs)
        if root_abs == path.path_abs and os.path.isfile(f"{root_abs}/.git"):
            around_abs = self._held.root_of(os.path.dirname(root_abs))  # of a submodule
            if around_abs and self._held.is_ours(around_abs) and not self._held.is_ours(root_abs):
                return around_abs, ""
        if root_abs and self._held.is_ours(root_abs):
            if path.is_unknown and path.path_abs == path.cwd_abs and removes:
                return "", _UNKNOWN
            return root_abs, ""
        if is_temporary(path.path_abs, situation.temporary, situation.env):
            return "", ""
        if root_abs and not path.is_unknown:
            return self._place_in_other(path.path_abs, root_abs, removes=removes)
        return "", self._why_outside(path, threat, removes=removes)

    def _place_in_other(self, path_abs: str, root_abs: str, *, removes: bool) -> tuple[str, str]:
        """Return the same for a path in another repository, of which git can be asked."""
        is_whole = path_abs == root_abs or path_abs.startswith(f"{root_abs}/.git")
        if not is_whole:
            return root_abs, ""
        is_nested = _is_around(self._root_abs, root_abs)
        return "", (_NESTED if is_nested else _OTHER) if removes else ""

    def _why_outside(self, path: SpelledPath, threat: Threat, *, removes: bool) -> str:
        rebuilt = data()["rebuilt"]
        home = self._situation.env.get("HOME", "")
        caches = [f"{home}/{folder}" for folder in rebuilt["home"]] if home else []
        is_there = os.path.isfile(path.path_abs) or (threat.below and os.path.isdir(path.path_abs))
        if threat.edits or not is_there or (path.is_unknown and not removes):
            return ""
        is_made = is_named(path.path_abs, tuple(rebuilt["anywhere"]))
        if is_made or _is_below(path.path_abs, caches) or _is_empty(path.path_abs):
            return ""
        return _UNKNOWN if path.is_unknown else _OUTSIDE

    # What git keeps beside files

    def _of_git(self, threat: Threat, folder_abs: str) -> Iterator[Loss]:
        root_abs = self._held.root_of(folder_abs) if os.path.isdir(folder_abs) else ""
        if not root_abs:
            return
        if threat.scope == WORKTREE:
            yield from self._worktree(threat, folder_abs)
            return
        found = self._kept_by_git(threat, folder_abs)
        is_ours = self._held.is_ours(root_abs)
        if is_temporary(root_abs, self._situation.temporary, self._situation.env) and not is_ours:
            return
        for what, why in found:
            why_not = why if is_ours else _OTHER
            yield Loss(
                words=threat.words,
                does=threat.does,
                what=what,
                scope=threat.scope,
                root_abs=root_abs if is_ours else "",
                unsavable=(Unsavable(what, why_not),) if why_not else (),
            )

    def _kept_by_git(self, threat: Threat, folder_abs: str) -> Iterator[tuple[str, str]]:
        """Yield what there is, as a noun phrase, and why it cannot be saved."""
        git = self._held.git(folder_abs)
        match threat.scope:
            case scope if scope == STASH:
                yield from self._stash(threat, folder_abs)
            case scope if scope == REFS:
                for name in threat.paths:
                    if self._is_last(name, folder_abs, deletes=threat.does == "deletes"):
                        is_branch = name.startswith((_BRANCHES, "refs/stash"))
                        short = name.removeprefix(_BRANCHES)
                        kind = "the branch" if name.startswith(_BRANCHES) else "the ref"
                        yield f"{kind} {short}", "" if is_branch else _OTHER_REF
                if not threat.paths:
                    yield "branches that only the shell knows", ""
            case scope if scope == OBJECTS:
                args = ("rev-list", "--max-count=1", "--reflog", "--not", "--all")
                dangling = () if threat.does == "forgets" else ("prune", "-n", "--expire=now")
                if git.ask(*args).stdout or (dangling and git.ask(*dangling).stdout):
                    yield "objects that only the reflog names, or nothing", _UNNAMED
            case scope if scope in (COMMITS, HISTORY) and git.resolve("HEAD"):
                what = "all commits" if scope == HISTORY else "the commits of the branch"
                yield what, _REWRITTEN if scope == HISTORY else ""

    def _stash(self, threat: Threat, folder_abs: str) -> Iterator[tuple[str, str]]:
        git = self._held.git(folder_abs)
        for number in threat.paths or ("0",):
            name = f"stash@{{{number}}}" if number.isdecimal() else number
            is_there = bool(git.resolve(f"refs/{name}" if name.startswith("stash") else name))
            if self._stashed and not is_there:
                is_there = bool(self._held.entries(folder_abs, (), literal=False))
            if is_there:
                yield f"the stash entry {name}" if threat.paths else "all stash entries", ""

    def _is_last(self, ref: str, folder_abs: str, *, deletes: bool) -> bool:
        """Return whether a ref names commits that no other one does."""
        git = self._held.git(folder_abs)
        if not git.resolve(ref):
            return False
        head = os.fsdecode(git.ask("symbolic-ref", "-q", "HEAD").stdout).strip()
        if deletes and ref in (head, "HEAD"):
            return True
        args = ("rev-list", "--max-count=1", ref, "--not", f"--exclude={ref}", "--all")
        return bool(git.ask(*args).stdout)

    def _worktree(self, threat: Threat, folder_abs: str) -> Iterator[Loss]:
        for path in threat.paths:
            root_abs = os.path.realpath(os.path.join(folder_abs, path))
            if os.path.lexists(f"{root_abs}/.git"):
                entries = self._held.entries(root_abs, (), literal=True)
                lost_entries = [entry for entry in entries if is_taken(entry, threat.takes)]
                yield from self._loss(threat, root_abs, lost_entries)


def _is_below(path_abs: str, folders: list[str]) -> bool:
    """Return whether a path is one of some folders or files, or in one."""
    path_abs = path_abs.rstrip("/")
    return any(path_abs == folder or path_abs.startswith(f"{folder}/") for folder in folders)


def _is_around(folder_abs: str, path_abs: str) -> bool:
    return path_abs == folder_abs or path_abs.startswith(f"{folder_abs.rstrip('/')}/")


def _is_empty(path_abs: str) -> bool:
    try:
        return not (os.listdir(path_abs) if os.path.isdir(path_abs) else os.path.getsize(path_abs))
    except OSError:
        return False


def _kind_of(entries: list[FileState]) -> str:
    """Return what entries have in common."""
    kinds = {entry.kind for entry in entries}
    if kinds == {"?"}:
        return f"{UNTRACKED} files"
    if kinds == {"!"}:
        return "ignored files"
    return "uncommitted changes" if kinds <= {"1", "u"} else "uncommitted changes and files"

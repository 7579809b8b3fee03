"""The state of a run that has not ended, and what the run must leave unchanged.

It must not change what it shares with everyone who works in the repository: branches, tags, notes,
replacements, the stash, settings and hooks. During the run, refs hold their objects, so that the
agent cannot lose them with `git gc`.

<shared state>/headless/RUN/lock      held while the run is alive
<shared state>/headless/RUN/run.json  see `RunState`
<shared state>/headless/RUN/index     our own index of its files; the agent's may lie
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import contextmanager, suppress
from glob import glob

from gitgates.core.errors import GitError, StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.git.repo import Git
from gitgates.store.files import (
    lock_file,
    make_folder,
    read_state,
    remove_file,
    remove_tree,
    replace_file,
)
from gitgates.store.rescue import move_aside, read_file
from gitgates.worktree.locks import remove_abandoned, shared_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gitgates.git.repo import Repo

HELD = "refs/gitgates/held"
# Not remote-tracking branches: whoever fetches moves them, and they can be fetched again.
_KINDS = ("refs/heads", "refs/tags", "refs/notes", "refs/replace")
_HALF_MADE_S = 2.0  # by then, another git has finished making a worktree
_AGAIN_S = 0.05
_REMOVED_S = 1.0  # in which another process removes a folder
_SETTINGS = ("config", "config.worktree", "info/exclude", "info/attributes")


class RunState(Record):
    """Where a run works, and what it must leave unchanged: plain JSON values."""

    run: str
    root_abs: str  # the working tree that it works in
    home_abs: str  # the working tree that started it; in place, both are the same
    ref: str  # what HEAD names during the run; empty: in place with a detached HEAD
    start: str  # the commit that it began at
    began_s: float
    pid: int
    home_ref: str  # what HEAD named before; empty: detached
    home_head: str  # the commit of HEAD before
    refs: Mapping[str, str] = {}  # branches, tags, notes, replacements → object
    heads: Mapping[str, int] = {}  # a worktree's git folder → number of entries in HEAD's reflog
    stash: Sequence[Sequence[str]] = ()  # commit and message, the newest first
    settings: Mapping[str, Sequence[str]] = {}  # of git, and hooks → mode, content
    known: Sequence[str] = ()  # untracked and ignored files that are not the run's
    point: str = ""  # in place: the save point of the state before the run

    @property
    def in_place(self) -> bool:
        """Whether the run works in the working tree of whoever started it."""
        return self.root_abs == self.home_abs

    @property
    def branch(self) -> str:
        """The name of the run's branch; empty if HEAD is detached."""
        return self.ref.removeprefix("refs/heads/")


def folder_of(repo: Repo, run: str = "") -> str:
    """Return the folder of a run that has not ended; without a run, the folder of all runs."""
    return f"{repo.shared_state_abs}/headless/{run}".rstrip("/")


@contextmanager
def locked(repo: Repo, run: str) -> Iterator[None]:
    """Lock a new run's folder for this process and all its children. Raises: StateError."""
    folder_abs = folder_of(repo, run)
    try:
        fd = _make_lock(folder_abs)
    except OSError as error:
        what = f"{error.filename or folder_abs}: cannot be written: {error.strerror}"
        raise StateError(what) from error
    os.set_inheritable(fd, True)
    try:
        yield
    finally:
        if not is_there(repo, run):  # it has not begun, or has ended
            forget(repo, run)
        os.close(fd)


def _make_lock(folder_abs: str) -> int:
    """Make a run's folder and lock; another process may just be removing it as an unbegun one."""
    while True:
        make_folder(folder_abs)
        with suppress(FileNotFoundError):
            return lock_file(f"{folder_abs}/lock", wait_s=_REMOVED_S)


def lock_killed(repo: Repo, run: str, wait_s: float = 0.0) -> int:
    """Lock a run with no process left; return -1 if there is a process, or the run has ended."""
    return lock_file(f"{folder_of(repo, run)}/lock", wait_s=wait_s, flags=os.O_RDWR)


def write(repo: Repo, state: RunState) -> None:
    """Save what must be known after a kill. Raises: OSError."""
    replace_file(f"{folder_of(repo, state.run)}/run.json", json.dumps(state._asdict()).encode())


def is_there(repo: Repo, run: str) -> bool:
    """Return whether a run's state exists."""
    return os.path.isfile(f"{folder_of(repo, run)}/run.json")


def begun(repo: Repo) -> list[RunState]:
    """Return the runs that have not ended, alive or killed, the oldest first.

    Raises: StateError if one cannot be read.
    """
    folder_abs, states = folder_of(repo), []
    for run in sorted(os.listdir(folder_abs)) if os.path.isdir(folder_abs) else []:
        path_abs = f"{folder_abs}/{run}/run.json"
        try:
            if (
                content := read_state(path_abs)
            ) is not None:  # else it is just beginning, or ending
                states.append(RunState(**parse_json(content)))
        except (OSError, ValueError, TypeError) as error:
            hint = f"To continue without it: rm -r '{folder_abs}/{run}'"
            raise StateError(f"{path_abs}: cannot be read: {error}", hint) from error
    return states


def forget(repo: Repo, run: str) -> None:
    """Remove the state of a run that has ended, and its lock."""
    folder_abs = folder_of(repo, run)
    try:
        remove_file(f"{folder_abs}/run.json")  # first: without it, `forget_unbegun` does the rest
        remove_tree(folder_abs)
    except OSError:
        return  # the agent has removed it, or the next run will


def forget_unbegun(repo: Repo) -> None:
    """Remove what is left of runs that were killed before they had begun, or at their end."""
    folder_abs = folder_of(repo)
    for run in os.listdir(folder_abs) if os.path.isdir(folder_abs) else ():
        with suppress(OSError):
            os.rmdir(f"{folder_abs}/{run}")  # killed before it had a lock
        with suppress(OSError):
            if not is_there(repo, run) and (fd := lock_killed(repo, run)) >= 0:
                if not is_there(repo, run):
                    forget(repo, run)
                os.close(fd)


def save(repo: Repo, state: RunState) -> RunState:
    """Return a run's state, completed by what the run must leave unchanged.

    What another live run may have changed is taken from before that run.

    Raises: GitError, OSError.
    """
    others = [other for other in begun(repo) if other.run != state.run]
    refs = _read_refs(repo)
    for other in others:
        refs.pop(other.ref, None)
    settings = others[0].settings if others else _read_settings(repo)
    heads = {folder_abs: len(commits) for folder_abs, commits in _read_heads(repo).items()}
    return state._replace(refs=refs, stash=_read_stash(repo), settings=settings, heads=heads)


def hold(repo: Repo, run: str) -> None:
    """Hold every object that refs and reflogs name. Raises: GitError."""
    git = repo.git
    refs = git.lines("for-each-ref", "--format=%(objectname)")
    names = enumerate(dict.fromkeys([repo.head, *refs, *_lost(repo)]))
    lines = (f"update {HELD}/{run}/{number} {name}\n" for number, name in names)
    git.out("update-ref", "--stdin", stdin="".join(lines).encode())


def _lost(repo: Repo) -> list[str]:
    """Return the commits that only reflogs name. Raises: GitError.

    Another git may be making a worktree, or was killed while making one: HEAD there names nothing
    yet, and for a moment its files are empty, which git takes for an error.
    """
    ends_s = time.monotonic() + _HALF_MADE_S
    while True:
        try:
            ask = ("rev-list", "--ignore-missing", "--reflog", "--not", "--all")
            return repo.git.lines(*ask)
        except GitError:
            if time.monotonic() > ends_s:
                raise
        time.sleep(_AGAIN_S)


def let_go(repo: Repo, run: str) -> None:
    """Release the objects that a run holds."""
    deletions = repo.git.out("for-each-ref", "--format=delete %(refname)", f"{HELD}/{run}/")
    repo.git.ask("update-ref", "--stdin", stdin=deletions)


def put_back(repo: Repo, state: RunState, git_dir_abs: str) -> list[str]:
    """Put back what the run has changed, and return a note on each change.

    What it has created stays. `git_dir_abs`: its worktree's git folder.

    Raises: GitError, OSError.
    """
    locks = [*shared_locks(repo), f"{repo.common_dir_abs}/{state.ref or 'HEAD'}.lock"]
    notes = remove_abandoned(locks, int(state.began_s * 1e9))
    notes += _put_settings_back(repo, state)
    notes += _put_refs_back(repo, state, git_dir_abs)
    return notes + _put_stash_back(repo, state)


# Refs and the stash


def _read_refs(repo: Repo) -> dict[str, str]:
    """Return each branch, tag, note and replacement with its object."""
    ask = ("for-each-ref", "--format=%(refname) %(objectname) %(symref)", *_KINDS)
    fields = [line.split(" ") for line in repo.git.lines(*ask)]
    return {name: target for name, target, symbolic in fields if not symbolic}


def _put_refs_back(repo: Repo, state: RunState, git_dir_abs: str) -> list[str]:
    now, of_runs = _read_refs(repo), {state.ref, *(other.ref for other in begun(repo))}
    created = sorted(now.keys() - state.refs.keys() - of_runs)
    notes = [f"{name} was created during the run" for name in created]
    changed = {name for name in state.refs if now.get(name) != state.refs[name]} - {state.ref}
    by_others = _heads_of_others(repo, state, git_dir_abs) if changed else set()
    # A commit that another worktree's HEAD was at is somebody else's work.
    for name in sorted(name for name in changed if now.get(name) not in by_others):
        before, why = state.refs[name], f"gitgates: as before the headless run {state.run}"
        what = f"moved to {now[name]}" if name in now else "deleted"
        end = f"it is at {before} again"
        if (outcome := repo.git.ask("update-ref", "-m", why, name, before)).exit_status:
            end = f"it was at {before}: {outcome.stderr.decode('utf-8', 'replace').strip()}"
        notes.append(f"{name} was {what} during the run; {end}")
    return notes


def _heads_of_others(repo: Repo, state: RunState, git_dir_abs: str) -> set[str]:
    """Return the commits that any other worktree's HEAD has been at since the run began."""
    heads = set[str]()
    for folder_abs, commits in _read_heads(repo).items():
        if os.path.realpath(folder_abs) != os.path.realpath(git_dir_abs):
            heads.update(commits[: max(len(commits) - state.heads.get(folder_abs, 0), 0)])
    return heads


def _read_heads(repo: Repo) -> dict[str, list[str]]:
    """Return a worktree's git folder → the commits that HEAD was at, the newest first."""
    git, ask = Git(repo.common_dir_abs, repo.env), ("reflog", "show", "--format=%H", "HEAD")
    folders = map(os.path.dirname, repo.states_abs)
    return {each: git.ask(f"--git-dir={each}", *ask).stdout.decode().split() for each in folders}


def _read_stash(repo: Repo) -> list[list[str]]:
    """Return commit and message of each entry, the newest first."""
    lines = repo.git.names("stash", "list", "-z", "--format=%H %gs")
    return [line.split(" ", 1) for line in lines]


def _put_stash_back(repo: Repo, state: RunState) -> list[str]:
    """Store missing entries again, above all others."""
    now = _read_stash(repo)
    removed = [[*entry] for entry in state.stash if [*entry] not in now]
    new = [entry for entry in now if entry not in state.stash]
    for commit, message in reversed(removed):
        repo.git.out("stash", "store", "-q", "-m", message, commit)
    again = "was removed from the stash during the run; it is there again"
    return [
        *(f"`{message}` {again}" for _, message in removed),
        *(f"the stash entry `{text}` was created during the run" for _, text in new),
    ]


# Settings and hooks


def _read_settings(repo: Repo) -> dict[str, list[str]]:
    """Return name → mode and content of settings and hooks in the git folder."""
    settings, folder_abs = {}, repo.common_dir_abs
    for name in (*_SETTINGS, *glob("hooks/**", root_dir=folder_abs, recursive=True)):
        path_abs = f"{folder_abs}/{name}"
        if os.path.islink(path_abs):
            content = os.fsencode(os.readlink(path_abs))
        elif os.path.isfile(path_abs) and not name.endswith(".sample"):
            content = read_file(path_abs)
        else:
            continue
        settings[name] = [str(os.lstat(path_abs).st_mode), content.decode("latin-1")]
    return settings


def _put_settings_back(repo: Repo, state: RunState) -> list[str]:
    """Put settings and hooks back; what replaced them is kept, and named in a note."""
    now, before, notes = _read_settings(repo), state.settings, list[str]()
    folder_abs = f"{repo.shared_state_abs}/kept/{state.run}/settings"
    for name in sorted({*before, *now}):
        if [*before.get(name, ())] == now.get(name, []):
            continue
        path_abs = f"{repo.common_dir_abs}/{name}"
        note = f"{path_abs} was changed during the run, and has been put back"
        parent_abs = os.path.dirname(path_abs)
        there_abs = path_abs if os.path.isdir(parent_abs) else parent_abs
        if os.path.lexists(there_abs):
            make_folder(folder_abs)
            kept_abs = f"{folder_abs}/{len(os.listdir(folder_abs))}-{os.path.basename(there_abs)}"
            move_aside(there_abs, kept_abs)
            note += f"; the changed version is in {kept_abs}"
        if name in before:
            mode, content = int(before[name][0]), before[name][1].encode("latin-1")
            os.makedirs(parent_abs, exist_ok=True)
            if stat.S_ISLNK(mode):
                os.symlink(os.fsdecode(content), path_abs)
            else:
                replace_file(path_abs, content, mode=stat.S_IMODE(mode))
        notes.append(note)
    return notes

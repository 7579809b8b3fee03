"""What is known of a run that has not ended, for whoever tidies up after it is killed.

<shared state>/headless/RUN/lock      held while the run lives
<shared state>/headless/RUN/run.json  see `RunState`
<shared state>/headless/RUN/index     an index of ours of its files; the agent's may lie
"""

from __future__ import annotations

import json
import os

from gitgates.core.errors import StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.store.files import lock_file, make_folder, read_state, remove_tree, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.git.repo import Repo


class RunState(Record):
    """Where a run works, and what it must leave as it was."""

    run: str
    root_abs: str  # of the working tree that it works in
    home_abs: str  # of the one that it was started in; in place, both are the same
    ref: str  # that HEAD names while the run works; empty: in place, and detached
    start: str  # the commit that it began at
    began_s: float
    pid: int
    refs: Mapping[str, str] = {}  # branches, tags, notes, replacements → object
    heads: Mapping[str, int] = {}  # git folder of a worktree → entries of the reflog of its HEAD
    stash: tuple[tuple[str, str], ...] = ()  # commit and message, the newest first
    settings: Mapping[str, tuple[int, str]] = {}  # of git, and hooks → mode, content
    known: tuple[str, ...] = ()  # untracked and ignored files that are not the run's
    home_ref: str = ""  # what HEAD named before; empty: a commit
    home_head: str = ""  # that commit
    point: str = ""  # in place: of the memory of files, what there was

    @property
    def in_place(self) -> bool:
        """Whether the run works in the working tree of whoever started it."""
        return self.root_abs == self.home_abs

    @property
    def branch(self) -> str:
        """The name of the branch of the run; empty if HEAD is detached."""
        return self.ref.removeprefix("refs/heads/")


def folder_of(repo: Repo, run: str = "") -> str:
    """Return the folder of a run that has not ended; without a run, that of all."""
    return f"{repo.shared_state_abs}/headless/{run}".rstrip("/")


def lock_new(repo: Repo, run: str) -> int:
    """Make the folder of a run, and lock it for this process and all that it starts.

    Raises: StateError.
    """
    folder_abs = folder_of(repo, run)
    try:
        make_folder(folder_abs)
        fd = lock_file(f"{folder_abs}/lock")
    except OSError as error:
        what = f"{error.filename or folder_abs}: cannot be written: {error.strerror}"
        raise StateError(what) from error
    os.set_inheritable(fd, True)
    return fd


def lock_killed(repo: Repo, run: str, wait_s: float = 0.0) -> int:
    """Lock a run of which no process is left; return -1 if there is one, or it has ended."""
    return lock_file(f"{folder_of(repo, run)}/lock", wait_s=wait_s, flags=os.O_RDWR)


def write(repo: Repo, state: RunState) -> None:
    """Write down what must be known after a kill. Raises: StateError."""
    path_abs = f"{folder_of(repo, state.run)}/run.json"
    try:
        replace_file(path_abs, json.dumps(state._asdict()).encode())
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error


def is_there(repo: Repo, run: str) -> bool:
    """Return whether nobody has removed what is known of a run."""
    return os.path.isfile(f"{folder_of(repo, run)}/run.json")


def begun(repo: Repo) -> Iterator[RunState]:
    """Yield the runs that have not ended, alive or killed, the oldest first.

    Raises: StateError if one cannot be read.
    """
    folder_abs = folder_of(repo)
    for run in sorted(os.listdir(folder_abs)) if os.path.isdir(folder_abs) else []:
        path_abs = f"{folder_abs}/{run}/run.json"
        try:
            if (content := read_state(path_abs)) is None:
                continue  # it was just beginning, or ending
            plain = parse_json(content)
            plain["stash"] = tuple(map(tuple, plain["stash"]))
            settings = plain["settings"].items()
            plain["settings"] = {name: (mode, text) for name, (mode, text) in settings}
            yield RunState(**{**plain, "known": tuple(plain["known"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            hint = f"To continue without it: rm -r '{folder_abs}/{run}'"
            raise StateError(f"{path_abs}: cannot be read: {error}", hint) from error


def forget(repo: Repo, run: str) -> None:
    """Remove what is known of a run that has ended, and its lock."""
    try:
        remove_tree(folder_of(repo, run))
    except OSError:
        return  # the agent has removed it, or the next run does

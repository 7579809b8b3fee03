"""Save points: who changed the files of a worktree, when, and from which state to which.

undo/points.jsonl   one line for each change, for all worktrees: `SavePoint`
undo/points.left    those that stay, while the others are removed from it
undo/pruned         the newest id when it was last looked at what may go
undo.calls          of one worktree: tool calls that may be changing files now
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.features.undo.private_git import YOUNG_S, PrivateGit
from gitgates.features.undo.states import current, load, packs_of, take
from gitgates.store.files import (
    lock_file,
    make_folder,
    read_cached,
    read_state,
    remove_file,
    replace_cached,
    replace_file,
)
from gitgates.store.log import append_lines, lines_of, parse_lines, to_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from gitgates.features.undo.settings import UndoSettings
    from gitgates.git.repo import Repo

AGENT, OTHERS, UNDO = "agent", "others", "undo"
_TAIL_BYTES = 1 << 16  # that has the last line
_LONGEST_CALL_S = 3600.0
_CALLS_WAIT_S = 3.0
_PRUNED_S = 3600.0  # how seldom it is looked at what may go


class Author(Record):
    """Who changes files, and with what."""

    by: str = OTHERS
    session: str = ""
    agent: str = ""  # the type or the id of a sub-agent
    prompt: int = 0  # its number in the session
    prompt_text: str = ""  # its first words
    tool: str = ""
    what: str = ""  # the first words of the command, or the file
    undoes: tuple[int, ...] = ()  # the points that were undone


class SavePoint(Record):
    """One change of a worktree."""

    id: int
    time_s: float
    root_abs: str
    before: str  # states
    after: str
    author: Author


def record(repo: Repo, settings: UndoSettings, author: Author) -> SavePoint | None:
    """Record what has changed since the last state as changed by somebody; None: nothing has.

    Raises: StateError, LockError, GitError as `states.take`.
    """
    points: list[SavePoint] = []

    def on_change(before: str, after: str) -> None:
        if before:
            points.append(append(repo, before, after, author))

    take(repo, settings, on_change)
    return points[0] if points else None


def points_of(repo: Repo, *, everywhere: bool = False) -> list[SavePoint]:
    """Return the points of this worktree, or of all, the oldest first.

    Raises: OSError where they cannot be read.
    """
    lines = [*_left(repo), *lines_of(_log_abs(repo))]
    found = {point.id: point for point in map(_point, parse_lines(lines)) if point}
    return [point for point in found.values() if everywhere or point.root_abs == repo.root_abs]


def append(repo: Repo, before: str, after: str, author: Author) -> SavePoint:
    """Note a change of a worktree from one state to another. Raises: OSError."""
    points: list[SavePoint] = []

    def make(fd: int, size: int) -> bytes:
        tail = os.pread(fd, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
        ids = [fields["id"] for fields in map(_fields, tail.split(b"\n")) if fields]
        points.append(
            SavePoint(
                id=max([*ids, _last_pruned(repo)]) + 1,
                time_s=time.time(),
                root_abs=repo.root_abs,
                before=before,
                after=after,
                author=author,
            )
        )
        return to_line({**points[0]._asdict(), "author": author._asdict()})

    append_lines(_log_abs(repo), make)
    return points[0]


def _fields(line: bytes) -> dict[str, Any] | None:
    fields = parse_lines([line])[0] if line.startswith(b"{") else None
    return fields if fields and isinstance(fields.get("id"), int) else None


def _point(fields: dict[str, Any] | None) -> SavePoint | None:
    """Return a point; None for a line that is damaged, or of a later version."""
    try:
        author = {**(fields or {})["author"]}
        author["undoes"] = tuple(author.get("undoes", ()))
        point = {**(fields or {}), "author": Author(**author)}
        texts = [point[name] for name in ("root_abs", "before", "after")]
        is_whole = all(isinstance(text, str) for text in texts)
        is_whole = is_whole and isinstance(point["time_s"], float)
        return SavePoint(**point) if is_whole else None
    except (KeyError, TypeError):
        return None


def _left(repo: Repo) -> list[bytes]:
    """Return the lines that a pruning that was killed may have removed, and not yet written."""
    return (read_state(f"{repo.shared_state_abs}/undo/points.left") or b"").splitlines(
        keepends=True
    )


def _log_abs(repo: Repo) -> str:
    return f"{repo.shared_state_abs}/undo/points.jsonl"


# Tool calls that are under way


class EndedCall(Record):
    """What was noted when a tool call began."""

    told: str = ""  # what is to be said when it has ended
    elsewhere: Mapping[str, str] = {}  # the root of another worktree → its state


def open_call(repo: Repo, key: str, author: Author, noted: EndedCall) -> None:
    """Note that a tool call begins. Raises: OSError."""
    with _CallsLock(repo):
        calls = _calls(repo)
        call = (time.time(), tuple(author), tuple(noted))
        replace_cached(_calls_abs(repo), {**calls, key: call}, sync=False)


def close_calls(repo: Repo, ends: Callable[[str, Author], bool]) -> list[EndedCall]:
    """Note that tool calls have ended; return what was noted of them. Raises: OSError."""
    with _CallsLock(repo):
        calls = _calls(repo)
        rest = {key: call for key, call in calls.items() if not ends(key, Author(*call[1]))}
        if rest != calls:
            replace_cached(_calls_abs(repo), rest, sync=False)
    return [EndedCall(*call[2]) for key, call in calls.items() if key not in rest]


def latest_call(repo: Repo) -> Author:
    """Return who has begun the latest tool call that is under way; others, if there is none."""
    calls = [call for call in _calls(repo).values() if call[0] > time.time() - _LONGEST_CALL_S]
    return Author(*max(calls)[1]) if calls else Author()


class _CallsLock:
    """The lock on that file: hooks of tool calls run in parallel."""

    def __init__(self, repo: Repo) -> None:
        self._state_abs, self._fd = repo.state_abs, -1

    def __enter__(self) -> None:
        make_folder(self._state_abs)
        # Without it, a call may be forgotten, and what it changes be somebody else's: no loss.
        self._fd = lock_file(f"{self._state_abs}/undo.calls.lock", wait_s=_CALLS_WAIT_S)

    def __exit__(self, *exc: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _calls(repo: Repo) -> dict[str, Any]:
    calls = read_cached(_calls_abs(repo))
    return calls if isinstance(calls, dict) else {}


def _calls_abs(repo: Repo) -> str:
    return f"{repo.state_abs}/undo.calls"


# Pruning


def prune(repo: Repo, settings: UndoSettings, now_s: float, *, at_once: bool = False) -> str:
    """Remove the points that are too old, and the oldest while they take too much space.

    Return what a person should know; empty for nothing. It looks once in an hour, or `at_once`.

    Raises: OSError, StateError, GitError.
    """
    private = PrivateGit(repo)
    mark_abs = f"{private.folder_abs}/pruned"
    try:
        is_due = at_once or os.stat(mark_abs).st_mtime < now_s - _PRUNED_S
    except OSError:
        is_due = os.path.isdir(private.git_dir_abs)
    if not is_due:
        return ""
    points = points_of(repo, everywhere=True)
    last = max([_last_pruned(repo), *(point.id for point in points)])
    replace_file(mark_abs, b"%d" % last, sync=False)
    kept = [point for point in points if point.time_s > now_s - settings.keep_s]
    if len(kept) < len(points):
        drop(repo, private, points[: len(points) - len(kept)], now_s)
    removed = 0
    while private.size() > settings.max_size_bytes:
        # Objects of the last hour stay in any case: without their points, nothing would be freed.
        oldest = [point for point in kept[: len(kept) // 4 + 1] if point.time_s < now_s - YOUNG_S]
        if not oldest:
            break
        drop(repo, private, oldest, now_s)
        removed += len(oldest)
        kept = kept[len(oldest) :]
    if not removed:
        return ""
    return (
        f"save points took more than max_size = {settings.max_size_bytes >> 20} MiB: "
        f"the {removed} oldest were removed"
    )


def _last_pruned(repo: Repo) -> int:
    """Return the newest id when it was last looked at what may go: none is given twice."""
    content = read_state(f"{repo.shared_state_abs}/undo/pruned") or b""
    return int(content) if content.isdigit() else 0


def drop(repo: Repo, private: PrivateGit, points: list[SavePoint], now_s: float) -> None:
    """Remove points, and the objects that only they have. Raises: OSError, GitError."""
    dropped, rest = {point.id for point in points}, dict[int, bytes]()
    left_abs, mark_abs = (f"{private.folder_abs}/{name}" for name in ("points.left", "pruned"))

    def make(fd: int, size: int) -> bytes:
        # In place, because who waits for the lock would append to a file without a name.
        for line in (*_left(repo), *os.pread(fd, size, 0).splitlines(keepends=True)):
            if (fields := _fields(line)) and fields["id"] not in dropped:
                rest[fields["id"]] = line  # one that was made meanwhile, too
        lines = b"".join(rest.values())
        replace_file(left_abs, lines)
        replace_file(mark_abs, b"%d" % max([_last_pruned(repo), *rest]), sync=False)
        os.ftruncate(fd, 0)
        return lines

    append_lines(_log_abs(repo), make)
    remove_file(left_abs)
    kept = [point for point in map(_point, map(_fields, rest.values())) if point]
    roots, packs = set[str](), set[str]()
    for state_id in _states(repo, kept):
        try:
            state = load(repo, state_id)
        except StateError:
            continue  # it is damaged; what nothing needs is removed all the same
        roots |= {state_id, state.tree, *filter(None, (state.index_blob,))}
        packs |= packs_of(state)
    private.sweep(roots, packs, now_s)


def _states(repo: Repo, points: Iterable[SavePoint]) -> set[str]:
    """Return the states of points, and the last one of each worktree."""
    states = {state for point in points for state in (point.before, point.after)}
    for state_abs in repo.states_abs:
        states.add(current(state_abs))
    return states - {""}

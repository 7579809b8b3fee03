"""The policy that writes the trace: a record of each tool call that changed files.

Before a tool writes a file, hashes of its lines are stored. After it, and after the gates of that
event, they are compared with the new content. The changes of a shell command come from snapshots,
without those from others' commits, those that other calls have recorded, and files last changed
before the command began. Files outside the repository are not traced.
"""

from __future__ import annotations

import os
import time

from gitgates.config.load import table_of
from gitgates.core.errors import StateError
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.policy import LABELS, Need, enabled_policies, functions_of
from gitgates.core.record import Record
from gitgates.core.types import BLOCK
from gitgates.session.facts import SnapshotEntry
from gitgates.session.journal import of_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from gitgates.core.agent_types import Point
    from gitgates.core.types import Config, Verdict
    from gitgates.features.trace.content import FileContent
    from gitgates.features.trace.facts import TraceEntry
    from gitgates.git.repo import Git, Repo
    from gitgates.session.call import Call
    from gitgates.store.log import Fact

    Change: TypeAlias = tuple[Fact, FileContent]  # in the format of the ledger, and the new content

always = True
_SNAPSHOT_S = 15.0
_MOST_FILES = 100  # of one record; a command that changes more does not write code
_TICK_S = 0.05  # by which times of files may be late
_CHANGES = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "-M", "-l400")
_LINK, _SUBMODULE = "120000", "160000"


class ChangedFile(Record):
    """One file that differs between two trees."""

    path: str
    old_path: str  # before, if another
    blob: str  # before; empty: it did not exist
    is_link: bool  # before


class Trace(Record):
    """Whether what agents write is recorded."""

    mode: str  # auto: where a policy is on that is traced; on, off


def is_on(config: Config) -> bool:
    """Return whether what agents write is traced."""
    mode = table_of(config, "trace", Trace).mode
    return mode == "on" or (
        mode == "auto" and any(row.is_traced for row in enabled_policies(config))
    )


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events of tools that write, and of shells, failed ones too.

    The event before a shell command only records when the command began.
    """
    if not is_on(config):
        return ()
    return (
        Need(kind="before-tool", tools=(), tool_kinds=("writes", "shell")),
        Need(kind="after-tool", tools=(), tool_kinds=("writes", "shell"), more_s=_SNAPSHOT_S),
        Need(kind="tool-failed", tools=(), tool_kinds=("shell",), more_s=_SNAPSHOT_S),
    )


def person_verbs(_call: Call) -> tuple[tuple[str, ...], ...]:
    """Return the verb that removes records."""
    return (("trace", "prune"),)


def recent_work(repo: Repo, labels: Mapping[str, str], n: int) -> list[str]:
    """Return a line for each of the newest `n` records with these labels, the newest first.

    Raises: OSError where the ledger cannot be read.
    """
    from gitgates.features.trace.ledger import recent  # only for the context of an intent

    return recent(repo.common_dir_abs, labels, n)


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Store the content of a file before a tool writes it; record its changes afterwards.

    Raises: StateError where files cannot be read or written; GitError where git fails.
    """
    payload = call.payload
    is_shell = payload.tool_kind == "shell"
    has_written = payload.tool_kind == "writes" and call.kind != "tool-failed"
    try:
        if call.kind == "before-tool":
            if has_written and so_far.level < BLOCK:
                _note_before(call)
        elif (is_shell or (has_written and not payload.failed)) and not _is_traced(call):
            entry = _trace_shell(call) if is_shell else _trace_writing(call)
            return so_far._replace(entries=(*so_far.entries, entry)) if entry else so_far
    except OSError as error:
        location = error.filename or call.repo.shared_state_abs
        text = f"{location}: {error.strerror}: the changes of this tool call are not traced"
        raise StateError(text, "Check the permissions of that file and the disk space.") from error
    return so_far


def _is_traced(call: Call) -> bool:
    """Return whether this event was delivered, and recorded, before."""
    from gitgates.features.trace.facts import TraceEntry  # the trace is usually off

    return any(entry.get("key") == call.key for entry in of_kind(call.entries, TraceEntry))


def _record(call: Call, changes: Sequence[Change], head: str, more: int = 0) -> None:
    from gitgates.features.trace.content import GONE  # most calls of a shell change nothing
    from gitgates.features.trace.content_cache import remember
    from gitgates.features.trace.ledger import append

    payload = call.payload
    record: Fact = {
        "session": payload.session,
        "agent": payload.agent_id,
        "agent_type": payload.agent_type,
        **_labels(call),
        "tool": payload.tool,
        "tool_use": payload.tool_use_id,
        "commit": head,
        "files": [change for change, _content in changes],
    }
    append(call.repo.common_dir_abs, {**record, "more": more} if more else record)
    for change, content in changes:
        remember(call.repo.state_abs, change["path"], content)
        if "was" in change:
            remember(call.repo.state_abs, change["was"], GONE)


def _labels(call: Call) -> Fact:
    """Return the labels of other policies for the agent's work."""
    labels: Fact = dict.fromkeys(LABELS, "")
    for labels_of in functions_of(call.config, "labels", call.kind):
        labels |= labels_of(call)
    return labels


# Tools that name the file that they write.


def _note_before(call: Call) -> None:
    from gitgates.features.trace.content import hash_file  # only where a tool writes
    from gitgates.features.trace.content_cache import remember

    object_format = call.repo.object_format
    for path in call.edited_paths or ():
        content = hash_file(f"{call.repo.root_abs}/{path}", object_format)
        remember(call.repo.state_abs, path, content)


def _trace_writing(call: Call) -> TraceEntry | None:
    """Record the changes of the files that a tool names; return an entry for the journal."""
    from gitgates.features.trace.content import file_change, hash_file
    from gitgates.features.trace.content_cache import recall
    from gitgates.features.trace.facts import TraceEntry

    changes, object_format = [], call.repo.object_format
    for path in call.edited_paths or ():
        now = hash_file(f"{call.repo.root_abs}/{path}", object_format)
        change = file_change(path, recall(call.repo.state_abs, path), now)
        if change and not path.startswith(".git/"):
            changes.append((change, now))
    if changes:
        _record(call, changes, call.repo.head)
    paths = [change["path"] for change, _content in changes]
    return TraceEntry(call.key, paths) if paths else None


# Shell commands.


def _trace_shell(call: Call) -> TraceEntry | None:
    """Record what a shell command has changed; return the point to compare the next one with."""
    shows = any(entry.get("shows") for entry in call.entries if entry.get("key") == call.key)
    point = None if shows else _last_point(call.entries)
    if not point:
        return None
    if call.hook.gates:
        call.forget_snapshot()  # they may have written
    observed_s = time.time()  # others may write until the snapshot is taken
    now = call.point
    named_paths = _named_since(point, call.entries)
    if not now.tree or (now.tree == point.tree and not named_paths):
        return None
    from gitgates.features.trace.content import LARGEST, file_change, hash_file
    from gitgates.features.trace.content_cache import recall
    from gitgates.features.trace.facts import TraceEntry
    from gitgates.git.authorship import Span, trees  # most commands change nothing
    from gitgates.git.object_store import read_blobs, reading_git

    both = trees(Span(repo=call.repo, start=point, now=now))
    git, began = reading_git(call.repo), _began(call) - _TICK_S
    changed = _changed(git, *both)
    # Files with the content of that point that a tool has named, and written, in between.
    named_paths = named_paths.difference(file.path for file in changed)
    changed += [
        ChangedFile(path=path, old_path="", blob="", is_link=False) for path in sorted(named_paths)
    ]
    changed = [
        file for file in changed if _changed_at(f"{call.repo.root_abs}/{file.path}") >= began
    ]
    more = max(len(changed) - _MOST_FILES, 0)
    del changed[_MOST_FILES:]
    state_abs = call.repo.state_abs
    noted = {file: recall(state_abs, file.path, since=point.stamp) for file in changed}
    blobs = read_blobs(
        git, [file.blob for file in changed if file.blob and not noted[file]], LARGEST
    )
    changes, object_format = [], call.repo.object_format
    for file in changed:
        content = hash_file(f"{call.repo.root_abs}/{file.path}", object_format)
        before, old_path = noted[file], file.old_path
        if before:
            old_path = ""  # it had this path already when its content was stored
        elif old_path:
            before = recall(state_abs, old_path, since=point.stamp)
        if file.path in named_paths and not before:
            continue  # its earlier content is unknown
        change = file_change(file.path, before or _content(file, blobs), content, old_path)
        changes += [(change, content)] if change else []
    if changes:
        _record(call, changes, now.head, more)
    return TraceEntry(call.key, tree=now.tree, head=now.head, taken=observed_s)


def _last_point(entries: list[Fact]) -> Point | None:
    """Return the latest state of the worktree in the session's journal."""
    from gitgates.core.agent_types import Point  # cold: not for tools that name their files
    from gitgates.features.trace.facts import TraceEntry

    for entry in reversed(of_kind(entries, TraceEntry, SnapshotEntry)):
        if entry.get("tree"):
            stamp: float = entry.get("taken") or entry.get("t", 0.0)
            return Point(tree=entry["tree"], head=entry.get("head", ""), stamp=stamp)
    return None


def _named_since(point: Point, entries: list[Fact]) -> set[str]:
    """Return the files that tools of the session have named, and written, since a point."""
    from gitgates.features.trace.facts import TraceEntry  # as above

    later_entries = [entry for entry in of_kind(entries, TraceEntry) if entry["t"] >= point.stamp]
    return {path for entry in later_entries for path in entry.get("paths", ())}


def _changed(git: Git, before: str, after: str) -> list[ChangedFile]:
    """Return each file that differs between two trees. Raises: GitError if one is missing."""
    fields = iter(git.out(*_CHANGES, before, after, "--").split(b"\0"))
    files = []
    for meta in filter(None, fields):
        mode, new_mode, blob, _new, status = meta[1:].decode().split(" ")
        old_path = os.fsdecode(next(fields))
        path = os.fsdecode(next(fields)) if status.startswith("R") else old_path
        if _SUBMODULE not in (mode, new_mode):
            blob = blob if blob.strip("0") else ""
            old_path = old_path if old_path != path else ""
            files.append(
                ChangedFile(path=path, old_path=old_path, blob=blob, is_link=mode == _LINK)
            )
    return files


def _content(file: ChangedFile, blobs: Mapping[str, bytes]) -> FileContent:
    """Return the earlier content of a file."""
    from gitgates.features.trace.content import GONE, HUGE, of_bytes, of_link

    if file.blob in blobs:
        return (of_link if file.is_link else of_bytes)(blobs[file.blob])
    return HUGE if file.blob else GONE


def _began(call: Call) -> float:
    """Return when a shell command was about to begin; 0.0 if unknown."""
    key = f"{HOOK_OF['before-tool']}:{call.payload.tool_use_id}"
    return next((entry["t"] for entry in call.entries if entry.get("key") == key), 0.0)


def _changed_at(path_abs: str) -> float:
    """Return when a file was last changed; of a missing one, when its folder was."""
    while not os.path.lexists(path_abs):
        path_abs = os.path.dirname(path_abs)
    return os.lstat(path_abs).st_ctime

"""The policy that writes the trace: a record of each tool call that changed files.

Before a tool writes a file, hashes of its lines are noted. After it, and after the gates of that
event, they are compared with what is there then. What a shell command has changed, snapshots tell:
without what came from others' commits, what other calls are known to have written, and what was
last changed before the command began. Files outside the repository are not traced.
"""

from __future__ import annotations

import os
import time

from gitgates.config.load import table_of
from gitgates.core.errors import StateError
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.policy import Need, functions_of, wanted
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

    Change: TypeAlias = tuple[Fact, FileContent]  # as the ledger has it, and what is there now

always = True
_SNAPSHOT_S = 15.0
_MOST_FILES = 100  # of one record; a command that changes more is no writing of code
_TICK_S = 0.05  # by which times of files may be late
_CHANGES = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "-M", "-l400")
_LINK, _SUBMODULE = "120000", "160000"


class ChangedFile(Record):
    """One file that differs between two trees."""

    path: str
    was: str  # its path before, if another
    blob: str  # before; empty: it was not there
    is_link: bool  # before


class Trace(Record):
    """Whether what agents write is recorded."""

    mode: str  # auto: where a policy is on whose row says so; on, off


def is_on(config: Config) -> bool:
    """Return whether what agents write is traced."""
    mode = table_of(config, "trace", Trace).mode
    return mode == "on" or (mode == "auto" and any(row.is_traced for row in wanted(config)))


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events of tools that write, and of shells, failed ones too.

    Before a shell's, there is nothing to do: that it is heard of tells when the command began.
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
    from gitgates.features.trace.ledger import recent  # where an intent is told of

    return recent(repo.common_dir_abs, labels, n)


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Note what a file is like before a tool writes it; record what has become of it.

    Raises: StateError where that cannot be read or written; GitError where git cannot be asked.
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
        where = error.filename or call.repo.shared_state_abs
        text = f"{where}: {error.strerror}: the changes of this tool call are not traced"
        raise StateError(text, "Check the permissions of that file and the disk space.") from error
    return so_far


def _is_traced(call: Call) -> bool:
    """Return whether this event was delivered, and recorded, before."""
    from gitgates.features.trace.facts import TraceEntry  # the trace is off as a rule

    return any(one.get("key") == call.key for one in of_kind(call.entries, TraceEntry))


def _record(call: Call, found: Sequence[Change], head: str, more: int = 0) -> None:
    from gitgates.features.trace.content import GONE  # most calls of a shell change nothing
    from gitgates.features.trace.known import remember
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
        "files": [change for change, _content in found],
    }
    append(call.repo.common_dir_abs, {**record, "more": more} if more else record)
    for change, content in found:
        remember(call.repo.state_abs, change["path"], content)
        if "was" in change:
            remember(call.repo.state_abs, change["was"], GONE)


def _labels(call: Call) -> Fact:
    """Return what other policies have noted of the agent's work."""
    labels: Fact = {"intent": ""}
    for labels_of in functions_of(call.config, "labels", call.kind):
        labels |= labels_of(call)
    return labels


# Tools that name the file that they write.


def _note_before(call: Call) -> None:
    from gitgates.features.trace.content import (
        read,  # cold: only where a tool writes; so are the next ones
    )
    from gitgates.features.trace.known import remember

    for path in call.edited_paths or ():
        remember(call.repo.state_abs, path, read(f"{call.repo.root_abs}/{path}"))


def _trace_writing(call: Call) -> TraceEntry | None:
    """Record how the files have changed that a tool names; return an entry for the journal."""
    from gitgates.features.trace.content import file_change, read
    from gitgates.features.trace.facts import TraceEntry
    from gitgates.features.trace.known import recall

    found = []
    for path in call.edited_paths or ():
        now = read(f"{call.repo.root_abs}/{path}")
        change = file_change(path, recall(call.repo.state_abs, path), now)
        if change and not path.startswith(".git/"):
            found.append((change, now))
    if found:
        _record(call, found, call.repo.head)
    paths = [change["path"] for change, _content in found]
    return TraceEntry(call.key, paths) if paths else None


# Shell commands.


def _trace_shell(call: Call) -> TraceEntry | None:
    """Record what a shell command has changed; return the point to compare the next one with."""
    shows = any(one.get("shows") for one in call.entries if one.get("key") == call.key)
    point = None if shows else _last_point(call.entries)
    if not point:
        return None
    if call.hook.gates:
        call.forget_snapshot()  # they may have written
    taken = time.time()  # until it is noted, others may write
    now = call.point
    named = _named_since(point, call.entries)
    if not now.tree or (now.tree == point.tree and not named):
        return None
    from gitgates.features.trace.content import LARGEST, file_change, read
    from gitgates.features.trace.facts import TraceEntry
    from gitgates.features.trace.known import recall
    from gitgates.git.authorship import Span, trees  # most commands change nothing
    from gitgates.git.object_store import read_blobs, reading_git

    git, began = reading_git(call.repo), _began(call) - _TICK_S
    changed = _changed(git, *trees(Span(repo=call.repo, start=point, now=now)))
    # What is as it was at that point, but was written in between by a tool that named it.
    named = named.difference(one.path for one in changed)
    changed += [ChangedFile(path=one, was="", blob="", is_link=False) for one in sorted(named)]
    changed = [one for one in changed if _changed_at(f"{call.repo.root_abs}/{one.path}") >= began]
    more = max(len(changed) - _MOST_FILES, 0)
    del changed[_MOST_FILES:]
    state_abs = call.repo.state_abs
    known = {one: recall(state_abs, one.path, since=point.stamp) for one in changed}
    blobs = read_blobs(git, [one.blob for one in changed if one.blob and not known[one]], LARGEST)
    found = []
    for one in changed:
        content, then, was = read(f"{call.repo.root_abs}/{one.path}"), known[one], one.was
        if then:
            was = ""  # it had this name already when that was noted
        elif was:
            then = recall(state_abs, was, since=point.stamp)
        if one.path in named and not then:
            continue  # what it was like has not been noted
        change = file_change(one.path, then or _content(one, blobs), content, was)
        found += [(change, content)] if change else []
    if found:
        _record(call, found, now.head, more)
    return TraceEntry(call.key, tree=now.tree, head=now.head, taken=taken)


def _last_point(entries: list[Fact]) -> Point | None:
    """Return the state of the worktree that the session's journal knows of last."""
    from gitgates.core.agent_types import Point  # cold: not for tools that name their files
    from gitgates.features.trace.facts import TraceEntry

    for one in reversed(of_kind(entries, TraceEntry, SnapshotEntry)):
        if one.get("tree"):
            stamp: float = one.get("taken") or one.get("t", 0.0)
            return Point(tree=one["tree"], head=one.get("head", ""), stamp=stamp)
    return None


def _named_since(point: Point, entries: list[Fact]) -> set[str]:
    """Return the files that tools of the session have named, and written, since a point."""
    from gitgates.features.trace.facts import TraceEntry  # as above

    since = [one for one in of_kind(entries, TraceEntry) if one["t"] >= point.stamp]
    return {path for one in since for path in one.get("paths", ())}


def _changed(git: Git, before: str, after: str) -> list[ChangedFile]:
    """Return each file that differs between two trees. Raises: GitError if one is missing."""
    fields = iter(git.out(*_CHANGES, before, after, "--").split(b"\0"))
    found = []
    for meta in filter(None, fields):
        mode, new_mode, blob, _new, status = meta[1:].decode().split(" ")
        was = os.fsdecode(next(fields))
        path = os.fsdecode(next(fields)) if status.startswith("R") else was
        if _SUBMODULE not in (mode, new_mode):
            blob = blob if blob.strip("0") else ""
            was = was if was != path else ""
            found.append(ChangedFile(path=path, was=was, blob=blob, is_link=mode == _LINK))
    return found


def _content(one: ChangedFile, blobs: Mapping[str, bytes]) -> FileContent:
    """Return what a file was before."""
    from gitgates.features.trace.content import GONE, HUGE, of_bytes, of_link

    if one.blob in blobs:
        return (of_link if one.is_link else of_bytes)(blobs[one.blob])
    return HUGE if one.blob else GONE


def _began(call: Call) -> float:
    """Return when a shell command was about to begin; 0.0 if that was not heard of."""
    key = f"{HOOK_OF['before-tool']}:{call.payload.tool_use_id}"
    return next((one["t"] for one in call.entries if one.get("key") == key), 0.0)


def _changed_at(path_abs: str) -> float:
    """Return when a file was last changed; of one that is gone, when its folder was."""
    while not os.path.lexists(path_abs):
        path_abs = os.path.dirname(path_abs)
    return os.lstat(path_abs).st_ctime

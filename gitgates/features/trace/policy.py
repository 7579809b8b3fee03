"""The policy that writes the trace: a record of each tool call that changed files.

What has changed between the points of the memory before and after a tool call is recorded, without
what has come from commits and stashes that existed before. A file counts as it is after the gates
of that event. Files outside the repository are not traced.
"""

from __future__ import annotations

import os

from gitgates.config.load import table_of
from gitgates.core.errors import StateError
from gitgates.core.policy import LABELS, Need, enabled_policies, functions_of
from gitgates.core.record import Record
from gitgates.files.points import SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.core.types import Config, Verdict
    from gitgates.features.trace.content import FileContent
    from gitgates.files.points import Point
    from gitgates.files.versions import Change
    from gitgates.git.repo import Git, Repo
    from gitgates.session.call import Call
    from gitgates.session.recorder import OpenCall, Origin
    from gitgates.store.log import Fact

always = True
_AFTER = ("after-tool", "tool-failed")
_LOOK_S = 15.0
_MOST_FILES = 100  # of one record; a command that changes more does not write code
_CHANGES = ("diff-tree", "-r", "-z", "--name-status", "-M", "-l400")
_LINK, _SUBMODULE = 0o120000, 0o160000


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
    """Return the events around tools that write, and around shells, failed ones too."""
    if not is_on(config):
        return ()
    return (
        Need(kind="session-start", more_s=_LOOK_S),
        Need(kind="prompt"),
        Need(kind="before-tool", tools=(), tool_kinds=("writes", "shell"), more_s=_LOOK_S),
        Need(kind="after-tool", tools=(), tool_kinds=("writes", "shell"), more_s=_LOOK_S),
        Need(kind="tool-failed", tools=(), tool_kinds=("shell",), more_s=_LOOK_S),
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
    """Record a point of the memory; of what a tool call has changed, a record of the trace.

    Raises: StateError where files cannot be read or written; GitError where git fails.
    """
    from gitgates.session import recorder  # the trace is usually off

    is_start = call.kind == "session-start"
    observed = (recorder.begin if is_start else recorder.observe)(call)
    point = observed.point
    if not (point and point.author.kind == SESSION):
        return so_far
    try:
        _trace(call, point, observed.calls)
    except OSError as error:
        location = error.filename or call.repo.shared_state_abs
        text = f"{location}: {error.strerror}: the changes of this tool call are not traced"
        raise StateError(text, "Check the permissions of that file and the disk space.") from error
    return so_far


def _trace(call: Call, point: Point, calls: Mapping[str, OpenCall]) -> None:
    """Record what a session has changed up to a point. Raises: OSError, GitError."""
    from gitgates.features.trace.content import LARGEST, file_change, hash_file
    from gitgates.features.trace.ledger import append
    from gitgates.files.changes import changed_by
    from gitgates.files.memory import Memory
    from gitgates.files.points import point_at
    from gitgates.git.object_store import read_blobs

    before = point_at(call.repo, point.parent)
    if not before:
        return
    own = changed_by(call.repo, (before, point), lambda _author: True)
    git = Memory(call.repo).reading
    changed = _changed(git, own, before.tree, point.tree, named_paths=call.edited_paths or ())
    more = max(len(changed) - _MOST_FILES, 0)
    del changed[_MOST_FILES:]
    blobs = read_blobs(git, [file.blob for file in changed if file.blob], LARGEST)
    # A file that another call has named which is under way is that one's. What an editing tool has
    # not named is not its own, if there is another call.
    under_way = _others(call, calls)
    others = {each.origin.facts.what: each for each in under_way}
    is_edit = call.kind in _AFTER and call.payload.tool_kind == "writes"
    rest = max(under_way, key=lambda each: each.began_s, default=None) if is_edit else None
    by_writer: dict[OpenCall | None, list[Fact]] = {}
    for file in changed:
        content = hash_file(f"{call.repo.root_abs}/{file.path}", call.repo.object_format)
        change = file_change(file.path, _content(file, blobs), content, file.old_path)
        other = others.get(file.path, None if file.path in (call.edited_paths or ()) else rest)
        if change:
            by_writer.setdefault(other, []).append(change)
    for other, files in by_writer.items():
        who = _who_else(other.origin, other.agent_id) if other else _who(call, point)
        record = {**who, "commit": point.head, "files": files}
        is_cut = more and not other
        append(call.repo.common_dir_abs, {**record, "more": more} if is_cut else record)


def _others(call: Call, calls: Mapping[str, OpenCall]) -> list[OpenCall]:
    """Return the other calls that are under way, but those in the background."""
    own = call.payload.tool_use_id
    named_paths = {*(call.edited_paths or ())} if call.kind in _AFTER else set()
    return [
        each
        for key, each in calls.items()
        if key != own and not each.runs_on and each.origin.facts.what not in named_paths
    ]


def _who(call: Call, point: Point) -> Fact:
    """Return whose call has changed files: that of the event, or another one that is open."""
    payload = call.payload
    if call.kind not in _AFTER or point.author.name != payload.session:
        return _who_else(point, "")
    return {
        "session": payload.session,
        "agent": payload.agent_id,
        "agent_type": payload.agent_type,
        **_labels(call),
        "tool": payload.tool,
        "tool_use": payload.tool_use_id,
    }


def _who_else(origin: Origin | Point, agent: str) -> Fact:
    """Return whose a call is that is under way, as far as the event before it tells."""
    author = origin.author
    who = {"session": author.name, "agent": agent, "agent_type": author.agent}
    return {**who, **dict.fromkeys(LABELS, ""), "tool": origin.facts.tool, "tool_use": ""}


def _labels(call: Call) -> Fact:
    """Return the labels of other policies for the agent's work."""
    labels: Fact = dict.fromkeys(LABELS, "")
    for labels_of in functions_of(call.config, "labels", call.kind):
        labels |= labels_of(call)
    return labels


def _changed(
    git: Git, own: Mapping[str, Change], before: str, after: str, *, named_paths: Sequence[str]
) -> list[ChangedFile]:
    """Return each of a session's files that differs between two trees; with ignored ones it named.

    Raises: GitError if a tree is missing.
    """
    fields = [os.fsdecode(field) for field in git.out(*_CHANGES, before, after, "--").split(b"\0")]
    old_paths, differing, at = dict[str, str](), set[str](), 0
    while at + 1 < len(fields):
        is_renamed = fields[at].startswith("R")
        path = fields[at + 1 + is_renamed]
        differing.add(path)
        if is_renamed:
            old_paths[path] = fields[at + 1]
        at += 2 + is_renamed
    files = []
    for path in sorted(own.keys() & {*differing, *named_paths}):
        old_path = old_paths.get(path, "")
        version = own[old_path].before if old_path in own else own[path].before
        versions = [each for each in (version, own[path].after) if each]
        if all(each.mode != _SUBMODULE for each in versions):
            blob, is_link = (version.blob, version.mode == _LINK) if version else ("", False)
            files.append(ChangedFile(path=path, old_path=old_path, blob=blob, is_link=is_link))
    return files


def _content(file: ChangedFile, blobs: Mapping[str, bytes]) -> FileContent:
    """Return the earlier content of a file."""
    from gitgates.features.trace.content import GONE, HUGE, of_bytes, of_link

    if file.blob in blobs:
        return (of_link if file.is_link else of_bytes)(blobs[file.blob])
    return HUGE if file.blob else GONE

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
    from collections.abc import Mapping

    from gitgates.core.types import Config, Verdict
    from gitgates.features.trace.changed_lines import FileContent
    from gitgates.files.points import Point
    from gitgates.files.versions import Change, Changes, Version
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
    from gitgates.features.trace.ledger import append
    from gitgates.files.changes import changed_by
    from gitgates.files.points import point_at

    before = point_at(call.repo, point.parent)
    by_path = before and changed_by(call.repo, (before, point), lambda _author: True)
    if not (before and by_path):
        return
    named_paths = {*(call.edited_paths or ())}
    changes, more = _changes(call, by_path, (before, point), named_paths)
    # A file that another call has named which is under way is that one's. What an editing tool has
    # not named is not its own, if there is another call.
    under_way = _others(call, calls)
    others = {each.origin.facts.what: each for each in under_way}
    is_edit = call.kind in _AFTER and call.payload.tool_kind == "writes"
    rest = max(under_way, key=lambda each: each.began_s, default=None) if is_edit else None
    by_writer: dict[OpenCall | None, list[Fact]] = {}
    for change in changes:
        other = others.get(change["path"], None if change["path"] in named_paths else rest)
        by_writer.setdefault(other, []).append(change)
    for other, files in by_writer.items():
        who = _who_else(other.origin, other.agent_id) if other else _who(call, point)
        record = {**who, "commit": point.head, "point": point.id, "files": files}
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


def _changes(
    call: Call, by_path: Changes, points: tuple[Point, Point], named_paths: set[str]
) -> tuple[list[Fact], int]:
    """Return the change of each file, in the format of the ledger, and how many more there are.

    Ignored files count if the call has named them. Raises: GitError.
    """
    from gitgates.features.trace.changed_lines import file_change
    from gitgates.files.memory import Memory
    from gitgates.git.object_store import LARGEST, read_blobs

    git = Memory(call.repo).reading
    differing, old_paths = _differing(git, points)
    by_path = by_path | _left_by_gates(call, by_path, points[1])
    paths = [
        path
        for path in sorted(by_path.keys() & (differing | named_paths))
        if _is_file(by_path[path])
    ]
    more = max(len(paths) - _MOST_FILES, 0)
    del paths[_MOST_FILES:]
    befores = {path: by_path.get(old_paths.get(path, ""), by_path[path]).before for path in paths}
    versions = [*befores.values(), *(by_path[path].after for path in paths)]
    blobs = read_blobs(git, [each.blob for each in versions if each], LARGEST)
    changes = [
        file_change(
            path,
            _content(befores[path], blobs),
            _content(by_path[path].after, blobs),
            old_paths.get(path, ""),
        )
        | {"blob": after.blob if (after := by_path[path].after) else ""}
        for path in paths
    ]
    return changes, more


def _differing(git: Git, points: tuple[Point, Point]) -> tuple[set[str], dict[str, str]]:
    """Return the files that differ between points, and what those that were renamed were before."""
    output = git.out(*_CHANGES, *(point.tree for point in points), "--")
    fields = iter(os.fsdecode(output).split("\0"))
    differing, old_paths = set[str](), dict[str, str]()
    for status in fields:
        path = next(fields, "")
        if status.startswith("R"):
            old_path, path = path, next(fields, "")
            old_paths[path] = old_path
        differing.add(path)
    return differing, old_paths


def _left_by_gates(call: Call, by_path: Changes, point: Point) -> Changes:
    """Return what gates of this event have made of a session's files since a point."""
    from gitgates.files.changes import changes
    from gitgates.files.memory import Memory
    from gitgates.files.points import GATE, latest

    memory = Memory(call.repo)
    last = latest(call.repo) if memory.read_ref(memory.ref) != point.id else None
    if not (last and last.parent == point.id and last.author.kind == GATE):
        return {}
    left = changes(call.repo, point.tree, last.tree)
    both = by_path.keys() & left.keys()
    return {path: by_path[path]._replace(after=left[path].after) for path in both}


def _is_file(change: Change) -> bool:
    """Return whether a change is of a file's content: not of a submodule, nor of a mode alone."""
    before, after = change
    is_same = before and after and before.blob == after.blob
    return not is_same and all(each.mode != _SUBMODULE for each in change if each)


def _content(version: Version | None, blobs: Mapping[str, bytes]) -> FileContent:
    """Return the content of a version of a file."""
    from gitgates.features.trace.changed_lines import GONE, HUGE, FileContent, of_bytes

    if not version:
        return GONE
    if version.blob not in blobs:
        return HUGE
    data = blobs[version.blob]
    return FileContent(kind="link", data=data) if version.mode == _LINK else of_bytes(data)

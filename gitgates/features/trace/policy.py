"""The policy that writes the trace: a record of each tool call that changed files.

It records the changes between the points of the memory before and after a tool call, except those
that come from earlier commits and stashes. A file is recorded as it is after the event's gates.
Files outside the repository are not traced.
"""

from __future__ import annotations

from gitgates.config.load import table_of
from gitgates.core.errors import StateError
from gitgates.core.policy import LABELS, Need, enabled_policies, functions_of
from gitgates.core.record import Record
from gitgates.files.points import SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.types import Config, Verdict
    from gitgates.drivers.call import Call
    from gitgates.drivers.recorder import OpenCall, Origin
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo
    from gitgates.store.log import Fact

always = True
_AFTER = ("after-tool", "tool-failed")
_LOOK_S = 15.0
_MOST_FILES = 100  # per record; a command that changes more does not write code


class Trace(Record):
    """Whether agents' changes are recorded."""

    mode: str  # auto: if a traced policy is on; on, off


def is_on(config: Config) -> bool:
    """Return whether agents' changes are traced."""
    mode = table_of(config, "trace", Trace).mode
    return mode == "on" or (
        mode == "auto" and any("traced" in row.traits for row in enabled_policies(config))
    )


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events around tools that write and around shells, including failed ones."""
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
    """Return a line for each of the newest `n` records with these labels, newest first.

    Raises: OSError if the ledger cannot be read.
    """
    from gitgates.features.trace.ledger import recent  # only for an intent's context

    return recent(repo.common_dir_abs, labels, n)


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record a point in the memory, and a tool call's changes in the trace.

    Raises: StateError if files cannot be read or written; GitError if git fails.
    """
    from gitgates.drivers import recorder  # rarely needed: the trace is usually off

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
    """Record a session's changes up to a point. Raises: OSError, GitError."""
    from gitgates.features.trace.ledger import append

    # A file named by another running call belongs to that call.
    payload, named_paths = call.payload, {*(call.edited_paths or ())}
    others = {
        each.origin.facts.what: each
        for key, each in calls.items()
        if key != payload.tool.id and not each.runs_on
    }
    by_writer: dict[OpenCall | None, list[Fact]] = {}
    files = _changes(call, point, named_paths)
    for file in files[:_MOST_FILES]:
        other = None if file["path"] in named_paths else others.get(file["path"])
        by_writer.setdefault(other, []).append(file)
    for other, changed in by_writer.items():
        who = _who_else(other.origin, other.agent_id) if other else _who(call, point)
        record = {**who, "commit": point.head, "point": point.id, "files": changed}
        if len(files) > _MOST_FILES and not other:
            record["more"] = len(files) - _MOST_FILES
        append(call.repo.common_dir_abs, record)


def _who(call: Call, point: Point) -> Fact:
    """Return whose call has changed files: the event's, or another open one."""
    payload = call.payload
    if call.kind not in _AFTER or point.author.name != payload.session:
        return _who_else(point, "")
    labels: Fact = dict.fromkeys(LABELS, "")
    for labels_of in functions_of(call.config, "labels", call.kind):
        labels |= labels_of(call)
    who = {"session": payload.session, "agent": payload.agent.id, "agent_type": payload.agent.type}
    return {**who, **labels, "tool": payload.tool.name, "tool_use": payload.tool.id}


def _who_else(origin: Origin | Point, agent: str) -> Fact:
    """Return whose a running call is, as far as the event before it tells."""
    author = origin.author
    who = {"session": author.name, "agent": agent, "agent_type": author.agent}
    return {**who, **dict.fromkeys(LABELS, ""), "tool": origin.facts.tool, "tool_use": ""}


def _changes(call: Call, point: Point, named_paths: set[str]) -> list[Fact]:
    """Return each file's change, in the ledger's format.

    Ignored files count if the call named them. Changes by this event's gates since the point
    count, too. Raises: GitError.
    """
    from gitgates.features.trace.changed_files import changed_files
    from gitgates.files.changes import changed_by
    from gitgates.files.points import GATE, latest, point_at

    before = point_at(call.repo, point.parent)
    paths = before and changed_by(call.repo, (before, point), lambda _author: True).keys()
    if not (before and paths):
        return []
    last = latest(call.repo)
    after = last if last and last.parent == point.id and last.author.kind == GATE else point
    files = changed_files(call.repo, before.tree, after.tree, paths)
    ignored_paths = (paths & named_paths) - {file["path"] for file in files}
    if ignored_paths:
        files += changed_files(call.repo, before.ignored, after.ignored, ignored_paths)
    return files

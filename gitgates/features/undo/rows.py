"""Save points as they are shown: in the list, and in JSON."""

from __future__ import annotations

from gitgates.core.clean import counted
from gitgates.core.errors import GitError, StateError
from gitgates.core.record import Record
from gitgates.features.undo.moments import agent_of, is_agents, session_of
from gitgates.files.memory import Memory
from gitgates.files.points import UNDO
from gitgates.git.repo import nul_split
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.features.undo.moments import Moment, Moments
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

AGENT, OTHERS = "agent", "others"


class Row(Record):
    """A save point as it is shown, with the fields of its JSON."""

    id: int
    time: str
    by: str
    who: str
    session: str
    agent: str
    prompt: int
    prompt_text: str
    tool: str
    what: str
    changed: str
    files: tuple[str, ...]
    lines_added: int
    lines_removed: int
    undone: bool


def row_of(moments: Moments, point: Point, *, is_undone: bool) -> Row:
    """Return a point as it is shown, also one whose objects are damaged."""
    author, facts, session = point.author, point.facts, session_of(point)
    names: Iterable[str] = ()
    added = removed = 0
    try:
        before, after = moments.before(point), moments.of(point)
        names = moments.changes(point)
        added, removed = _counted_lines(moments.repo, before, after)
        parts = [counted(len(names), "file")] if names else []
        parts += [f"+{added} −{removed}"] if added or removed else []
        parts += _other_parts(before, after)
    except (StateError, GitError):
        parts = ["damaged"]
    what, who, by = "", "somebody else", OTHERS
    if is_agents(point):
        what = f"{facts.tool}: {facts.what}" if facts.what else facts.tool
        who, by = f"session {session[:8]}" if session else "agent", AGENT
    elif author.kind == UNDO:
        what, who, by = f"undo {facts.what}", "undo", UNDO
    prompt = f"prompt {facts.prompt}" if facts.prompt else ""
    return Row(
        id=point.number,
        time=utc(point.time_s),
        by=by,
        who=", ".join(filter(None, (who, prompt, agent_of(point)))),
        session=session or (author.name if by == UNDO else ""),
        agent=agent_of(point),
        prompt=facts.prompt,
        prompt_text=facts.prompt_text,
        tool=facts.tool,
        what=what,
        changed=", ".join(parts),
        files=tuple(sorted(names)),
        lines_added=added,
        lines_removed=removed,
        undone=by == AGENT and is_undone,
    )


def _other_parts(before: Moment, after: Moment) -> list[str]:
    others: list[tuple[str, Any]] = [
        ("index", lambda moment: moment.state.entries),
        ("HEAD", lambda moment: (moment.point.head, moment.state.branch)),
        ("branches", lambda moment: moment.state.refs),
        ("stash", lambda moment: moment.state.stash),
    ]
    return [name for name, of in others if of(before) != of(after)]


def _counted_lines(repo: Repo, before: Moment, after: Moment) -> tuple[int, int]:
    """Return how many lines were added and removed, ignored files aside."""
    if before.point.tree == after.point.tree:
        return 0, 0
    ask = ("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
    added = removed = 0
    numbers = Memory(repo).reading.out(*ask, before.point.tree, after.point.tree, "--")
    for entry in nul_split(numbers):
        more, less, _path = entry.split("\t", 2)
        added += int(more) if more.isdecimal() else 0
        removed += int(less) if less.isdecimal() else 0
    return added, removed

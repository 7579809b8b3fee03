"""Save points as they are shown: in the list, and in JSON."""

from __future__ import annotations

from gitgates.core.clean import counted
from gitgates.core.errors import GitError, StateError
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


def row_of(moments: Moments, point: Point, *, is_undone: bool) -> dict[str, Any]:
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
    return {
        "id": point.number,
        "time": utc(point.time_s),
        "by": by,
        "who": ", ".join(filter(None, (who, prompt, agent_of(point)))),
        "session": session or (author.name if by == UNDO else ""),
        "agent": agent_of(point),
        "prompt": facts.prompt,
        "prompt_text": facts.prompt_text,
        "tool": facts.tool,
        "what": what,
        "changed": ", ".join(parts),
        "files": sorted(names),
        "lines_added": added,
        "lines_removed": removed,
        "undone": by == AGENT and is_undone,
    }


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
    numbers = Memory(repo).reading.out(*ask, before.point.tree, after.point.tree, "--")
    fields = [entry.split("\t", 2) for entry in nul_split(numbers)]
    return (
        sum(int(more) for more, _less, _path in fields if more.isdecimal()),
        sum(int(less) for _more, less, _path in fields if less.isdecimal()),
    )

"""Save points as they are shown: in the list, in JSON, and on the page."""

from __future__ import annotations

from gitgates.core.clean import counted
from gitgates.core.errors import GitError, StateError
from gitgates.core.record import Record
from gitgates.features.undo import points, undoing
from gitgates.features.undo.states import load
from gitgates.store.log import utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.features.undo.points import SavePoint
    from gitgates.features.undo.states import State
    from gitgates.git.repo import Repo


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


def row_of(repo: Repo, point: SavePoint, *, is_undone: bool) -> Row:
    """Return a point as it is shown, also one whose objects are damaged."""
    author = point.author
    names: Iterable[str] = ()
    added = removed = 0
    try:
        before, after = load(repo, point.before), load(repo, point.after)
        names = undoing.changes(repo, before, after)
        added, removed = undoing.counted_lines(repo, before, after)
        parts = [counted(len(names), "file")] if names else []
        parts += [f"+{added} −{removed}"] if added or removed else []
        parts += _other_parts(before, after)
    except (StateError, GitError):
        parts = ["damaged"]
    what = {
        points.AGENT: f"{author.tool}: {author.what}" if author.what else author.tool,
        points.UNDO: f"undo {author.what}",
    }.get(author.by, "")
    who = {
        points.AGENT: f"session {author.session[:8]}" if author.session else "agent",
        points.UNDO: "undo",
    }.get(author.by, "somebody else")
    prompt = f"prompt {author.prompt}" if author.prompt else ""
    return Row(
        id=point.id,
        time=utc(point.time_s),
        by=author.by,
        who=", ".join(filter(None, (who, prompt, author.agent))),
        session=author.session,
        agent=author.agent,
        prompt=author.prompt,
        prompt_text=author.prompt_text,
        tool=author.tool,
        what=what,
        changed=", ".join(parts),
        files=tuple(sorted(names)),
        lines_added=added,
        lines_removed=removed,
        undone=author.by == points.AGENT and is_undone,
    )


def _other_parts(before: State, after: State) -> list[str]:
    others: list[tuple[str, Any]] = [
        ("index", lambda state: state.index_entries),
        ("HEAD", lambda state: (state.head, state.branch)),
        ("branches", lambda state: state.refs),
        ("stash", lambda state: state.stash),
    ]
    return [name for name, of in others if of(before) != of(after)]

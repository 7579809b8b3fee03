"""The page of save points: what each has changed, with the differences. Cold."""

from __future__ import annotations

from gitgates.core.clean import plain, plain_line, visible_line
from gitgates.features.undo import undoing
from gitgates.features.undo.states import load
from gitgates.report.html import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.undo.points import SavePoint
    from gitgates.features.undo.rows import Row
    from gitgates.git.repo import Repo

_MOST_BYTES = 100_000  # of the difference of one point
_MOST_FILES = 200


def html_page(repo: Repo, listed: list[tuple[SavePoint, Row]]) -> str:
    """Return the page. Raises: StateError, GitError."""
    entries = [
        {
            **row._asdict(),
            "who": plain_line(row.who, 0),
            "what": plain_line(row.what, 0),
            "prompt_text": plain_line(row.prompt_text, 0),
            "diff": _diff(repo, point),
        }
        for point, row in listed
    ]
    title = f"Save points of {visible_line(repo.root_abs)}"
    return render("features/undo/page.html.j2", title=title, points=entries)


def _diff(repo: Repo, point: SavePoint) -> str:
    """Return the difference that a point has made, shortened."""
    found = undoing.changes(repo, load(repo, point.before), load(repo, point.after))
    diff = b""
    for path in sorted(found)[:_MOST_FILES]:
        if len(diff) > _MOST_BYTES:
            return plain(diff[:_MOST_BYTES]) + "\n…"
        change = found[path]
        target = undoing.Target(now=change.before, version=change.after)
        diff += undoing.difference(repo, path, target)
    return plain(diff)

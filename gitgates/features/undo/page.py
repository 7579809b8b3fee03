"""The page of save points: what each has changed, with the differences. Cold."""

from __future__ import annotations

from importlib import resources

from gitgates.core.clean import plain, plain_line, visible_line
from gitgates.features.undo import undoing
from gitgates.features.undo.states import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.undo.points import SavePoint
    from gitgates.features.undo.rows import Row
    from gitgates.git.repo import Repo

_MOST_BYTES = 100_000  # of the difference of one point
_MOST_FILES = 200


def html_page(repo: Repo, listed: list[tuple[SavePoint, Row]]) -> str:
    """Return the page. Raises: StateError, GitError."""
    import jinja2  # only pages need it

    text = resources.files("gitgates.features.undo").joinpath("page.html.j2").read_text("utf-8")
    template = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(text)
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
    return template.render(root=visible_line(repo.root_abs), points=entries)


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

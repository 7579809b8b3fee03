"""Markdown for the pages that are generated from the code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def page(title: str, source: str, *parts: str) -> str:
    """Return the text of a page, with a note about its source."""
    note = f"<!-- generated from {source} by `make docs`; change it there -->"
    return "\n\n".join([f"# {title}", note, *parts]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

"""The folders that patterns of `members` name. A hook loads this only if there are members."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Subfolders: TypeAlias = Callable[[str], Iterable[str]]  # the names of those in a folder


def expand(patterns: Iterable[str], subfolders: Subfolders) -> tuple[str, ...]:
    """Return the folders that patterns of `members` name, in order, each once."""
    folders: dict[str, None] = {}
    for pattern in patterns:
        heads = [""]
        for part in pattern.split("/"):
            heads = [
                f"{head}/{name}" if head else name
                for head in heads
                for name in (sorted(_matching(part, subfolders(head))) if "*" in part else [part])
            ]
        folders |= dict.fromkeys(heads)
    return tuple(folders)


def names_in(folder: str, paths: Iterable[str]) -> set[str]:
    """Return the names of the folders in one that paths are below."""
    inside = f"{folder}/" if folder else ""
    below = (path[len(inside) :] for path in paths if path.startswith(inside))
    return {path.partition("/")[0] for path in below if "/" in path}


def _matching(part: str, names: Iterable[str]) -> Iterable[str]:
    """Return the names that match a part of a pattern, which has one `*`; as in a shell."""
    before, _star, after = part.partition("*")
    return (
        name
        for name in names
        if name.startswith(before)
        and name.endswith(after)
        and len(name) >= len(before + after)
        and (before or name[0] != ".")
    )

"""Read patches for `apply_patch`: one text with changes to several files. Pure."""

from __future__ import annotations

from gitgates.core.agent_types import Replacement

BEGIN, END = "*** Begin Patch\n", "\n*** End Patch"
_FILE_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def paths_of(patch: str) -> tuple[str, ...]:
    """Return a patch's files, as it names them; spaces before a name belong to it."""
    paths = [
        line.strip().removeprefix(start)
        for line in _lines(patch)
        for start in _FILE_LINES
        if line.strip().startswith(start)
    ]
    return tuple(dict.fromkeys(paths))


def edits_of(patch: str) -> tuple[Replacement, ...]:
    """Return a patch's edits: the lines of each part."""
    parts: list[list[str]] = []
    for line in _lines(patch):
        if line.startswith(("***", "@@")) or line.strip().startswith(_FILE_LINES):
            parts.append([])
        elif parts:
            parts[-1].append(line)
    return tuple(
        Replacement(
            old="\n".join(line[1:] for line in part if not line.startswith("+")),
            new="\n".join(line[1:] for line in part if not line.startswith("-")),
        )
        for part in parts
        if part
    )


def _lines(patch: str) -> list[str]:
    """Return a patch's lines. Only LF ends one: names may contain other line separators."""
    return [line.removesuffix("\r") for line in patch.strip().split("\n")]

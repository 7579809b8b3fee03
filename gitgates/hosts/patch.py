"""Patches as `apply_patch` takes them: one text with the changes of several files. Pure."""

from __future__ import annotations

from gitgates.core.agent_types import Replacement

BEGIN, END = "*** Begin Patch\n", "\n*** End Patch"
_FILE_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def paths_of(patch: str) -> tuple[str, ...]:
    """Return the files of a patch, as it names them; blanks before a name belong to it."""
    paths = [
        line.strip().removeprefix(start)
        for line in _lines(patch)
        for start in _FILE_LINES
        if line.strip().startswith(start)
    ]
    return tuple(dict.fromkeys(paths))


def edits_of(patch: str) -> tuple[Replacement, ...]:
    """Return what a patch does to its files: the lines of each of its parts."""
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
    """Return its lines, which end as files' do: other signs that end one stand in names."""
    return [line.removesuffix("\r") for line in patch.strip().split("\n")]

"""Which intent a path belongs to. Pure.

A path is relative to the root of the worktree, with symbolic links and `..` resolved by the caller.
Patterns are those of gitignore(5), as everywhere in gitgates.
"""

from __future__ import annotations

from gitgates.engine.match import Pattern, matches, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.intents.intent import Intent, Intents

_WILDCARDS = "*?[\\"


def is_inside(intent: Intent, path: str, *, ignore_case: bool = False) -> bool:
    """Return whether an intent's scope has a path.

    `ignore_case`: as core.ignorecase of git says of the file system. What git keeps in `.git` is in
    no scope, and nothing outside the worktree is.
    """
    if not can_be_inside(path):
        return False
    scope = intent.owned_scope
    if ignore_case:
        path, scope = path.casefold(), tuple(pattern.casefold() for pattern in scope)
    return matches(path, [parse(pattern) for pattern in scope])


def is_in_scope(intents: Intents, intent: Intent, path: str, *, ignore_case: bool = False) -> bool:
    """Return whether an agent with an intent may change a path: never the file of the intents."""
    pair = (path.casefold(), intents.file.casefold()) if ignore_case else (path, intents.file)
    return pair[0] != pair[1] and is_inside(intent, path, ignore_case=ignore_case)


def can_be_inside(path: str) -> bool:
    """Return whether any scope can have a path."""
    first = path.partition("/")[0]
    return first not in ("", "..") and first.casefold() != ".git"


def nearest(
    intents: tuple[Intent, ...], path: str, most: int, *, ignore_case: bool = False
) -> tuple[Intent, ...]:
    """Return the intents that a path fits best, at most so many.

    First those that have it in their scope, then those with the most folders in common with it;
    among equals the order of the file. None that has nothing in common with it.
    """
    folded = path.casefold() if ignore_case else path
    ranked = []
    for intent in intents:
        scope = intent.owned_scope
        if ignore_case:
            scope = tuple(pattern.casefold() for pattern in scope)
        common = max([_common(parse(pattern), folded) for pattern in scope], default=0)
        ranked.append((is_inside(intent, path, ignore_case=ignore_case), common, intent))
    ranked.sort(key=lambda entry: entry[:2], reverse=True)  # which keeps the order of equals
    return tuple(intent for inside, common, intent in ranked[:most] if inside or common)


def _common(pattern: Pattern, path: str) -> int:
    """Return how many folders at its beginning a pattern has in common with a path."""
    count = 0
    for segment, name in zip(pattern.segments, path.split("/"), strict=False):
        if pattern.negated or segment != name or any(char in segment for char in _WILDCARDS):
            break
        count += 1
    return count

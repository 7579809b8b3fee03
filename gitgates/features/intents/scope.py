"""Which intent a path belongs to. Pure.

A path is relative to the worktree's root; the caller has resolved symbolic links and `..`. Patterns
are those of gitignore(5), as everywhere in gitgates.
"""

from __future__ import annotations

from gitgates.engine.plan.match import matches, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.intents.intent import Intent, Intents


def is_matched(path: str, patterns: tuple[str, ...], *, ignore_case: bool = False) -> bool:
    """Return whether patterns match a path. `ignore_case`: git's core.ignorecase."""
    if ignore_case:
        path, patterns = path.casefold(), tuple(pattern.casefold() for pattern in patterns)
    return matches(path, [parse(pattern) for pattern in patterns])


def is_in_scope(intents: Intents, intent: Intent, path: str, *, ignore_case: bool = False) -> bool:
    """Return whether an agent with an intent may change a path; never the intents file."""
    is_file = is_matched(path, (f"/{intents.file}",), ignore_case=ignore_case)
    return not is_file and is_inside(intent, path, ignore_case=ignore_case)


def is_inside(intent: Intent, path: str, *, ignore_case: bool = False) -> bool:
    """Return whether an intent's scope contains a path."""
    return can_be_inside(path) and is_matched(path, intent.owned_scope, ignore_case=ignore_case)


def can_be_inside(path: str) -> bool:
    """Return whether a scope may contain a path: not in `.git`, nor outside the root."""
    first = path.partition("/")[0]
    return first not in ("", "..") and first.casefold() != ".git"


def nearest(
    intents: tuple[Intent, ...], path: str, most: int, *, ignore_case: bool = False
) -> tuple[Intent, ...]:
    """Return the intents that a path fits best, at most `most`.

    First those whose scope contains it, then those that share the most parent folders with it;
    equals in the file's order. Intents that share nothing with it are left out.
    """

    def fit(intent: Intent) -> tuple[bool, int]:
        common = max(_common(pattern, path) for pattern in intent.owned_scope)
        return is_inside(intent, path, ignore_case=ignore_case), common

    ranked = sorted(intents, key=fit, reverse=True)  # it keeps the order of equals
    return tuple(intent for intent in ranked[:most] if any(fit(intent)))


def _common(pattern: str, path: str) -> int:
    """Return how many leading folders a pattern shares with a path."""
    count = 0
    for segment, name in zip(pattern.strip("/").split("/"), path.split("/"), strict=False):
        if segment != name:
            break
        count += 1
    return count


def wrong_pattern(pattern: str) -> str:
    """Return what was expected instead of a pattern; empty if it is valid in a scope."""
    body = pattern.removeprefix("!")
    parts = body.strip("/").split("/")
    if not body.strip("/") or not body.isprintable() or body != body.strip():
        return "a pattern such as src/** on one line, without spaces around it"
    is_windows = "\\" in body and body.partition("\\")[2][:1].isalnum()
    # `/etc/passwd` would mean the repository's folder `etc`, which nobody means.
    is_absolute = body.startswith("/") and len(parts) > 1
    is_elsewhere = body.startswith("~") or body[1:3] in (":/", ":\\") or is_windows or is_absolute
    if is_elsewhere or not {"", ".", "..", ".git"}.isdisjoint(part.casefold() for part in parts):
        return "a path of the working tree relative to its root, such as src/**, without `.`, `..`"
    return ""

"""Match paths against patterns, with the rules of gitignore(5).

Written by hand because a git hook loads neither `re` nor `fnmatch` (4 ms). A test holds it to the
answers of `git check-ignore` itself.
"""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_SPECIAL = frozenset("*?[\\")
_NAMED = {  # classes of ASCII, as pairs: the first and the last of each range
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "blank": "  \t\t",
    "cntrl": "\0\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "xdigit": "09AFaf",
}
_ELEMENTS: dict[str, tuple[str, ...]] = {}  # pattern of a name → its parts


class Pattern(Record):
    """One line of a gitignore file, taken apart."""

    segments: tuple[str, ...]
    negated: bool
    folders_only: bool
    name: str = ""  # of one that is about the last segment alone, as most are
    suffix: str = ""  # of a name that is `*` and this


def select(
    paths: tuple[str, ...], files: tuple[str, ...] | None, exclude: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the paths that match `files` (None: all) and do not match `exclude`, in order."""
    included = None if files is None else [parse(line) for line in files]
    excluded = [parse(line) for line in exclude]
    included_folders: dict[str, bool] = {}
    excluded_folders: dict[str, bool] = {}
    return tuple(
        path
        for path in paths
        if (included is None or matches(path, included, included_folders))
        and not matches(path, excluded, excluded_folders)
    )


def parse(line: str) -> Pattern:
    """Parse one pattern. Without a slash, except for one at its end, it matches at any depth."""
    negated = line.startswith("!")
    body = line[1:] if negated else line
    if body.startswith(("\\!", "\\#")):
        body = body[1:]
    folders_only = body.endswith("/")
    body = body.rstrip("/") if folders_only else body
    anchored = "/" in body
    segments = tuple(
        "**" if len(part) > 1 and not part.strip("*") else part  # git takes *** for ** as well
        for part in body.lstrip("/").split("/")
    )
    if not anchored:
        segments = ("**", *segments)
    name = segments[1] if segments[:-1] == ("**",) else ""
    return Pattern(
        segments=segments,
        negated=negated,
        folders_only=folders_only,
        name=name,
        suffix=name[1:] if name[:1] == "*" and _SPECIAL.isdisjoint(name[1:]) else "",
    )


def matches(path: str, patterns: list[Pattern], folders: dict[str, bool] | None = None) -> bool:
    """Return whether the last pattern that matches `path`, or a folder above it, selects it.

    As in gitignore(5), nothing below a selected folder can be taken out again. `folders` keeps
    what was found out about folders, for the next path of the same patterns.
    """
    if not patterns:
        return False
    selected_by_folder = {} if folders is None else folders
    parts = tuple(path.split("/"))
    folder = path.rpartition("/")[0]
    if folder and folder not in selected_by_folder:
        is_selected = False
        for depth in range(1, len(parts)):
            at = "/".join(parts[:depth])
            if not is_selected and at not in selected_by_folder:
                is_selected = _is_selected(parts[:depth], patterns, is_folder=True)
            is_selected = selected_by_folder.setdefault(at, is_selected)
    if folder and selected_by_folder[folder]:
        return True
    return _is_selected(parts, patterns, is_folder=False)


def _is_selected(parts: tuple[str, ...], patterns: list[Pattern], *, is_folder: bool) -> bool:
    for pattern in reversed(patterns):
        if pattern.folders_only and not is_folder:
            continue
        if pattern.suffix:
            is_match = parts[-1].endswith(pattern.suffix)
        elif pattern.name:
            is_match = match_name(pattern.name, parts[-1])
        else:
            is_match = _match(pattern.segments, parts, "**", match_name)
        if is_match:
            return not pattern.negated
    return False


def match_name(pattern: str, name: str) -> bool:
    """Return whether one path segment matches `*`, `?`, `[…]` and backslash escapes."""
    if _SPECIAL.isdisjoint(pattern):
        return pattern == name
    if pattern[0] == "*" and _SPECIAL.isdisjoint(pattern[1:]):
        return name.endswith(pattern[1:])
    if pattern not in _ELEMENTS:
        _ELEMENTS[pattern] = _elements(pattern)
    return _match(_ELEMENTS[pattern], name, "*", _fits)


def _match(
    pattern: Sequence[str], items: Sequence[str], star: str, fits: Callable[[str, str], bool]
) -> bool:
    """Return whether items match a pattern in which a star stands for any number of them.

    For at least one if it is `**`, at the end: what is below a folder is not the folder.
    """
    # Only the last star met ever needs another try, so that the work stays len × len.
    at = index = 0
    after_star = star_end = -1
    while index < len(items) or at < len(pattern):
        if at < len(pattern) and pattern[at] == star:
            at += 1
            if at == len(pattern):
                return star == "*" or index < len(items)
            after_star, star_end = at, index
            continue
        if at < len(pattern) and index < len(items) and fits(pattern[at], items[index]):
            at, index = at + 1, index + 1
            continue
        if after_star < 0 or star_end >= len(items):
            return False
        star_end += 1
        at, index = after_star, star_end
    return True


def _elements(pattern: str) -> tuple[str, ...]:
    """Take a name's pattern apart.

    Into `*`, `?`, a backslash and a character, or `[]` and pairs of characters: ranges; `[!` if
    there may be none of them.
    """
    elements, at = [], 0
    while at < len(pattern):
        element, at = pattern[at], at + 1
        if element == "[":
            element, at = _class(pattern, at)
        elif element == "\\" and at < len(pattern):
            element, at = pattern[at - 1 : at + 1], at + 1
        elif element not in "*?":
            element = f"\\{element}"
        elements.append(element)
    return tuple(elements)


def _class(pattern: str, at: int) -> tuple[str, int]:
    """Return a class as an element, and the place after it."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    ranges, first = "", at
    while at == first or pattern[at : at + 1] != "]":
        if at >= len(pattern):
            return "[", at  # no closing bracket: matches nothing, as in git
        if pattern.startswith("[:", at) and ":]" in pattern[at + 2 :]:
            end = pattern.index(":]", at + 2)
            ranges += _NAMED.get(pattern[at + 2 : end], "")
            at = end + 2
            continue
        low, at = _class_char(pattern, at)
        high = low
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _class_char(pattern, at + 1)
        ranges += low + high
    return ("[!" if negated else "[]") + ranges, at + 1


def _class_char(pattern: str, at: int) -> tuple[str, int]:
    at += pattern[at] == "\\" and at + 1 < len(pattern)
    return pattern[at], at + 1


def _fits(element: str, char: str) -> bool:
    if element[0] != "[":
        return element == "?" or element[1] == char
    ranges = zip(element[2::2], element[3::2], strict=True)
    return any(low <= char <= high for low, high in ranges) != (element[1:2] == "!")

"""Match paths against patterns, with the rules of gitignore(5).

Written by hand because a git hook loads neither `re` nor `fnmatch` (4 ms). A test holds it to the
answers of `git check-ignore` itself.
"""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


_SPECIAL = frozenset("*?[\\")


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


def selects_any(paths: Iterable[str], files: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return whether one of the paths matches `files` and does not match `exclude`."""
    included, excluded = [parse(line) for line in files], [parse(line) for line in exclude]
    included_folders: dict[str, bool] = {}
    excluded_folders: dict[str, bool] = {}
    return any(
        matches(path, included, included_folders) and not matches(path, excluded, excluded_folders)
        for path in paths
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
            is_match = _match_segments(pattern.segments, parts)
        if is_match:
            return not pattern.negated
    return False


def _match_segments(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    # Only the last `**` met ever needs another try, so that the work stays len × len.
    at = index = 0
    after_stars = stars_end = -1
    while index < len(parts) or at < len(pattern):
        if at < len(pattern) and pattern[at] == "**":
            at += 1
            if at == len(pattern):
                return index < len(parts)
            after_stars, stars_end = at, index
            if "**" not in pattern[at:]:
                index = stars_end = max(index, len(parts) - (len(pattern) - at))
            continue
        if at < len(pattern) and index < len(parts) and match_name(pattern[at], parts[index]):
            at, index = at + 1, index + 1
            continue
        if after_stars < 0 or stars_end >= len(parts):
            return False
        stars_end += 1
        at, index = after_stars, stars_end
    return True


def match_name(pattern: str, name: str) -> bool:
    """Return whether one path segment matches `*`, `?`, `[…]` and backslash escapes."""
    if _SPECIAL.isdisjoint(pattern):
        return pattern == name
    if pattern[0] == "*" and _SPECIAL.isdisjoint(pattern[1:]):
        return name.endswith(pattern[1:])
    return _match_wildcards(pattern, name)


def _match_wildcards(pattern: str, name: str) -> bool:
    # Only the last star met ever needs another try, so that the work stays len × len.
    at = index = 0
    after_star = star_end = -1
    while index < len(name) or at < len(pattern):
        if at < len(pattern) and pattern[at] == "*":
            at += 1
            after_star, star_end = at, index
            continue
        if at < len(pattern) and index < len(name):
            following, fits = _match_char(pattern, at, name[index])
            if fits:
                at, index = following, index + 1
                continue
        if after_star < 0 or star_end >= len(name):
            return False
        star_end += 1
        at, index = after_star, star_end
    return True


def _match_char(pattern: str, at: int, char: str) -> tuple[int, bool]:
    """Match one character; return the place after the pattern's element, and whether it fits."""
    match pattern[at]:
        case "?":
            return at + 1, True
        case "[":
            return _match_class(pattern, at, char)
        case "\\" if at + 1 < len(pattern):
            return at + 2, pattern[at + 1] == char
        case literal:
            return at + 1, literal == char


def _match_class(pattern: str, at: int, char: str) -> tuple[int, bool]:
    index = at + 1
    negated = pattern[index : index + 1] in ("!", "^")
    index += negated
    is_member = False
    first = True
    while first or pattern[index : index + 1] != "]":
        if index >= len(pattern):
            return len(pattern), False  # no closing bracket: matches nothing, as in git
        if pattern.startswith("[:", index) and ":]" in pattern[index + 2 :]:
            end = pattern.index(":]", index + 2)
            is_member = is_member or _in_named_class(pattern[index + 2 : end], char)
            index, first = end + 2, False
            continue
        low, index = _class_char(pattern, index)
        high = low
        if pattern[index : index + 1] == "-" and pattern[index + 1 : index + 2] not in ("", "]"):
            high, index = _class_char(pattern, index + 1)
        is_member = is_member or low <= char <= high
        first = False
    return index + 1, is_member != negated


def _class_char(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1


def _in_named_class(name: str, char: str) -> bool:
    ascii_only = char.isascii()
    tests = {
        "alnum": char.isalnum(),
        "alpha": char.isalpha(),
        "blank": char in " \t",
        "cntrl": char < " " or char == "\x7f",
        "digit": char.isdigit(),
        "graph": char.isprintable() and char != " ",
        "lower": char.islower(),
        "print": char.isprintable(),
        "punct": char.isprintable() and not char.isalnum() and char != " ",
        "space": char.isspace(),
        "upper": char.isupper(),
        "xdigit": char in "0123456789abcdefABCDEF",
    }
    return ascii_only and tests.get(name, False)

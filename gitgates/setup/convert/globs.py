"""Translate regular expressions and globs of other tools into gitignore patterns.

An expression without an exact counterpart is refused: its gate would check other files.
"""

from __future__ import annotations

import re

# Placeholders in a translated text: any characters, including slashes; any characters of one name.
_ANY, _MANY = "\0", "\1"
_MOST = 64  # patterns from one expression
_SPACE = re.compile(r"(?<!\\)(?:\s+|#[^\n]*)")
_OPTIONAL = re.compile(r"(\w)\?")
_GROUP = re.compile(r"\((?:\?:)?(?!\?)([^()]*)\)(\??)(?![*+{?])")
_UNKNOWN = re.compile(r"[\\^$*+?()\[\]{}|].*", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_BRACES = 6  # each makes as many patterns as it has parts


class NoPatternError(Exception):
    """A pattern that gitignore cannot express; the text says why."""


def from_regex(expression: str) -> list[str]:
    """Return the patterns for what `re.search` finds in a path, in order.

    A single `.` is taken for a dot, as it is usually meant.

    Raises: NoPatternError.
    """
    if expression.startswith("(?x)"):
        expression = _SPACE.sub("", expression.removeprefix("(?x)"))
    text = re.sub(r"(?<!\\)\.[*+]", _ANY, re.sub(r"\[\^/\][*+]", _MANY, expression.strip()))
    texts = [_OPTIONAL.sub(r"(?:\1|)", re.sub(r"\\([./-])", r"\1", text))]
    while any(map(_GROUP.search, texts)):
        texts = list(dict.fromkeys(each for text in texts for each in _without_group(text)))
        if len(texts) > _MOST:
            raise NoPatternError(f"it stands for more than {_MOST} patterns")
    parts = [part for text in texts for part in text.split("|")]
    return list(dict.fromkeys(_render(_whole(part)) for part in parts))


def _without_group(text: str) -> list[str]:
    """Return the texts that a text stands for, without its first innermost group."""
    if not (match := _GROUP.search(text)):
        return [text]
    parts = [*match[1].split("|"), *([""] if match[2] else [])]
    return [text[: match.start()] + part + text[match.end() :] for part in parts]


def _whole(text: str) -> str:
    """Return a text that stands for a whole path, without anchors."""
    body = text.removeprefix("^").removesuffix("$")
    if match := _UNKNOWN.search(body):
        raise NoPatternError(f"`{match[0][:20]}` has no counterpart in a pattern")
    return _ANY * (not text.startswith("^")) + body + _ANY * (not text.endswith("$"))


def _render(text: str) -> str:
    """Return the pattern for a text that stands for a whole path."""
    text = re.sub(f"[{_ANY}{_MANY}]*{_ANY}[{_ANY}{_MANY}]*", _ANY, text)
    text = re.sub(f"{_MANY}+", _MANY, text)
    begins, ends = not text.startswith(_ANY), not text.endswith(_ANY)
    body = text.strip(_ANY)
    if not body and not (begins and ends):
        return "*"
    body = re.sub(f"(?<=/){_ANY}/", "*/**/", body)
    body = re.sub(f"(?<=/){_ANY}", "**/*", body).replace(_MANY, "*")
    is_begun, is_ended = begins and body[:1] == "/", ends and body[-1:] == "/"
    if not body or "//" in body or is_begun or is_ended:
        raise NoPatternError("no path matches it")
    if _ANY in body:
        raise NoPatternError("its `.*` in a name has no counterpart in a pattern")
    has_folder = "/" in body.rstrip("/")
    if begins:
        body = body if has_folder else f"/{body}"
    else:
        body = f"*/**{body}" if body[0] == "/" else f"{'**/' * has_folder}*{body}"
    body = body if ends or body[-1] == "/" else f"{body}*"
    return _unnegated(body.replace("**/**/", "**/").removesuffix("**/"))


def from_gobwas(glob: str) -> list[str]:
    """Return the patterns for a glob of lefthook, in which `*` also matches slashes.

    Source: github.com/gobwas/glob, called without separators. Raises: NoPatternError.
    """
    if "[!" in glob:
        raise NoPatternError("`[!` has no counterpart in a pattern")
    return [_render(re.sub(r"\*+", _ANY, each)) for each in expand(glob)]


def from_doublestar(glob: str) -> list[str]:
    """Return the patterns for a glob that matches a whole path, and whose `*` matches no slash."""
    return [_unnegated(glob if "/" in glob else f"/{glob}") for glob in expand(glob)]


def expand(glob: str) -> list[str]:
    """Expand braces: `*.{js,ts}` becomes two patterns."""
    braces = _BRACES.search(glob)
    if not braces or glob.count("{") > _MOST_BRACES:
        return [glob] if glob else []
    ends = [glob[: braces.start()] + part + glob[braces.end() :] for part in braces[1].split(",")]
    return [pattern for end in ends for pattern in expand(end)]


def _unnegated(pattern: str) -> str:
    """Return a pattern whose first character is literal, even if it is `!` or `#`."""
    return f"\\{pattern}" if pattern.startswith(("!", "#")) else pattern

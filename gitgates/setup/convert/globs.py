"""Translate patterns of other tools to those of gitignore: regular expressions and globs.

What cannot be said exactly is refused: a gate that looks at other files than before is no
conversion.
"""

from __future__ import annotations

import re

# In a text under way: any characters, slashes among them; those of one name; a name's beginning.
_ANY, _MANY, _NAME = "\0", "\1", "\2"
_ESCAPED = 0xE000  # a character behind a backslash, so that nothing takes it for a sign
_MOST = 64  # patterns from one expression
_SPACE = re.compile(r"(?<!\\)(?:\s+|#[^\n]*)")
_OPTIONAL = re.compile(r"(\[[^]]*\]|[^()\[\]|*+?])\?")
_GROUP = re.compile(r"\((?:\?:)?(?!\?)([^()]*)\)(\??)(?![*+{?])")
_ATOM = re.compile(
    r"(?P<any>\.[*+])|(?P<many>\[\^/\][*+])|(?P<one>\[\^/\])|(?P<set>\[[\w-]+\])(?![*+{])"
    r"|(?P<plain>[^\\^$*+?()\[\]{}|])(?![*+{])"
)
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_BRACES = 6  # each makes as many patterns as it has parts


class NoPatternError(Exception):
    """A pattern that gitignore cannot express; the text says why."""


def from_regex(expression: str) -> list[str]:
    """Return patterns for what `re.search` finds in a path, in order.

    A single `.` is taken for a dot, which it is mostly meant to be.

    Raises: NoPatternError.
    """
    if expression.startswith("(?x)"):
        expression = _SPACE.sub("", expression.removeprefix("(?x)"))
    text = re.sub(r"\\(\W)", lambda match: chr(_ESCAPED + ord(match[1])), expression.strip())
    text = re.sub(r"(?<=[*+])\?", "", text)  # which asks for as little as possible
    text = re.sub(r"^\((?:\?:)?(?:\^\|/|/\|\^)\)", _NAME, text)
    texts = [_OPTIONAL.sub(r"(?:\1|)", text)]
    while any(map(_GROUP.search, texts)):
        texts = list(dict.fromkeys(each for text in texts for each in _without_group(text)))
        if len(texts) > _MOST:
            raise NoPatternError(f"it stands for more than {_MOST} patterns")
    parts = [part for text in texts for part in text.split("|")]
    return list(dict.fromkeys(_render(_whole(part)) for part in parts))


def _without_group(text: str) -> list[str]:
    """Return what a text stands for, without its first innermost group."""
    if not (match := _GROUP.search(text)):
        return [text]
    parts = [*match[1].split("|"), *([""] if match[2] else [])]
    return [text[: match.start()] + part + text[match.end() :] for part in parts]


def _whole(text: str) -> str:
    """Return a text for a whole path, in which nothing is a sign of an expression any more."""
    start = "" if text.startswith("^") else _NAME if text.startswith(_NAME) else _ANY
    end = "" if text.endswith("$") else _ANY
    rest = text.removeprefix("^").removeprefix(_NAME).removesuffix("$")
    translated = ""
    while rest:
        atom = _ATOM.match(rest)
        if not atom:
            raise NoPatternError(
                f"`{''.join(map(_plain, rest))[:20]}` has no counterpart in a pattern"
            )
        signs = {"any": _ANY, "many": _MANY, "one": "?"}
        translated += signs.get(atom.lastgroup or "") or "".join(map(_plain, atom[0]))
        rest = rest[atom.end() :]
    return start + translated + end


def _plain(char: str) -> str:
    """Return a character as a pattern has it."""
    escaped = chr(ord(char) - _ESCAPED) if _ESCAPED <= ord(char) < _ESCAPED + 128 else char
    return f"\\{escaped}" if escaped != char and escaped in "*?[\\$" else escaped


def _render(text: str) -> str:
    """Return the pattern for a text that stands for a whole path."""
    text = re.sub(f"{_NAME}?[{_ANY}{_MANY}]*{_ANY}[{_ANY}{_MANY}]*", _ANY, text)
    text = re.sub(f"{_MANY}+", _MANY, text)
    body = text.strip(_ANY + _NAME)
    if not body and _ANY in text:
        return "*"
    start, goes_on = text[:1], text.endswith(_ANY)
    body = re.sub(f"(?<=/){_ANY}/", "*/**/", body)
    body = re.sub(f"(?<=/){_ANY}", "**/*", body).replace(_MANY, "*")
    never = not body or "//" in body
    never = never or (body[0] == "/" and start != _ANY) or (body[-1] == "/" and not goes_on)
    if never or _ANY in body:
        raise NoPatternError(
            "it has no path" if never else "its `.*` in a name has no counterpart in a pattern"
        )
    has_folder = "/" in body.rstrip("/")
    if start == _ANY and body.startswith("/"):
        body = f"*/**{body}"
    elif start in (_ANY, _NAME):
        body = f"{'**/' * has_folder}{'*' * (start == _ANY)}{body}"
    elif not has_folder:
        body = f"/{body}"
    body = body if body.endswith("/") or not goes_on else f"{body}*"
    return _unnegated(body.replace("**/**/", "**/").removesuffix("**/"))


def from_gobwas(glob: str) -> list[str]:
    """Return patterns for a glob of lefthook, of which `*` stands for slashes, too.

    Source: github.com/gobwas/glob, called without separators. Raises: NoPatternError.
    """
    if "[!" in glob:
        raise NoPatternError("`[!` has no counterpart in a pattern")
    return [_render(re.sub(r"\*+", _ANY, each)) for each in expand(glob)]


def from_doublestar(glob: str) -> list[str]:
    """Return patterns for a glob of which `*` ends at a slash, and that names the whole path."""
    return [_unnegated(glob if "/" in glob else f"/{glob}") for glob in expand(glob)]


def expand(glob: str) -> list[str]:
    """Expand braces: `*.{js,ts}` becomes two patterns."""
    braces = _BRACES.search(glob)
    if not braces or glob.count("{") > _MOST_BRACES:
        return [glob] if glob else []
    ends = [glob[: braces.start()] + part + glob[braces.end() :] for part in braces[1].split(",")]
    return [pattern for end in ends for pattern in expand(end)]


def _unnegated(pattern: str) -> str:
    """Return a pattern that begins with a plain character, also if that is `!`."""
    return f"\\{pattern}" if pattern.startswith(("!", "#")) else pattern

"""Translate patterns of other tools to those of gitignore: regular expressions and globs.

What cannot be said exactly is refused: a gate that looks at other files than before is no
conversion.
"""

from __future__ import annotations

import re

_ANY = "\0"  # in a pattern under way: any characters, slashes among them
_START, _END = "\1", "\2"
_MOST = 64  # patterns from one expression
_SPACE = re.compile(r"(?<!\\)(?:\s+|#[^\n]*)")
_SPECIAL = frozenset("*?[\\$")
_CLASSES = {"d": "[0-9]", "w": "[A-Za-z0-9_]", "A": _START, "Z": _END}
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAYBE, _ONE_OF = re.compile(r"\?\(([^()]*)\)"), re.compile(r"@\(([^()]*)\)")
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
    parser = _RegexParser(expression.strip())
    texts = parser.alternatives()
    if parser.rest:
        raise NoPatternError("it has an unmatched `)`")
    patterns = [pattern for text in texts for pattern in _render(_anchored(text))]
    if len(patterns) > _MOST:
        raise NoPatternError(f"it stands for more than {_MOST} patterns")
    names = {pattern.removeprefix("*/**/") for pattern in patterns if pattern[:5] == "*/**/"}
    anywhere = {name for name in names if "/" not in name and f"/{name}" in patterns}
    # `(^|/)name$`: in the root, or in any folder.
    patterns = [
        name if (name := pattern.removeprefix("*/**").removeprefix("/")) in anywhere else pattern
        for pattern in patterns
    ]
    return list(dict.fromkeys(patterns))


def from_gobwas(glob: str) -> list[str]:
    """Return patterns for a glob of lefthook, of which `*` stands for slashes, too.

    Source: github.com/gobwas/glob, called without separators. Raises: NoPatternError.
    """
    signs = {"*": ".*", "?": "[^/]", "{": "(?:", "}": ")"}
    expression, depth, in_class = "", 0, False
    for char in glob.replace("**", "*"):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if in_class or char == "[":
            expression += "^" if char == "!" and expression.endswith("[") else char
            in_class = char != "]"
        elif char == "," and depth:
            expression += "|"
        else:
            expression += signs.get(char) or re.escape(char)
    return from_regex(f"^(?:{expression})$")


def from_doublestar(glob: str) -> list[str]:
    """Return patterns for a glob of which `*` ends at a slash, and that names the whole path."""
    return [_unnegated(glob if "/" in glob else f"/{glob}") for glob in expand(glob)]


def expand(glob: str) -> list[str]:
    """Expand braces: `*.{js,ts}` becomes two patterns; so do `*.ts?(x)` and `*.@(js|ts)`."""
    glob = _ONE_OF.sub(
        lambda match: f"{{{match[1].replace('|', ',')}}}", _MAYBE.sub(r"{,\1}", glob)
    )
    braces = _BRACES.search(glob)
    if not braces or glob.count("{") > _MOST_BRACES:
        return [glob] if glob else []
    ends = [glob[: braces.start()] + part + glob[braces.end() :] for part in braces[1].split(",")]
    return [pattern for end in ends for pattern in expand(end)]


class _RegexParser:
    """Reads a regular expression, as far as its parts have a counterpart."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def alternatives(self) -> list[str]:
        texts = self._sequence()
        while self.rest[:1] == "|":
            self._take(1)
            texts += self._sequence()
        return texts

    def _sequence(self) -> list[str]:
        texts = [""]
        while self.rest and self.rest[0] not in "|)":
            parts = self._quantified(self._atom())
            if len(texts) * len(parts) > _MOST:
                raise NoPatternError(f"it stands for more than {_MOST} patterns")
            texts = [text + part for text in texts for part in parts]
        return texts

    def _take(self, count: int) -> str:
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def _atom(self) -> list[str]:
        char = self._take(1)
        if char == "(":
            if self.rest.startswith("?") and not self.rest.startswith("?:"):
                raise NoPatternError(f"a pattern has no `({self.rest[:2]}`")
            self._take(2 if self.rest.startswith("?:") else 0)
            texts = self.alternatives()
            if self._take(1) != ")":
                raise NoPatternError("it has an unmatched `(`")
            return texts
        if char == "[":
            return [self._class()]
        if char == "\\":
            return [self._escaped(self._take(1))]
        if char in "*+?{":
            raise NoPatternError(f"its `{char}` has no counterpart in a pattern")
        return [{".": "?", "^": _START, "$": _END}.get(char) or _literal(char)]

    def _class(self) -> str:
        inside, bracket, self.rest = self.rest.partition("]")
        if not bracket or not inside or "\\" in inside or (inside[0] == "^" and inside != "^/"):
            raise NoPatternError(f"`[{inside}]` has no counterpart in a pattern")
        return "[^/]" if inside == "^/" else f"[{inside}]"

    def _escaped(self, char: str) -> str:
        if char.isalnum() and char not in _CLASSES:
            raise NoPatternError(f"`\\{char}` has no counterpart in a pattern")
        return _CLASSES.get(char) or _literal(char)

    def _quantified(self, parts: list[str]) -> list[str]:
        if self.rest[:1] == "?":
            self._take(1)
            return [*parts, ""]
        if self.rest[:1] in ("*", "+"):
            many = {"?": _ANY, "[^/]": "*"}.get(parts[0]) if len(parts) == 1 else None
            sign = self._take(1)
            if many is None:
                raise NoPatternError(f"its `{sign}` has no counterpart in a pattern")
            self._take(1 if self.rest[:1] == "?" else 0)  # which asks for as little as possible
            return [many]
        return [{"[^/]": "?", "?": "."}.get(part, part) for part in parts]


def _literal(char: str) -> str:
    return f"\\{char}" if char in _SPECIAL else char


def _anchored(text: str) -> str:
    """Return a text that stands for a whole path."""
    start, end = text.startswith(_START), text.endswith(_END)
    text = text.removeprefix(_START).removesuffix(_END)
    if _START in text or _END in text:
        raise NoPatternError("it has `^` or `$` in the middle")
    return ("" if start else _ANY) + text + ("" if end else _ANY)


def _render(text: str) -> list[str]:
    """Return patterns for a text that stands for a whole path."""
    text = re.sub(r"(?<!\\)\*\*+", "*", text)  # of two, each in one name; not any folders
    text = re.sub(
        rf"(?:(?<!\\)\*)*{_ANY}(?:{_ANY}|\*)*", _ANY, text
    )  # a `*` beside it adds nothing
    if text == _ANY:
        return ["*"]
    body = re.sub(f"(?<=/){_ANY}/", "*/**/", text.strip(_ANY))
    body = re.sub(f"(?<=/){_ANY}", "**/*", body).replace(f"{_ANY}/", "*/**/")
    bodies = [body]
    while _ANY in bodies[0]:
        bodies = [each.replace(_ANY, by, 1) for each in bodies for by in ("*", "*/**/*")]
    ends = text.endswith(_ANY)
    if not ends:
        bodies = [each for each in bodies if not each.endswith("/")]  # no path ends so
    if not text.startswith(_ANY):
        bodies = [each for each in bodies if not each.startswith("/")]  # nor begins
    bodies = [each for each in bodies if "//" not in each]
    whole = (_with_start(each, text.startswith(_ANY)) + _end(each, ends=ends) for each in bodies)
    shorter = (each.replace("**/**/", "**/") for each in whole)
    # A folder at any depth is one that is there: whatever is deeper is in it.
    return [
        _unnegated(each.removesuffix("**/") if each.endswith("*/**/") else each) for each in shorter
    ]


def _unnegated(pattern: str) -> str:
    """Return a pattern that begins with a plain character, also where that is `!`."""
    return f"\\{pattern}" if pattern.startswith(("!", "#")) else pattern


def _with_start(body: str, is_open: bool, /) -> str:  # noqa: FBT001 - what it is about
    has_folder = "/" in body.rstrip("/")
    if not is_open:
        return body if has_folder else f"/{body}"
    if body.startswith("/"):
        return f"*/**{body}"
    return f"**/*{body}" if has_folder else f"*{body}"


def _end(body: str, *, ends: bool) -> str:
    return "*" if ends and not body.endswith("/") else ""

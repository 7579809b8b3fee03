"""The text of an intents file to intents and problems. Pure; cold: loads a parser of YAML or TOML.

A problem does not end the reading, so all are reported at once.
"""

from __future__ import annotations

import re

from gitgates.config.values import BadValue, did_you_mean, one_of, show
from gitgates.core.limits import parse_toml
from gitgates.core.types import PRIORITIES, Problem
from gitgates.features.intents.intent import STATUSES, Intent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Parse: TypeAlias = Callable[[object], object]
    Place: TypeAlias = tuple[str | int, ...]  # keys and indices, from the top

ROOT_KEY = "active_intents"
_SYNONYM = "name"  # of `title`, in many such files
_REQUIRED = ("id", "title", "status", "owned_scope")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LONGEST_TITLE = 200
_DEEPEST = 10
_EXAMPLE = f"For example: {ROOT_KEY}: [{{id: INT-001, title: …, status: …, owned_scope: [src/**]}}]"
_QUOTES = "A pattern that starts with `*` or `!` needs quotes."
_NO_PATTERN = re.compile(r"~|[A-Za-z]:[\\/]|//|[^/!]*\\\w")  # of a home folder, or of Windows


def parse(text: str, file: str) -> tuple[tuple[Intent, ...], tuple[Problem, ...]]:
    """Return the intents in a text, and everything that is wrong with it.

    `file` is its name, for problems; with the extension .toml it is TOML, else YAML. The intents
    are of use only where there is no problem.
    """
    reader = _Reader(file)
    try:
        document = reader.read_toml(text) if file.endswith(".toml") else reader.read_yaml(text)
    except _Unreadable as error:
        return (), (error.problem,)
    return reader.intents(document), tuple(reader.problems)


class _Unreadable(Exception):
    """The text is not valid YAML or TOML."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Reader:
    """The state of reading one file: the line of each place, and the problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Place, int] = {}
        self.problems: list[Problem] = []

    def wrong(self, place: Place, message: str, hint: str = "") -> None:
        """Note a problem at a place, or at what is nearest to it."""
        name = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
        near = next((place[:n] for n in range(len(place), -1, -1) if place[:n] in self.lines), None)
        location = self.file if near is None else f"{self.file}:{self.lines[near]}"
        location += f": {name[1:]}" if name else ""
        self.problems.append(Problem(location, message, hint))

    def read_yaml(self, text: str) -> Any:  # noqa: ANN401 - any YAML
        """Return the document as texts, lists and dicts; None if there is none."""
        try:
            from gitgates.core import yaml_load
        except ModuleNotFoundError:
            # A hook of git runs with -S, and next to an editable installation is no PyYAML.
            import site

            site.main()
            from gitgates.core import yaml_load

        try:
            node = yaml_load.load_nodes(text)
        except ValueError as error:
            what = str(error).replace(' in "<unicode string>",', " at")
            if "scanning a tag" in what or "scanning an alias" in what:
                what += f". {_QUOTES}"
            raise self._unreadable(f"is not valid YAML: {what}") from error
        return None if node is None else self._flatten(node, ())

    def _unreadable(self, message: str) -> _Unreadable:
        line = re.search(r"line (\d+)", message)
        return _Unreadable(Problem(f"{self.file}:{line[1]}" if line else self.file, message))

    def _flatten(self, node: Any, place: Place) -> Any:  # noqa: ANN401 - PyYAML has no types
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(place) > _DEEPEST:  # which aliases can be where the text is not
            raise self._unreadable(f"is nested more than {_DEEPEST} deep")
        if node.id == "scalar":
            return node.value
        if node.id == "sequence":
            return [self._flatten(child, (*place, at)) for at, child in enumerate(node.value)]
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            name = key.value if key.id == "scalar" else "?"
            if name in mapping:
                self.lines[*place, name] = key.start_mark.line + 1
                self.wrong((*place, name), "is defined twice", "Keep only one.")
            self.lines[*place, name] = key.start_mark.line + 1
            mapping[name] = self._flatten(value, (*place, name))
        return mapping

    def read_toml(self, text: str) -> Any:  # noqa: ANN401 - any TOML
        """Return the document. tomllib reports no lines, so headers and keys are searched for."""
        try:
            document = parse_toml(text)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(f"is not valid TOML: {error}") from error
        self.lines[()] = 1
        count = 0
        place: Place = ()
        for at, line in enumerate(text.split("\n"), 1):
            if re.match(rf"\s*\[\[\s*{ROOT_KEY}\s*\]\]", line):
                place, count = (ROOT_KEY, count), count + 1
                self.lines[place] = at
            elif match := re.match(r"\s*\[*\s*([\w-]+)\s*[]=]", line):
                self.lines.setdefault((*place, match[1]), at)
        return document

    def intents(self, document: object) -> tuple[Intent, ...]:
        """Return the intents of a document."""
        if document in (None, "", {}):
            return ()
        if not isinstance(document, dict):
            what = f"got {show(document)}, expected a table with the key `{ROOT_KEY}`"
            self.wrong((), what, _EXAMPLE)
            return ()
        for key in document:
            if key != ROOT_KEY:
                self._unknown((key,), (ROOT_KEY,))
        rows = document.get(ROOT_KEY, [])
        if not isinstance(rows, list):
            if rows != "":  # a YAML key without a value
                self.wrong((ROOT_KEY,), f"got {show(rows)}, expected a list of intents", _EXAMPLE)
            return ()
        intents = [self._intent((ROOT_KEY, at), row) for at, row in enumerate(rows)]
        self._refuse_same_ids(intents)
        return tuple(intents)

    def _unknown(self, place: Place, known_keys: tuple[str, ...]) -> None:
        key = str(place[-1])
        if not key.startswith("x-"):  # which are for others, as in OpenAPI and Compose
            hint = (
                did_you_mean(key, known_keys)
                or f"Known: {', '.join(known_keys)}; custom keys start with `x-`."
            )
            self.wrong(place, "is not a known key", hint)

    def _refuse_same_ids(self, intents: list[Intent]) -> None:
        first: dict[str, int] = {}
        for at, name in enumerate(intent.id for intent in intents):
            before = first.setdefault(name.casefold(), at)
            if before != at and name:
                line = self.lines.get((ROOT_KEY, before, "id"), 0)
                position = f"in line {line}" if line else f"as number {before + 1}"
                message = f"got {show(name)}, which is the id of another intent {position}"
                self.wrong((ROOT_KEY, at, "id"), message, "Give each intent a unique id.")

    def _intent(self, place: Place, row: object) -> Intent:
        if not isinstance(row, dict):
            self.wrong(place, f"got {show(row)}, expected a table with {', '.join(_REQUIRED)}")
            return _NOTHING
        if _SYNONYM in row and "title" not in row:
            row = {"title" if key == _SYNONYM else key: value for key, value in row.items()}
            if line := self.lines.get((*place, _SYNONYM)):
                self.lines[*place, "title"] = line
        fields: dict[str, Any] = dict.fromkeys(_REQUIRED, "")
        for key in _REQUIRED:
            if key not in row:
                self.wrong(place, f"has no `{key}`")
        for key, value in row.items():
            if key in _LISTS:
                fields[key] = self._list((*place, key), value, _LISTS[key])
            elif key in _TEXTS:
                fields[key] = self._read((*place, key), value, _TEXTS[key])
            else:
                self._unknown((*place, key), Intent._fields)
        return Intent(**fields)

    def _list(self, place: Place, value: object, parse: Parse) -> tuple[Any, ...]:
        entries = [] if value == "" else value  # a YAML key without a value
        if not isinstance(entries, list):
            self.wrong(place, f"got {show(value)}, expected a list of strings")
            return ()
        if parse is _pattern and all(str(entry).startswith("!") for entry in entries):
            self.wrong(place, f"got {show(value)}, expected at least one pattern such as src/**")
        return tuple(self._read((*place, at), entry, parse) for at, entry in enumerate(entries))

    def _read(self, place: Place, value: object, parse: Parse) -> object:
        try:
            return parse(value)
        except BadValue as bad:
            self.wrong(place, f"got {show(value)}, expected {bad.expected}", bad.hint)
            return ""


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    is_split = isinstance(value, dict) and len(value) == 1
    raise BadValue("a text", "A string that contains `: ` needs quotes." if is_split else "")


def _filled(value: object) -> str:
    if not (text := _text(value)).strip():
        raise BadValue("a text that is not empty")
    return text


def _title(value: object) -> str:
    text = _text(value).strip()
    if not (text.isprintable() and 0 < len(text) <= _LONGEST_TITLE):
        raise BadValue(f"one line of 1 to {_LONGEST_TITLE} characters")
    return text


def _id(value: object) -> str:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise BadValue("at most 64 letters, digits, `-`, `_` and `.`, such as INT-001")


def _status(value: object) -> object:
    return one_of(*STATUSES).parse(value.upper() if isinstance(value, str) else value)


def _pattern(value: object) -> str:
    if not (text := _text(value)):  # YAML takes `!src/x` for a tag, with nothing behind it
        raise BadValue("a pattern such as src/**", _QUOTES)
    if why := wrong_pattern(text):
        raise BadValue(why)
    return text


# key → what reads its value, or each entry of it
_TEXTS: dict[str, Parse] = {
    "id": _id,
    "title": _title,
    "status": _status,
    "priority": one_of(*PRIORITIES).parse,
    "notes": _text,
}
_NOTHING = Intent(id="", title="", status="", owned_scope=())
_LISTS: dict[str, Parse] = {
    "owned_scope": _pattern,
    "constraints": _filled,
    "acceptance_criteria": _filled,
}


def wrong_pattern(pattern: str) -> str:
    """Return what was expected instead of a pattern of a scope; empty if it can be one."""
    body = pattern.removeprefix("!")
    parts = body.strip("/").split("/")
    if not body.strip("/") or not body.isprintable() or body != body.strip():
        return "a pattern such as src/** on one line, without spaces around it"
    if _NO_PATTERN.match(body):
        return "a path relative to the root of the repository, its folders separated by /"
    if ".." in parts or "." in parts or "" in parts:
        return "a path relative to the root, without `.`, `..` and empty names"
    if parts[0].casefold() == ".git" and body == pattern:
        return "a path of the working tree: nothing in .git can be in a scope"
    if body.startswith("/") and len(parts) > 1:
        # In gitignore(5), too, it would mean the root of the repository. Nobody who writes
        # /etc/passwd means that.
        return f"a path relative to the root of the repository, such as {body[1:]}"
    return ""

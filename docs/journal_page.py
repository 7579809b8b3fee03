"""The page about the entries of a session's journal, generated from their records."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path

from markdown_page import page, table

import gitgates
from gitgates.core.parts import feature_parts
from gitgates.journal.journal import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PACKAGE = Path(gitgates.__file__).parent
_FIELD = re.compile(r"^    (\w+): [^#]*?(?:#\s*(.*))?$")
_TYPES = {"str": "string", "bool": "true or false", "int": "number", "float": "number"}
# A constructor of its own.
_BUILT_BY = {"RoundEntry": r"\.round\("}


def journal_page() -> str:
    """Return the text of the page."""
    features = {module.__name__: module for module in feature_parts("facts")}
    groups = {"gitgates.journal.entries": "The session", **dict.fromkeys(features, "")}
    parts = []
    for module, title in groups.items():
        name = module.split(".")[-2]
        parts += [f"## {title or f'The feature {name}'}", f"Declared in `{_file_of(module)}`."]
        kinds = [kind for kind in KINDS if kind.__module__ == module]
        parts += [text for kind in kinds for text in _kind(kind)]
    return page(
        "The journal of a session",
        "`facts.py` of the session and of each feature",
        "An agent's session has a journal in each worktree that it works in: "
        "`.git/gitgates/sessions/ID.jsonl`. It is append-only, with one JSON object per line. "
        "[How it is used](../how-to/agent-hooks.md#errors).",
        "Each entry has its kind in `what`, and the time in `t`, in seconds since 1970. Fields "
        "with their default value are left out. Entries of an unknown kind, such as those of "
        "another version, and damaged ones are kept and ignored; the agent's debug log has their "
        "number.",
        *parts,
    )


def _kind(kind: Any) -> Iterator[str]:  # noqa: ANN401 - a lazy record
    record = kind.record
    yield f"### `{KINDS[kind]}`"
    writers = ", ".join(f"`{file}`" for file in _writers(record.__name__))
    yield f"{inspect.cleandoc(record.__doc__ or '')} Written by {writers}."
    rows = [
        (f"`{name}`", _type(annotation), _default(record, name), meanings_of(record)[name])
        for name, annotation in record.__annotations__.items()
    ]
    if rows:
        yield table(("field", "type", "default", "meaning"), rows)


def meanings_of(record: type[Any]) -> dict[str, str]:
    """Return the meanings of the fields of a record: the comments beside them."""
    lines = map(_FIELD.match, inspect.getsource(record).splitlines())
    return {found[1]: found[2] or "" for found in lines if found}


def _type(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    if plain in _TYPES:
        return _TYPES[plain]
    return "object" if plain.startswith("Mapping") else "list"


def _default(record: type[Any], name: str) -> str:
    if name not in record._field_defaults:
        return "always set"
    default = record._field_defaults[name]
    words = {None: "unknown", "": "empty", (): "empty", False: "false"}
    return "0" if isinstance(default, float) else words[default]


def _writers(name: str) -> list[str]:
    pattern = _BUILT_BY.get(name)
    built = re.compile(pattern or rf"\b{name}\(|note\([^()]*\b{name}\b")
    return [
        file
        for file, text in _texts().items()
        if (pattern or name in text) and built.search(text)  # the former is a hundred times faster
    ]


@functools.cache
def _texts() -> dict[str, str]:
    files = (path for path in sorted(_PACKAGE.rglob("*.py")) if path.name != "facts.py")
    return {str(path.relative_to(_PACKAGE)): path.read_text("utf-8") for path in files}


def _file_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"

"""Add gates and hooks to a project's configuration; every other byte of the file stays.

A gate or hook with the same name but another definition is left alone, and reported. tomlkit
appends missing entries to a hook's list; new tables go to the end, as it might put them between a
comment and its subject. The new text must be the old one with insertions, and is read back. Cold.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gitgates.config import LOCAL_FILE, OWN_FILE, PREFIXES, PYPROJECT, load
from gitgates.config.keys import HOOK_KEYS
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.clean import counted, visible
from gitgates.core.errors import ConfigError
from gitgates.core.limits import parse_toml
from gitgates.core.record import Record
from gitgates.core.types import Config, Problem

if TYPE_CHECKING:
    from gitgates.config.sources import Raw

Tables: TypeAlias = Mapping[str, Mapping[str, object]]  # name → key → value, as they are written


class Addition(Record):
    """The gates, hooks and other tables that the configuration should have."""

    gates: Tables
    hooks: Tables
    others: Tables = {}  # top-level tables
    comments: tuple[str, ...] = ()  # lines above the first table that is added
    remarks: Mapping[str, str] = {}  # key → a comment after it


class Edit(Record):
    """A new text of a settings file, and what it changes."""

    file: str
    before: bytes | None = None  # None: the file does not exist yet
    after: bytes = b""
    gates: tuple[str, ...] = ()  # added
    hooks: tuple[str, ...] = ()  # added
    others: tuple[str, ...] = ()  # other tables that were added
    extended: tuple[tuple[str, tuple[str, ...]], ...] = ()  # hook, the gates appended to its list
    conflicts: tuple[str, ...] = ()  # locations of other values, which stay
    problems: tuple[Problem, ...] = ()  # of the new configuration; only deferred ones

    @property
    def adds(self) -> bool:
        """Return whether it changes anything."""
        return bool(self.gates or self.hooks or self.others or self.extended)


def make_edit(raw: Raw, addition: Addition) -> Edit:
    """Return the edit that makes an addition to the settings.

    Raises: ConfigError if the configuration has problems, or would have, or if nothing can be
    inserted into the file.
    """
    edit = _compare(read_shared(raw), addition, shared_file(raw))
    return with_text(edit, raw, _write(text_of(raw, edit.file), edit, addition))


def shared_file(raw: Raw) -> str:
    """Return the file that contains the settings, or would."""
    is_other = raw.get(OWN_FILE) is None and raw.get(PYPROJECT) is not None
    return PYPROJECT if is_other else OWN_FILE


def read_shared(raw: Raw) -> Config:
    """Return the configuration without the local file; it may be empty.

    Raises: ConfigError if they have problems that are not deferred.
    """
    current, problems = load.parse_files({**raw, LOCAL_FILE: None})
    load.refuse(problems, "Fix it first. To check it: gitgates check")
    return current or Config()


def text_of(raw: Raw, file: str) -> str:
    """Return a settings file's text; CRLF becomes LF if every line ends with it."""
    content = raw.get(file) or b""
    return content.decode().replace(_line_end(content), "\n")


def with_text(edit: Edit, raw: Raw, text: str) -> Edit:
    """Return an edit with its new text. Raises: ConfigError if that has problems."""
    before = raw.get(edit.file)
    after = text.replace("\n", _line_end(before or b"")).encode()
    _, problems = load.parse_files({**raw, edit.file: after})
    load.refuse(problems, f"Nothing was written to {edit.file}.")
    return edit._replace(before=before, after=after, problems=problems)


def _line_end(content: bytes) -> str:
    return "\r\n" if 0 < content.count(b"\r\n") == content.count(b"\n") else "\n"


def _compare(current: Config, addition: Addition, file: str) -> Edit:
    """Find missing parts and conflicts, by parsed values."""
    tables = {"gates": addition.gates, "hooks": addition.hooks, **addition.others}
    document = Document(file, PREFIXES[file], tables)
    added, problems = parse((document,))
    load.refuse(problems, "Nothing was written.")
    gates = {gate.name: gate for gate in current.gates}
    hooks = {hook.name: hook for hook in current.hooks}
    conflicts = [
        document.location("gates", g.name) for g in added.gates if gates.get(g.name, g) != g
    ]
    extended = []
    for hook in added.hooks:
        existing = hooks.get(hook.name, hook)
        conflicts += [
            document.location("hooks", hook.name, key.name)
            for key in HOOK_KEYS
            if key.name != "gates" and getattr(existing, key.field) != getattr(hook, key.field)
        ]
        if missing := tuple(name for name in hook.gates if name not in existing.gates):
            extended.append((hook.name, missing))
    return Edit(
        file=file,
        gates=tuple(gate.name for gate in added.gates if gate.name not in gates),
        hooks=tuple(hook.name for hook in added.hooks if hook.name not in hooks),
        others=tuple(name for name in addition.others if name not in current.tuned),
        extended=tuple(extended),
        conflicts=tuple(conflicts),
    )


def _write(old: str, edit: Edit, addition: Addition) -> str:
    """Return a settings file with an addition. Raises: ConfigError if it cannot be inserted."""
    new, expected = old, parse_toml(old)
    prefix = PREFIXES[edit.file]
    blocks: list[str] = []
    for section in ("gates", "hooks"):
        if tables := {name: getattr(addition, section)[name] for name in getattr(edit, section)}:
            comments = "" if blocks else "".join(f"# {line}\n" for line in addition.comments)
            text = to_toml((*prefix, section), tables, addition.remarks)
            blocks.append(comments + text)
            at(expected, (*prefix, section)).update(tables)
    for name in edit.others:
        blocks.append(to_toml((*prefix, name), addition.others[name]))
        at(expected, prefix)[name] = addition.others[name]
    lists = {(*prefix, "hooks", hook): gates for hook, gates in edit.extended}
    for path, gates in lists.items():
        at(expected, path).setdefault("gates", []).extend(gates)
    with suppress(TOMLKitError, ValueError, LookupError, TypeError, AttributeError):
        for path, gates in lists.items():
            document = tomlkit.parse(new)
            added = tomlkit.parse(to_toml(("gates",), gates))["gates"]
            at(document, path).setdefault("gates", []).extend(added)
            new = document.as_string()
        new = append(new, *blocks)
        if _is_kept(old, new) and as_json(parse_toml(new)) == as_json(expected):
            return new
    blocks += [to_toml(path, {"gates": at(expected, path)["gates"]}) for path in lists]
    raise ConfigError(
        f"{edit.file}: nothing can be added without rewriting its inline tables",
        "Use [headers] and run this again, or add by hand:\n\n" + "\n".join(blocks),
    )


def _is_kept(old: str, new: str) -> bool:
    """Return whether `new` is `old` with insertions, and keeps the order of its headers."""
    headers = [[line for line in text.split("\n") if line[:1] == "["] for text in (old, new)]
    return _is_within(old, new) and _is_within(*headers)


def _is_within(parts: Sequence[str], other: Sequence[str]) -> bool:
    rest = iter(other)
    return all(part in rest for part in parts)


def at(node: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - of tomllib or tomlkit
    """Return the table at a path; missing ones are created."""
    for name in path:
        node = node.setdefault(name, {})
    return node


def as_json(tables: object) -> str:
    """Return tables as text, in which 1 differs from true, and nan equals nan."""
    return json.dumps(tables, sort_keys=True, default=repr)


def append(text: str, *blocks: str) -> str:
    """Append blocks of lines, with an empty line before each."""
    for block in blocks:
        gap = "\n\n"[len(text) - len(text.rstrip("\n")) :] if text else ""
        text += gap + block
    return text


def to_toml(path: tuple[str, ...], value: object, remarks: Mapping[str, str] | None = None) -> str:
    """Return the text of a value at a path. `remarks`: key → a comment after it."""
    document: dict[str, Any] = {}
    at(document, path[:-1])[path[-1]] = _readable(value, remarks or {})
    # Invisible characters are escaped for readers of the file; the value is the same.
    text = tomlkit.dumps(document)
    return "".join(char if visible(char) == char else f"\\U{ord(char):08x}" for char in text)


def _readable(value: object, remarks: Mapping[str, str]) -> object:
    """Return a value with comments; text that contains double quotes is in single ones."""
    if isinstance(value, Mapping):
        entries = {name: _readable(entry, remarks) for name, entry in value.items()}
        for name in entries.keys() & remarks.keys():
            entries[name] = tomlkit.item(entries[name]).comment(remarks[name])
        return entries
    if isinstance(value, list | tuple):
        return [_readable(entry, remarks) for entry in value]
    if isinstance(value, str) and value.isprintable() and "'" not in value and {*value} & {*'"\\'}:
        return tomlkit.string(value, literal=True)
    if isinstance(value, str) and "\n" in value.strip():
        return tomlkit.string(value, multiline=True)
    return value


def difference(edit: Edit) -> bytes:
    """Return an edit as a unified diff that `git apply` takes; empty if nothing changes."""
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        (edit.before or b"").splitlines(keepends=True),
        edit.after.splitlines(keepends=True),
        b"/dev/null" if edit.before is None else b"a/" + edit.file.encode(),
        b"b/" + edit.file.encode(),
    )
    no_newline = b"\n\\ No newline at end of file\n"
    return b"".join(line if line.endswith(b"\n") else line + no_newline for line in lines)


def summary(edit: Edit) -> str:
    """Return what an edit adds, on one line."""
    added = (("gate", edit.gates), ("hook", edit.hooks), ("table", edit.others))
    parts = [f"added {counted(len(new), noun)}: {', '.join(new)}" for noun, new in added if new]
    parts += [f"added to {hook}: {', '.join(gates)}" for hook, gates in edit.extended]
    return "; ".join(parts)

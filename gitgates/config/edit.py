"""Add gates and hooks to a project's configuration; every other byte of the file stays.

What is there is never changed: a gate or hook of the same name and another definition is left, and
named; a hook's list gets the gates that it lacks. New tables are blocks of text beside ours, or at
the end; tomlkit extends the lists. The new text is then read back, and refused unless every
character of the old one is in it, in its order, and it means the old one and the addition. Cold.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import tomlkit
import tomlkit.exceptions

from gitgates.clean import counted, visible
from gitgates.config import load
from gitgates.config.keys import HOOK_KEYS
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.errors import ConfigError
from gitgates.record import Record
from gitgates.store.files import link_out, replace_file
from gitgates.types import Config, Problem

# name → key → value, as they are written
Tables: TypeAlias = Mapping[str, Mapping[str, object]]

PREFIXES: dict[str, tuple[str, ...]] = {
    load.PYPROJECT: ("tool", "gitgates"),
    load.OWN_FILE: (),
    load.LOCAL_FILE: (),
}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
HEADER = re.compile(r"^[ \t]*\[.*\n?", re.MULTILINE)
_TAIL = re.compile(r"^(?:[ \t\r]*(?:#.*)?\n)*\Z", re.MULTILINE)  # comments and empty lines
_COMMENTS = re.compile(r"(?:[ \t]*#.*\n)*")


class Addition(Record):
    """The gates and hooks that the configuration should have."""

    gates: Tables
    hooks: Tables
    comments: tuple[str, ...] = ()  # lines above the first table that is added


class Edit(Record):
    """A new text of a settings file, and what it changes."""

    file: str
    before: bytes | None  # None: there is no such file yet
    after: bytes
    gates: tuple[str, ...]  # added
    hooks: tuple[str, ...]  # added
    extended: tuple[tuple[str, tuple[str, ...]], ...]  # hook, the gates appended to its list
    kept: tuple[str, ...]  # places that say something else than was wanted, and were left
    problems: tuple[Problem, ...]  # deferred ones of the new configuration

    @property
    def adds(self) -> bool:
        """Return whether it changes anything."""
        return bool(self.gates or self.hooks or self.extended)


def make_edit(raw: tuple[bytes | None, ...], addition: Addition) -> Edit:
    """Return the edit that gives the files `raw` (as `load.read_files` returns them) an addition.

    Raises: ConfigError where the configuration has problems, or would have, or where the file is
    written so that nothing can be added to it.
    """
    current = read_shared(raw)
    file = shared_file(raw)
    before = raw[load.FILES.index(file)]
    edit = _compare(current, addition, Document(file, PREFIXES[file], {}))
    after = _write((before or b"").decode(), edit, addition).encode()
    new = tuple(after if name == file else old for name, old in zip(load.FILES, raw, strict=True))
    _, problems = load.parse_files(new)
    refuse_problems(problems, f"Nothing was written to {file}.")
    return edit._replace(before=before, after=after, problems=problems)


def shared_file(raw: tuple[bytes | None, ...]) -> str:
    """Return the file that the settings stand in, or would."""
    return load.PYPROJECT if raw[1] is None and raw[0] is not None else load.OWN_FILE


def read_shared(raw: tuple[bytes | None, ...]) -> Config:
    """Return what the files say without the local one; nothing is a configuration, too.

    Raises: ConfigError where they have problems that are not deferred.
    """
    current, problems = load.parse_files((*raw[:2], None))
    refuse_problems(problems, "Mend that first. Check it with: gitgates check")
    return current or Config()


def refuse_problems(problems: tuple[Problem, ...], hint: str) -> None:
    """Raise ConfigError with the problems that are not deferred, if any."""
    fatal = [problem for problem in problems if not problem.deferred]
    if fatal:
        raise ConfigError(load.describe(fatal), hint)


def _compare(current: Config, addition: Addition, document: Document) -> Edit:
    """Find missing parts and conflicts, by parsed values."""
    tables = {"gates": addition.gates, "hooks": addition.hooks}
    wanted, problems = parse((document._replace(table=tables),))
    refuse_problems(problems, "Nothing was written.")
    gates = {gate.name: gate for gate in current.gates}
    hooks = {hook.name: hook for hook in current.hooks}
    kept = [
        document.where("gates", gate.name)
        for gate in wanted.gates
        if gates.get(gate.name, gate) != gate
    ]
    extended = []
    for hook in wanted.hooks:
        there = hooks.get(hook.name, hook)
        kept += [
            document.where("hooks", hook.name, key.name)
            for key in HOOK_KEYS
            if key.name != "gates" and getattr(there, key.field) != getattr(hook, key.field)
        ]
        if missing := tuple(name for name in hook.gates if name not in there.gates):
            extended.append((hook.name, missing))
    return Edit(
        file=document.source,
        before=None,
        after=b"",
        gates=tuple(gate.name for gate in wanted.gates if gate.name not in gates),
        hooks=tuple(hook.name for hook in wanted.hooks if hook.name not in hooks),
        extended=tuple(extended),
        kept=tuple(kept),
        problems=(),
    )


def _write(old: str, edit: Edit, addition: Addition) -> str:
    """Return a settings file with an addition. Raises: ConfigError where it finds no place."""
    prefix = PREFIXES[edit.file]
    blocks = dict(_blocks(edit, addition))
    expected: Any = tomllib.loads(old)
    for path in blocks:
        at(expected, path[:-1], make=True)[path[-1]] = getattr(addition, path[-2])[path[-1]]
    for hook, missing in edit.extended:
        at(expected, (*prefix, "hooks", hook)).setdefault("gates", []).extend(missing)
    for beside in (True, False):  # what looks like a header may be a line of some text
        new = old
        for path, block in blocks.items():
            new = insert(new, position(new, path) if beside else len(new), block)
        try:
            new = _extend(new, prefix, edit.extended)
            found = tomllib.loads(new)
        except (tomlkit.exceptions.TOMLKitError, ValueError, AttributeError, KeyError, TypeError):
            continue
        rest = iter(new)
        if all(char in rest for char in old) and as_json(found) == as_json(expected):
            return new
    by_hand = [block for _path, block in _blocks(edit, addition)] + [
        f"# add to [{'.'.join((*prefix, 'hooks', hook))}]: {', '.join(missing)}\n"
        for hook, missing in edit.extended
    ]
    raise ConfigError(
        f"{edit.file}: its tables are written so that nothing can be added without rewriting them",
        "Write them with [headers] and run this again, or add by hand:\n\n" + "\n".join(by_hand),
    )


def as_json(tables: object) -> str:
    """Return tables as text, for a comparison."""
    # Unlike `==`, this tells 1 from true, and finds nan equal to nan.
    return json.dumps(tables, sort_keys=True, default=repr)


def at(node: Any, path: tuple[str, ...], *, make: bool = False) -> Any:  # noqa: ANN401 - of tomllib or tomlkit
    """Return what is at a path. `make`: tables that are missing."""
    for name in path:
        node = node.setdefault(name, {}) if make else node[name]
    return node


def _blocks(edit: Edit, addition: Addition) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path and the text of each new table."""
    comments = "".join(f"# {line}\n" for line in addition.comments)
    for section in ("gates", "hooks"):
        for name in getattr(edit, section):
            path = (*PREFIXES[edit.file], section, name)
            keys = getattr(addition, section)[name].items()
            lines = "".join(f"{_key(key)} = {to_toml(value)}\n" for key, value in keys)
            yield path, f"{comments}[{'.'.join(map(_key, path))}]\n{lines}"
            comments = ""


def position(text: str, path: tuple[str, ...]) -> int:
    """Return where a table belongs: behind those of the same kind, else behind ours, else last."""
    best = (0, len(text))
    for start, end in pairwise([*(match.start() for match in HEADER.finditer(text)), len(text)]):
        found = path_of(text[start:end])
        shared = next((n for n in (len(path) - 1, len(path) - 2) if found[:n] == path[:n]), 0)
        if shared >= max(best[0], 1):
            best = (shared, start + content_length(text[start:end], is_last=end == len(text)))
    return best[1]


def path_of(section: str) -> tuple[str, ...]:
    """Return the path in the header of a section; empty for what only looks like one."""
    try:
        node: Any = tomllib.loads(section.partition("\n")[0].rstrip("\r"))
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while node := node[-1] if isinstance(node, list) else node:
        name, node = next(iter(node.items()))
        path.append(name)
    return tuple(path)


def content_length(section: str, *, is_last: bool) -> int:
    """Return the length of a section without trailing blank lines, comments included.

    Comments that lead over to the next header do not belong to it.
    """
    tail = _TAIL.search(section)
    rest = tail.group() if tail else ""
    below = _COMMENTS.match(rest)
    comments = below.group() if below else ""
    is_own = is_last or comments != rest
    return len(section) - len(rest) + (len(comments) if is_own else 0)


def insert(text: str, position: int, block: str) -> str:
    """Insert a block, with an empty line before and behind it."""
    before, behind = text[:position], text[position:]
    gap = "" if not before or before.endswith(("\n\n", "\n\r\n")) else "\n"
    gap += "" if not before or before.endswith("\n") else "\n"
    gap_behind = "\n" if behind and not behind.startswith(("\n", "\r\n")) else ""
    line_end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    return before + f"{gap}{block}{gap_behind}".replace("\n", line_end) + behind


def _extend(
    text: str, prefix: tuple[str, ...], extended: tuple[tuple[str, tuple[str, ...]], ...]
) -> str:
    """Append gates to the lists of hooks, as tomlkit lays them out."""
    if not extended:
        return text
    document = tomlkit.parse(text)
    for hook, missing in extended:
        table = at(document, (*prefix, "hooks", hook))
        if "gates" not in table:
            table.add("gates", tomlkit.array())
        for gate in missing:
            table["gates"].append(tomlkit.value(_text(gate)))
    return document.as_string()


def to_toml(value: object) -> str:
    """Return a value on one line; a table becomes an inline one."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {to_toml(one)}" for name, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return _text(value) if isinstance(value, str) else str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # A command full of double quotes is easier to read between single ones.
    literal = ('"' in value or "\\" in value) and "'" not in value and value.isprintable()
    text = str(tomlkit.string(value, literal=literal).as_string())
    # What nobody sees is shown to who reads the file; it says the same.
    return "".join(char if visible(char) == char else f"\\U{ord(char):08x}" for char in text)


def save(root_abs: str, edit: Edit) -> None:
    """Write an edit to its file. Its mode stays; a symbolic link stays and its target changes.

    Raises: ConfigError where the file cannot be written, or is not what it was any more.
    """
    path_abs = os.path.join(root_abs, edit.file)
    if link := link_out(path_abs, root_abs):
        raise ConfigError(
            f"{link}, which is no file of this repository: nothing was written",
            "Put a file of the repository in its place, and do the same again.",
        )
    path_abs = os.path.realpath(path_abs)
    try:
        if _read_to_replace(path_abs) != edit.before:
            raise ConfigError(
                f"{edit.file}: was changed by somebody else meanwhile; nothing was written",
                "Run the command again.",
            )
        replace_file(path_abs, edit.after, mode=None)
    except OSError as error:
        raise ConfigError(
            f"{edit.file}: cannot be written: {error.strerror or error}",
            f"Look at it with: ls -ld {path_abs}",
        ) from error


def _read_to_replace(path_abs: str) -> bytes | None:
    """Return the content of a writable file; None if there is none.

    A read-only file is meant so, and replacing it would need only the folder's permission.
    """
    try:
        with open(path_abs, "rb+") as file:
            return file.read()
    except FileNotFoundError:
        return None


def difference(edit: Edit) -> bytes:
    """Return an edit as a unified diff that `git apply` takes; empty if nothing changes."""
    found = difflib.diff_bytes(
        difflib.unified_diff,
        (edit.before or b"").splitlines(keepends=True),
        edit.after.splitlines(keepends=True),
        b"/dev/null" if edit.before is None else b"a/" + edit.file.encode(),
        b"b/" + edit.file.encode(),
    )
    return b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        for line in found
    )


def summary(edit: Edit) -> str:
    """Return what an edit adds, on one line."""
    parts = []
    if edit.gates:
        parts.append(f"added {counted(len(edit.gates), 'gate')}: {', '.join(edit.gates)}")
    if edit.hooks:
        parts.append(f"added {counted(len(edit.hooks), 'hook')}: {', '.join(edit.hooks)}")
    parts += [f"added to {hook}: {', '.join(gates)}" for hook, gates in edit.extended]
    return "; ".join(parts)

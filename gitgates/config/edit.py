"""Add gates and hooks to a project's configuration; every other byte of the file stays.

What is there is never changed: a gate or hook of the same name and another definition is left, and
named; a hook's list gets the gates that it lacks. Cold: loads tomlkit.
"""

from __future__ import annotations

import difflib
import os
import tomllib

from gitgates.config import load
from gitgates.config.document import Document
from gitgates.config.insert import CannotInsert, extend, insert, render_table
from gitgates.config.keys import HOOK_KEYS
from gitgates.config.parse import parse
from gitgates.errors import ConfigError
from gitgates.record import Record
from gitgates.store.files import link_out, replace_file
from gitgates.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    from gitgates.types import Problem

    # name → key → value, as they are written
    Tables: TypeAlias = Mapping[str, Mapping[str, object]]

_PREFIXES = {load.PYPROJECT: ("tool", "gitgates"), load.OWN_FILE: ()}


class Addition(Record):
    """The gates and hooks that the configuration should have."""

    gates: Tables
    hooks: Tables
    comments: tuple[str, ...] = ()  # lines above the first table that is added


class Edit(Record):
    """What is to be written, and what it changes."""

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
    file = load.PYPROJECT if raw[1] is None and raw[0] is not None else load.OWN_FILE
    before = raw[load.FILES.index(file)]
    edit = _compare(current, addition, Document(file, _PREFIXES[file], {}))
    after = _write(edit._replace(before=before), addition)
    new = tuple(after if name == file else old for name, old in zip(load.FILES, raw, strict=True))
    _, problems = load.parse_files(new)
    _refuse_problems(problems, f"Nothing was written to {file}.")
    return edit._replace(before=before, after=after, problems=problems)


def read_shared(raw: tuple[bytes | None, ...]) -> Config:
    """Return what the files say without the local one; nothing is a configuration, too.

    Raises: ConfigError where they have problems that are not deferred.
    """
    current, problems = load.parse_files((*raw[:2], None))
    _refuse_problems(problems, "Mend that first. Check it with: gitgates check")
    return current or Config()


def _refuse_problems(problems: tuple[Problem, ...], hint: str) -> None:
    fatal = [problem for problem in problems if not problem.deferred]
    if fatal:
        raise ConfigError(load.describe(fatal), hint)


def _compare(current: Config, addition: Addition, document: Document) -> Edit:
    """Find what is missing and what stands in the way, by meaning and not by spelling."""
    tables = {"gates": addition.gates, "hooks": addition.hooks}
    wanted, problems = parse((document._replace(table=tables),))
    _refuse_problems(problems, "Nothing was written.")
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


def _write(edit: Edit, addition: Addition) -> bytes:
    prefix = _PREFIXES[edit.file]
    text = (edit.before or b"").decode("utf-8")
    comments = addition.comments
    try:
        for section, name, table in _new_tables(edit, addition):
            text = insert(text, (*prefix, section, name), table, comments)
            comments = ()
        for hook, missing in edit.extended:
            path = (*prefix, "hooks", hook, "gates")
            has_list = _has(text, path)
            text = extend(text, path, missing) if has_list else insert(text, path, list(missing))
    except CannotInsert:
        raise _by_hand(edit, addition) from None
    return text.encode("utf-8")


def _new_tables(edit: Edit, addition: Addition) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    yield from (("gates", name, addition.gates[name]) for name in edit.gates)
    yield from (("hooks", name, addition.hooks[name]) for name in edit.hooks)


def _has(text: str, path: tuple[str, ...]) -> bool:
    node: object = tomllib.loads(text)
    for name in path:
        if not isinstance(node, dict) or name not in node:
            return False
        node = node[name]
    return True


def _by_hand(edit: Edit, addition: Addition) -> ConfigError:
    """Return the refusal of an edit, with what to add by hand."""
    prefix = _PREFIXES[edit.file]
    tables = _new_tables(edit, addition)
    blocks = [render_table((*prefix, section, name), table) for section, name, table in tables]
    blocks += [
        f"# add to [{'.'.join((*prefix, 'hooks', hook))}]: {', '.join(missing)}\n"
        for hook, missing in edit.extended
    ]
    return ConfigError(
        f"{edit.file}: its tables are written so that nothing can be added without rewriting them",
        "Write them with [headers] and run this again, or add by hand:\n\n" + "\n".join(blocks),
    )


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
    """Return the content of a file that may be written; None if there is none.

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
        _lines(edit.before or b""),
        _lines(edit.after),
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
        parts.append(f"added {_count(len(edit.gates), 'gate')}: {', '.join(edit.gates)}")
    if edit.hooks:
        parts.append(f"added {_count(len(edit.hooks), 'hook')}: {', '.join(edit.hooks)}")
    parts += [f"added to {hook}: {', '.join(gates)}" for hook, gates in edit.extended]
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _lines(content: bytes) -> list[bytes]:
    # bytes.splitlines would cut at a lone carriage return, too.
    lines = content.split(b"\n")
    return [*(line + b"\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]

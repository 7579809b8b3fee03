"""How a verb shows an edit of the configuration, and makes it."""

from __future__ import annotations

import difflib

import click

from gitgates.cli.output import dump
from gitgates.config.edit import save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.config.edit import Edit


def finish(root_abs: str, edit: Edit, *, dry_run: bool) -> None:
    """Write an edit and say what changed; in a dry run print the difference and nothing else."""
    if dry_run:
        dump(difference(edit))
    elif edit.before != edit.after:
        save(root_abs, edit)
        click.echo(f"{edit.file}: {summary(edit)}")


def is_empty(edit: Edit) -> bool:
    """Tell whether an edit changes nothing."""
    return not (edit.gates or edit.hooks or edit.extended)


def difference(edit: Edit) -> bytes:
    """Return an edit as a unified diff that `git apply` takes; empty where nothing changes."""
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

"""Write tables as TOML text. Pure. Each value stands on one line."""

from __future__ import annotations

import re

import tomlkit

from gitgates.clean import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def render_key(*path: str) -> str:
    """Return a key, dotted where it has several parts, quoted where it must be."""
    return ".".join(name if _BARE_KEY.fullmatch(name) else _text(name) for name in path)


def render_value(value: object) -> str:
    """Return a value; a table becomes an inline one."""
    if isinstance(value, dict):
        inside = ", ".join(f"{render_key(name)} = {render_value(v)}" for name, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_value(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    return str(tomlkit.item(value).as_string())


def render_table(path: tuple[str, ...], entries: Mapping[str, object]) -> str:
    """Return a header and its keys, a line each."""
    return f"[{render_key(*path)}]\n" + render_entries((), entries)


def render_entries(path: tuple[str, ...], entries: Mapping[str, object]) -> str:
    """Return keys, a line each, all below `path`."""
    if not entries:
        return f"{render_key(*path)} = {{}}\n" if path else ""
    return "".join(
        f"{render_key(*path, name)} = {render_value(value)}\n" for name, value in entries.items()
    )


def _text(value: str) -> str:
    # A command full of double quotes is easier to read between single ones.
    literal = ('"' in value or "\\" in value) and "'" not in value and value.isprintable()
    text = str(tomlkit.string(value, literal=literal).as_string())
    # What nobody sees is shown to who reads the file; it says the same.
    return "".join(char if visible(char) == char else f"\\U{ord(char):08x}" for char in text)

"""Parse the formats that task files are written in; what is broken is a `BadFile`."""

from __future__ import annotations

import json
import tomllib

from gitgates.discover.task import BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises: BadFile."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise BadFile(f"is no valid TOML: {error}") from error


def read_json(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises: BadFile."""
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise BadFile(f"is no valid JSON: {error}") from error
    return _mapping(found, "JSON object")


def read_yaml(text: str) -> dict[str, Any]:
    """Parse a YAML mapping. Raises: BadFile."""
    import yaml

    from gitgates.yaml_load import load

    try:
        found = load(text)
    except yaml.YAMLError as error:
        raise BadFile(f"is no valid YAML: {' '.join(str(error).split())}") from error
    return _mapping(found, "YAML mapping")


def table(value: object, *path: str) -> dict[str, Any]:
    """Return the table at `path`; an empty one where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of a list; all else is left out."""
    return (
        [table(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    )


def texts(value: object) -> tuple[str, ...]:
    """Return a text, or the texts of a list, as a tuple; all else is left out."""
    items: Iterable[object] = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))


def command_lines(value: object) -> str:
    """Return the commands of a list, each a text or a list of words, a line each."""
    items = value if isinstance(value, list) else [value]
    lines = [" ".join(texts(item)) for item in items]
    return "\n".join(line for line in lines if line)


def _mapping(found: object, kind: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadFile(f"is no {kind}")
    return found

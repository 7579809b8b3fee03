"""Read and parse the settings files of a project and its tools; nothing is run."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable
from typing import Any

import yaml

from gitgates.core.limits import parse_json, parse_toml
from gitgates.core.yaml_load import load
from gitgates.store.files import open_regular

INI = (".ini", ".cfg", ".flake8")
# Lock files have a few megabytes; what is longer is generated, and would take long to parse.
_LONGEST_BYTES = 8 * 1024 * 1024


def read_text(path_abs: str) -> str:
    """Return a file's text, with LF line endings. Raises: ValueError if it is not UTF-8."""
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            content = file.read(_LONGEST_BYTES + 1)
        if len(content) > _LONGEST_BYTES:
            raise ValueError(f"it is longer than {_LONGEST_BYTES // 1024} KiB")
        return content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from error
    except OSError as error:
        raise ValueError(error.strerror or error) from error


def parse(name: str, text: str) -> dict[str, Any]:
    """Parse a text in the format of a file name's extension, or as TOML.

    Raises: ValueError if it is invalid, or not a table.
    """
    kind = next((kind for kind, (ends, _) in _FORMATS.items() if name.endswith(ends)), "TOML")
    try:
        settings = _FORMATS[kind][1](text)
    except (ValueError, RecursionError, yaml.YAMLError, configparser.Error) as error:
        raise ValueError(f"is not valid {kind}: {' '.join(str(error).split())}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"is not a {kind} table")  # noqa: TRY004 - like the others
    return settings


def _parse_ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def _parse_json(text: str) -> object:
    lines = text.split("\n")
    return parse_json("\n".join(line for line in lines if not line.lstrip().startswith("//")))


_FORMATS: dict[str, tuple[tuple[str, ...], Callable[[str], Any]]] = {
    "INI": (INI, _parse_ini),
    "JSON": ((".json", ".jsonc"), _parse_json),
    "YAML": ((".yml", ".yaml"), load),
    "TOML": ((".toml",), parse_toml),
}


def list_folder(folder_abs: str) -> list[str]:
    """Return the names in a folder; none if it does not exist or cannot be read."""
    try:
        return sorted(os.listdir(folder_abs))
    except OSError:
        return []


def table(value: object, *path: str) -> dict[str, Any]:
    """Return the table at `path` in parsed settings, which may hold anything; {} if none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables in a list; other items are left out."""
    items = value if isinstance(value, list) else []
    return [table(item) for item in items if isinstance(item, dict)]


def texts(value: object) -> tuple[str, ...]:
    """Return a text, or the texts in a list, as a tuple; other items are left out."""
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))

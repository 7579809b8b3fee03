"""Read and parse the settings files of a project and its tools; nothing is run."""

from __future__ import annotations

import configparser
import os
from typing import Any

import yaml

from gitgates.core.limits import parse_json, parse_toml
from gitgates.core.yaml_load import load
from gitgates.store.files import open_regular

INI = (".ini", ".cfg", ".flake8")
_JSON = (".json", ".jsonc")
_YAML = (".yml", ".yaml")
_COMMENT = "//"
# What is longer was generated, and is not worth a minute of parsing. Lock files are only searched.
_LONGEST_BYTES = 1024 * 1024
_LONGEST_LOCK_BYTES = 32 * _LONGEST_BYTES


def read_text(path_abs: str) -> str:
    """Return the text of a file, with LF. Raises: ValueError if it is no UTF-8 text."""
    longest = _LONGEST_LOCK_BYTES if path_abs.endswith(".lock") else _LONGEST_BYTES
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            content = file.read(longest + 1)
        if len(content) > longest:
            raise ValueError(f"it is longer than {longest // 1024} KiB")
        return content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from error
    except OSError as error:
        raise ValueError(error.strerror or error) from error


def parse(name: str, text: str) -> dict[str, Any]:
    """Parse a text by the format that a file's name tells; without an ending, it is TOML.

    Raises: ValueError if it is not valid, or no table.
    """
    settings: Any
    kind = "TOML"
    try:
        if name.endswith(INI):
            kind = "INI"
            parser = configparser.ConfigParser(interpolation=None, strict=False)
            parser.read_string(text)
            settings = {section: dict(parser[section]) for section in parser.sections()}
        elif name.endswith(_JSON):
            kind = "JSON"
            lines = text.split("\n")
            settings = parse_json(
                "\n".join(line for line in lines if not line.lstrip().startswith(_COMMENT))
            )
        elif name.endswith(_YAML):
            kind = "YAML"
            settings = load(text)
        else:
            settings = parse_toml(text)
    except (ValueError, RecursionError, yaml.YAMLError, configparser.Error) as error:
        raise ValueError(f"is not valid {kind}: {' '.join(str(error).split())}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"is not a table of {kind}")  # noqa: TRY004 - as the others
    return settings


def list_folder(folder_abs: str) -> list[str]:
    """Return the names in a folder; of one that does not exist, or cannot be read, none."""
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

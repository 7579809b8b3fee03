"""Where what stands in a YAML text, so that lines can be added and others' bytes stay. Pure."""

from __future__ import annotations

import yaml

from gitgates import yaml_load
from gitgates.errors import ConfigError


def compose(text: str, file: str) -> yaml.Node | None:
    """Return the only document of a text; None where there is nothing in it.

    Raises: ConfigError where it is no YAML.
    """
    try:
        yaml_load.refuse_too_deep(text, yaml.SafeLoader)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _invalid(file, error) from error


def load(text: str, file: str) -> object:
    """Return what a text says.

    Raises: ConfigError where it is no YAML, or well formed and yet nothing that can be built.
    """
    try:
        return yaml_load.load(text)
    except yaml.YAMLError as error:
        raise _invalid(file, error) from error


def get(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key; None where there is none, or this is no mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def end_of(text: str, node: yaml.Node) -> int:
    """Return the offset of the line behind the last one of a collection in block style.

    It ends where the next thing begins; its last line is that of its last token.
    """
    ends = [
        token.end_mark.index
        for token in yaml.scan(text, Loader=yaml.SafeLoader)
        if node.start_mark.index <= token.start_mark.index < node.end_mark.index
        and not isinstance(token, yaml.BlockEndToken)
    ]
    offset: int = max(ends)
    if text[:offset].endswith("\n"):
        return offset
    return text.find("\n", offset) + 1 or len(text)


def _invalid(file: str, error: yaml.YAMLError) -> ConfigError:
    return ConfigError(f"{file}: is no valid YAML: {error}", "Mend it first; nothing was changed.")

"""Insert and remove a marked block of lines in YAML, TOML, Markdown or a script. Pure.

The result is parsed again and compared, so a text that was not understood is refused instead of
damaged. Only the bytes around a block tell what existed before us: if a text ended without a
newline, our block ends without one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import yaml

from gitgates.core import yaml_load
from gitgates.core.errors import ConfigError
from gitgates.core.limits import parse_toml

Load: TypeAlias = Callable[[str], Any]

_COMMAND = "# gitgates: this block is written by "
RULES = "<!-- gitgates: begin -->"
_ENDS = {_COMMAND: "# gitgates: the block ends here", RULES: "<!-- gitgates: end -->"}
_MARKS = "|".join(map(re.escape, (*_ENDS, *_ENDS.values())))
_HALF = re.compile(rf"^[ \t]*(?:{_MARKS})", re.MULTILINE)
_MADE = (
    r"(?:\A# made by `gitgates install-hooks [^\n]*\n)?"  # older versions wrote it above a block
)
_BLOCK = re.compile(
    rf"{_MADE}^[ \t]*(?:{'|'.join(map(re.escape, _ENDS))})(?:(?!^[ \t]*(?:{_MARKS})).)*"
    rf"^[ \t]*(?:{'|'.join(map(re.escape, _ENDS.values()))})\r?(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def block(command: str, lines: str) -> str:
    """Return lines with our comments around them; `command` is the command that writes them."""
    return f"{_COMMAND}`{command}`\n{lines}{_ENDS[_COMMAND]}\n"


def is_in(text: str) -> bool:
    """Return whether a text contains a gitgates block."""
    return _COMMAND in text


def insert(text: str | None, offset: int, block_: str, column: int = 0) -> str:
    """Return a text, or None, with a block at an offset where a line begins or the text ends."""
    if text is None:
        return block_
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = "".join(" " * column + line for line in block_.splitlines(keepends=True))
    lines = lines.replace("\n", newline)
    if offset == len(text) and not text.endswith("\n"):
        lines = newline + lines.removesuffix(newline)
    return text[:offset] + lines + text[offset:]


def without(text: str, file: str) -> str | None:
    """Return a text without gitgates blocks; None if there is nothing else in it.

    Raises: ConfigError if a block has only one of its markers.
    """
    while match := _BLOCK.search(text):
        start, end = match.span()
        if not start and end == len(text):
            return None
        if not match[0].endswith("\n"):  # the file had no newline at its end
            start -= 2 if "\r\n" in match[0] else 1
        text = text[: max(start, 0)] + text[end:]
    if half := _HALF.search(text):
        raise ConfigError(
            f"{file}: has only `{half[0].strip()}` of the two markers, so the end of the "
            "gitgates block is unknown",
            "Remove the block by hand; the file was not changed.",
        )
    return text


def put_rules(text: str | None, rules: str, file: str) -> str:
    """Return a text, or None, with the rules as a block: in its old place, else at the end.

    Raises: ConfigError as `without`.
    """
    block_ = f"{RULES}\n{rules.strip()}\n{_ENDS[RULES]}\n"
    rest = None if text is None else without(text, file)
    existing = _BLOCK.search(text or "")
    end = len(rest or "")
    return insert(rest, min(existing.start(), end) if existing else end, block_)


def append_toml(text: str | None, lines: str, file: str, command: str) -> str | None:
    """Append tables to a text. Returns None if its other values would change.

    Raises: ConfigError if it is not valid TOML.
    """
    load = partial(load_toml, file=file)
    after = insert(text, len(text or ""), block(command, lines))
    return verified(text or "", after, load(lines), load)


def append_yaml(
    text: str | None, path: tuple[str, ...], adds: dict[str, Any], *, file: str, command: str
) -> str | None:
    """Append the values of `adds` to those at `path`.

    Returns None if there is no block-style collection, or the result would not be the old values
    and `adds`.

    Raises: ConfigError if it is not valid YAML.
    """
    node, value = compose_yaml(text or "", file), adds
    for key in path:
        node, value = get(node, key), value[key]
    addition = block(command, yaml_lines(value))
    if node is None and not path:
        after = insert(text, len(text or ""), addition)
    elif text and isinstance(node, yaml.CollectionNode) and not node.flow_style:
        after = insert(text, _end_of(text, node), addition, node.start_mark.column)
    else:
        return None
    return verified(text or "", after, adds, partial(load_yaml, file=file))


def verified(before: str, after: str, adds: object, load: Load) -> str | None:
    """Return the text `after` if it holds the values of `before` and `adds`, else None."""
    old_values = load(before)
    try:
        return after if load(after) == _merged(old_values, adds) else None
    except (ConfigError, TypeError):
        return None


def load_toml(text: str, file: str) -> dict[str, Any]:
    """Parse TOML. Raises: ConfigError."""
    try:
        return parse_toml(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}", "Fix it first.") from error


def load_yaml(text: str, file: str) -> Any:  # noqa: ANN401 - any YAML
    """Parse YAML.

    Raises: ConfigError if it is not valid YAML, or has values that cannot be built.
    """
    try:
        return yaml_load.load(text)
    except yaml.YAMLError as error:
        raise _no_yaml(file, error) from error


def compose_yaml(text: str, file: str) -> yaml.Node | None:
    """Return a text's only document, with positions; None if it is empty.

    Raises: ConfigError if it is not valid YAML.
    """
    try:
        yaml_load.refuse_too_deep(text, yaml.SafeLoader)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _no_yaml(file, error) from error


def get(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key; None if there is none, or this is not a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def yaml_lines(value: Any, column: int = 0) -> str:  # noqa: ANN401 - any YAML
    """Return a mapping or a list of mappings as lines in block style."""
    indent = " " * column
    if isinstance(value, list):
        items = [yaml_lines(item, column + 2)[column + 2 :] for item in value]
        return "".join(f"{indent}- {item}" for item in items)
    text = ""
    for key, inner in value.items():
        is_list = isinstance(inner, list) and isinstance(inner[0], dict)
        if is_list or isinstance(inner, dict):
            text += f"{indent}{key}:\n{yaml_lines(inner, column if is_list else column + 2)}"
        else:
            text += f"{indent}{key}: {_scalar(inner)}\n"
    return text


def _scalar(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        is_plain = yaml_load.load(text) == value
    except yaml.YAMLError:
        is_plain = False
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _end_of(text: str, node: yaml.Node) -> int:
    """Return the offset of the line after a block-style collection.

    Its node ends where the next thing begins, but its last line is that of its last token.
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


def _merged(base: Any, adds: Any) -> Any:  # noqa: ANN401 - any document
    """Merge two documents. Raises: TypeError if they conflict."""
    if base is None:
        return adds
    if isinstance(base, list) and isinstance(adds, list):
        return [*base, *adds]
    if not (isinstance(base, dict) and isinstance(adds, dict)):
        raise TypeError
    return {**base, **{k: _merged(base[k], v) if k in base else v for k, v in adds.items()}}


def _no_yaml(file: str, error: yaml.YAMLError) -> ConfigError:
    return ConfigError(f"{file}: is not valid YAML: {error}", "Fix it first; nothing was changed.")

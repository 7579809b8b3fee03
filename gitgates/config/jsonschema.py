"""The settings as a JSON Schema (draft-07), made from the key tables. Pure and cold.

It tells an editor, or validate-pyproject, what the parser knows about each key. The parser alone
finds problems in the configuration as a whole, such as undefined gates and circular chains.
"""

from __future__ import annotations

import tomllib
from typing import Any, TypeAlias

from gitgates.config.keys import (
    GATE_KEYS,
    RESERVED_GATE_NAMES,
    TOP_KEYS,
    Key,
    Table,
    hook_keys,
    tables,
)
from gitgates.core.lifecycle import HOOK_POINTS

Schema: TypeAlias = dict[str, Any]

# Where SchemaStore serves a schema of that name, wherever the source is published. See
# docs/how-to/editor.md.
_ID = "https://www.schemastore.org/gitgates.json"
_DRAFT = "http://json-schema.org/draft-07/schema#"


def get_schema(tool_name: str = "gitgates") -> Schema:
    """Return the schema of the table `[tool.gitgates]`, and so of gitgates.toml.

    `tool_name` is what validate-pyproject calls the table.

    Source: validate-pyproject 0.27, "Developer guide: plugins".
    """
    return {
        "$schema": _DRAFT,
        "$id": _ID,
        "title": f"Settings of {tool_name}",
        "description": "Quality gates, and the hooks that they run at.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **_properties(TOP_KEYS),
            **{name: _feature(table) for name, table in tables().items()},
            "gates": {
                "description": "The gates, by name.",
                "type": "object",
                "propertyNames": _gate_name(),
                "additionalProperties": {"$ref": "#/definitions/gate"},
            },
            "hooks": {
                "description": "What runs at which lifecycle point.",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    hook: {"$ref": f"#/definitions/{_kind(hook)}"} for hook in HOOK_POINTS
                },
            },
        },
        "definitions": {
            "gate": {
                **_table(GATE_KEYS),
                # A gate has one of the two; `pre-commit = false` counts as none.
                "if": {"properties": {"command": {}}, "required": ["command"]},
                "then": {"properties": {"pre-commit": {"const": False}}},
            },
            **{_kind(hook): _table(hook_keys(hook)) for hook in HOOK_POINTS},
        },
    }


def _feature(table: Table) -> Schema:
    described = {"description": table.meaning}
    content = {**_table(table.keys), **table.schema}
    if table.id_of:
        return {**described, "type": "array", "items": content}
    return {**described, **content}


def _table(keys: tuple[Key, ...]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": _properties(keys)}


def _properties(keys: tuple[Key, ...]) -> Schema:
    properties = {}
    for key in keys:
        default = tomllib.loads(f"default = {key.default}") if key.default else {}
        properties[key.name] = {**key.type.json, "description": key.description, **default}
    return properties


def _kind(hook: str) -> str:
    """Name the set of keys that a hook has: dozens of hooks share a few sets."""
    special_keys = [key.name for key in hook_keys(hook) if key.only_in]
    return "-".join(["hook", *special_keys]).replace("_", "-")


def _gate_name() -> Schema:
    # A pattern cannot ignore case; for reserved names, the parser does.
    reserved = "|".join(
        "".join(f"[{char.upper()}{char.lower()}]" for char in word) for word in RESERVED_GATE_NAMES
    )
    control = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
    return {
        "description": "text on one line, without commas; not an action or built-in policy",
        "type": "string",
        "pattern": rf"^(?!(?:{reserved})$)(?!\s)(?!.*\s$)[^,{control}]+$",
    }

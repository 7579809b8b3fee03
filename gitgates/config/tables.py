"""Features' configuration tables, found in their folders: `TABLE` in `keys.py`. Cold."""

from __future__ import annotations

import functools

from gitgates.core.parts import feature_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.config.keys import Table


@functools.cache
def tables() -> dict[str, Table]:
    """Return the tables by name."""
    return {module.TABLE.name: module.TABLE for module in feature_parts("keys")}


@functools.cache
def defaults(name: str) -> Mapping[str, Any]:
    """Return field → value of a table, or of an entry of an array, in which nothing is written."""
    return {key.field: key.value() for key in tables()[name].keys}


def completed(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a table has: unknown ones left out, missing ones with the default."""
    return {field: fields.get(field, value) for field, value in defaults(name).items()}

"""Our tables at the end of somebody's TOML: `prek.toml`, `lefthook.toml`. Pure."""

from __future__ import annotations

import json
import tomllib

from gitgates.install import block, marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def prek_lines(stages: tuple[str, ...]) -> str:
    """Return our hooks as a table of `repos`."""
    hooks = "".join(f"  {{ {_pairs(block.hook_of(stage))} }},\n" for stage in stages)
    return f'[[repos]]\nrepo = "local"\nhooks = [\n{hooks}]\n'


def put(text: str, lines: str, command: str) -> str | None:
    """Return a text with tables at its end. None: they cannot go there."""
    after = marked.insert(text, len(text), marked.block(command, lines))
    try:
        is_right = tomllib.loads(after) == _joined(tomllib.loads(text), tomllib.loads(lines))
    except (ValueError, RecursionError, TypeError):
        return None
    return after if is_right else None


def _joined(one: Any, other: Any) -> Any:  # noqa: ANN401 - any TOML
    """Return what two documents say together. Raises: TypeError where they contradict."""
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    if not (isinstance(one, dict) and isinstance(other, dict)):
        raise TypeError
    return {**one, **{k: _joined(one[k], v) if k in one else v for k, v in other.items()}}


def _pairs(hook: dict[str, str | bool | list[str]]) -> str:
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in hook.items())

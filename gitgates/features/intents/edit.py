"""Add a pattern to an intent's scope, as text, without changing any other byte of the file.

Cold: it loads PyYAML or tomlkit. It parses the new text; if that differs from the old intents by
more than the new pattern, nothing is changed.
"""

from __future__ import annotations

import json

from gitgates.features.intents.parse import ROOT_KEY, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEY = "owned_scope"


def add_pattern(text: str, file: str, name: str, pattern: str) -> str | None:
    """Return the text of an intents file with one more pattern in an intent's scope.

    None if an insertion alone cannot do that, or would change anything else, such as a scope that
    two intents share.
    """
    before, problems = parse(text, file)
    at = next((at for at, intent in enumerate(before) if intent.id == name), None)
    if problems or at is None:
        return None
    changed = _in_toml(text, at, pattern) if file.endswith(".toml") else _in_yaml(text, at, pattern)
    scope = (*before[at].owned_scope, pattern)
    expected = (*before[:at], before[at]._replace(owned_scope=scope), *before[at + 1 :])
    differ = (at for at, pair in enumerate(zip(text, changed, strict=False)) if len({*pair}) > 1)
    is_insertion = changed.endswith(text[next(differ, len(text)) :])
    return changed if is_insertion and parse(changed, file) == (expected, ()) else None


def _in_yaml(text: str, at: int, pattern: str) -> str:
    from gitgates.core.yaml_load import load_nodes

    intent = _value(load_nodes(text), ROOT_KEY).value[at]
    scope = _value(intent, _KEY)
    end = scope.value[-1].end_mark.index
    item = json.dumps(pattern, ensure_ascii=False)
    if scope.flow_style:
        return f"{text[:end]}, {item}{text[end:]}"
    line_end = "\r\n" if "\r\n" in text else "\n"
    line = f"{' ' * scope.start_mark.column}- {item}"
    next_line = text.find("\n", end) + 1  # after a comment on the last item's line
    if not next_line:
        return f"{text}{line_end}{line}"
    return f"{text[:next_line]}{line}{line_end}{text[next_line:]}"


def _value(mapping: Any, key: str) -> Any:  # noqa: ANN401 - PyYAML has no types
    return next(value for name, value in mapping.value if name.value == key)


def _in_toml(text: str, at: int, pattern: str) -> str:
    import tomlkit

    document: Any = tomlkit.parse(text)
    document[ROOT_KEY][at][_KEY].append(pattern)
    return str(document.as_string())

"""A `quality_gates` file: a list of commands that a headless agent's work must pass."""

from __future__ import annotations

import re

from gitgates.discover.converted import Converted, usable_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIELDS = ("name", "command", "timeout", "working_dir", "env")
_WHOLE = re.compile(r"\d+")
_NUMBER = re.compile(r"\d+\.\d*|\d*\.\d+")


def convert(document: dict[str, Any]) -> Converted:
    """Return the same as tables of ours, with the list as the hook `headless`."""
    notes = [
        f"{key}: unknown field, left out"
        for key in document
        if key not in ("headless", "quality_gates")
    ]
    found = Converted(gates={}, hooks={}, notes=notes, problems=[])
    listed = document.get("quality_gates")
    if listed is not None and not isinstance(listed, list):
        found.problems.append("quality_gates: expected a list of gates")
        return found
    for index, item in enumerate(listed or ()):
        _add_gate(item, f"quality_gates[{index}]", found)
    # The executor ran every gate and reported all failures together.
    hook: dict[str, Any] = {"gates": list(found.gates), "strategy": "collect"}
    found.hooks["headless"] = hook | _headless(document.get("headless"), found)
    return found


def _add_gate(item: object, place: str, found: Converted) -> None:
    if not isinstance(item, dict):
        found.problems.append(f"{place}: expected a gate with `name` and `command`")
        return
    written = item.get("name")
    if not isinstance(written, str) or not written.strip():
        found.problems.append(f'{place}.name: expected a text; add one such as name: "Lint"')
        return
    name = usable_name(written, found.gates)
    if name != written:
        why = "no gate can be called that, or another one is"
        found.notes.append(f"{place}.name: `{written}`: {why}; it becomes `{name}`")
    for field in item:
        if field not in _FIELDS:
            found.notes.append(f"{place}.{field}: unknown field, left out")
    found.gates[name] = _table(item, place, found)


def _table(item: dict[str, Any], place: str, found: Converted) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for field in ("command", "working_dir"):
        if item.get(field) not in (None, ""):
            table[field] = item[field]
    timeout = _number(item.get("timeout"))
    if timeout == 0:
        found.notes.append(f"{place}.timeout: 0 meant no limit; gitgates' default applies")
    elif timeout not in (None, ""):
        table["timeout"] = timeout
    if item.get("env"):
        table["env"] = _environment(item["env"])
    return table


def _environment(env: object) -> object:
    if not isinstance(env, dict):
        return env
    return {str(name): _plain(value) for name, value in env.items()}


def _plain(value: object) -> object:
    """Return a scalar as its file writes it. YAML is read as text already; JSON is not."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            return value


def _headless(headless: object, found: Converted) -> dict[str, Any]:
    if headless is None:
        return {}
    if not isinstance(headless, dict):
        found.problems.append("headless: expected a mapping such as max_retries: 3")
        return {}
    for field in headless:
        if field != "max_retries":
            found.notes.append(f"headless.{field}: unknown field, left out")
    retries = _number(headless.get("max_retries"))
    return {} if retries in (None, "") else {"max_retries": retries}


def _number(value: object) -> object:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return value

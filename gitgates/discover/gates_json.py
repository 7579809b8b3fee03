"""A `gates.json`: gates with a command and two actions, and the hooks that run them."""

from __future__ import annotations

from gitgates.config.keys import HOOK_KEYS
from gitgates.discover.converted import Converted, rename
from gitgates.lifecycle import HOOK_POINTS
from gitgates.types import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GATE_FIELDS = ("description", "command", "on_pass", "on_fail")
_HOOK_FIELDS = ("enabled_tools", "enabled_agents", "gates")


def convert(document: dict[str, Any]) -> Converted:
    """Return the same as tables of ours. Values are taken as they are, for our parser to judge."""
    notes = [f"{key}: unknown field, left out" for key in document if key not in ("gates", "hooks")]
    gates = _section(document, "gates")
    names = rename(gates, "gates", notes) if isinstance(gates, dict) else {}
    found = Converted(gates=gates, hooks=_section(document, "hooks"), notes=notes, problems=[])
    if isinstance(found.gates, dict):
        tables = {names[name]: _gate(name, gate, names, notes) for name, gate in gates.items()}
        found = found._replace(gates=tables)
    if isinstance(found.hooks, dict):
        found = found._replace(hooks=_hooks(found.hooks, names, notes))
    return found


def _section(document: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - not judged yet
    found = document.get(name)
    return {} if found is None else found


def _gate(name: str, gate: object, names: dict[str, str], notes: list[str]) -> object:
    if not isinstance(gate, dict):
        return gate
    kept = _known(gate, _GATE_FIELDS, f"gates.{name}", notes)
    if kept.get("command") == "":
        del kept["command"]
        notes.append(f"gates.{name}.command: is empty, left out")
    for field in ("on_pass", "on_fail"):
        action = kept.get(field)
        if isinstance(action, str) and action not in ACTIONS:
            kept[field] = names.get(action, action)
    return kept


def _hooks(hooks: dict[str, Any], names: dict[str, str], notes: list[str]) -> dict[str, Any]:
    found = {}
    for name, hook in hooks.items():
        if name not in HOOK_POINTS:
            notes.append(f"hooks.{name}: no hook that gitgates knows, left out")
        elif isinstance(hook, dict):
            found[name] = _hook(name, hook, names, notes)
        else:
            found[name] = hook
    return found


def _hook(
    name: str, hook: dict[str, Any], names: dict[str, str], notes: list[str]
) -> dict[str, Any]:
    kept = _known(hook, _HOOK_FIELDS, f"hooks.{name}", notes)
    for key in HOOK_KEYS:
        if key.name in kept and key.only_in and name not in key.only_in:
            del kept[key.name]
            notes.append(f"hooks.{name}.{key.name}: has no meaning for {name}, left out")
    if isinstance(kept.get("gates"), list):
        kept["gates"] = [names.get(g, g) if isinstance(g, str) else g for g in kept["gates"]]
    return kept


def _known(
    table: dict[str, Any], fields: tuple[str, ...], place: str, notes: list[str]
) -> dict[str, Any]:
    """Return the fields that this format has; `null` stands for one that is missing."""
    notes += [f"{place}.{field}: unknown field, left out" for field in table if field not in fields]
    return {name: value for name, value in table.items() if name in fields and value is not None}

"""Lay the local settings over the shared ones, without taking a required gate away."""

from __future__ import annotations

from gitgates.config.document import Document, Settings
from gitgates.config.schema import GATE_KEYS
from gitgates.types import ACTIONS, Config, Gate, Hook, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a person may still adapt in a required gate: nothing that changes what it checks.
_FREE_FIELDS = ("description", "timeout_s", "env")


def merge(layers: list[Settings], problems: list[Problem]) -> Settings:
    """Return all layers as one; a later layer wins key by key."""
    first = layers[0]
    merged = Settings(first.document, {}, {}, {}, {})
    for depth, layer in enumerate(layers):
        if depth:
            _protect_required(merged, layer, problems)
        merged.top.update(layer.top)
        for section in ("gates", "hooks"):
            _merge_section(merged, layer, section)
    return merged


def _merge_section(merged: Settings, layer: Settings, section: str) -> None:
    target: dict[str, dict[str, Any]] = getattr(merged, section)
    for name, table in getattr(layer, section).items():
        merged.origins.setdefault((section, name, ""), layer.document)
        target[name] = {**target.get(name, {}), **table}
        for field in table:
            merged.origins[section, name, field] = layer.document


def _protect_required(merged: Settings, layer: Settings, problems: list[Problem]) -> None:
    written = {key.field: key.name for key in GATE_KEYS}
    for name, table in layer.gates.items():
        if not merged.gates.get(name, {}).get("required"):
            continue
        for field, value in table.items():
            if field not in _FREE_FIELDS and merged.gates[name].get(field) != value:
                where = layer.document.where("gates", name, written[field])
                hint = f"Change it in {merged.document.source}, where everybody sees it."
                message = f"gate `{name}` is required and cannot be changed locally"
                problems.append(Problem(where, message, hint))


def check_required(layers: list[Settings], config: Config, problems: list[Problem]) -> None:
    """Find required gates that the shared settings reach in a hook and the merged ones do not."""
    shared = layers[0]
    gates = {name: Gate(name=name, **table) for name, table in shared.gates.items()}
    merged = {gate.name: gate for gate in config.gates}
    for hook in config.hooks:
        before = reachable(Hook(name=hook.name, **shared.hooks.get(hook.name, {})).gates, gates)
        after = reachable(hook.gates, merged)
        for name in before:
            if gates[name].required and name not in after:
                where = _last(layers, hook.name).where("hooks", hook.name, "gates")
                message = f"takes the required gate `{name}` away"
                problems.append(Problem(where, message, f"Put `{name}` back into the list."))


def _last(layers: list[Settings], hook: str) -> Document:
    return next((s.document for s in reversed(layers) if hook in s.hooks), layers[-1].document)


def reachable(names: tuple[str, ...], gates: dict[str, Gate]) -> tuple[str, ...]:
    """Return the defined gates that the named ones lead to, themselves included, in order."""
    found: list[str] = []
    waiting = list(names)
    while waiting:
        gate = gates.get(waiting.pop(0))
        if gate is None or gate.name in found:
            continue
        found.append(gate.name)
        waiting += [action for action in (gate.on_pass, gate.on_fail) if action not in ACTIONS]
    return tuple(found)

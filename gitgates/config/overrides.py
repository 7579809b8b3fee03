"""Lay the local settings over the shared ones, without taking a required gate away."""

from __future__ import annotations

from gitgates.config.document import Settings
from gitgates.config.keys import GATE_KEYS, REVIEW_KEYS
from gitgates.lifecycle import STANDS_IN_FOR
from gitgates.types import ACTIONS, POLICY_GATES, Config, Gate, Hook, Problem, Review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a person may still adapt in a required gate: nothing that changes what it checks.
_FREE_FIELDS = ("description", "timeout_s", "env")
# And in a hook that runs one. Which gates it runs is looked at by itself.
_FREE_HOOK_FIELDS = ("gates", "strategy")
_STRICT = ("unstaged", "hide")  # gates see what is being committed: nobody is fooled by that


def merge(layers: list[Settings], problems: list[Problem]) -> Settings:
    """Return all layers as one; a later layer wins key by key."""
    first = layers[0]
    merged = Settings(first.document, {}, {}, {}, {}, {})
    for depth, layer in enumerate(layers):
        if depth:
            _protect_required(merged, layer, problems)
            _protect_review(merged, layer, problems)
        merged.top.update(layer.top)
        merged.review.update(layer.review)
        for section in ("gates", "hooks"):
            _merge_section(merged, layer, section)
    return merged


def _protect_review(merged: Settings, layer: Settings, problems: list[Problem]) -> None:
    if not merged.review.get("required"):
        return
    written = {key.field: key.name for key in REVIEW_KEYS}
    for field, value in layer.review.items():
        if merged.review.get(field, getattr(Review(), field)) != value:
            where = layer.document.where("review", written[field])
            hint = f"Change it in {merged.document.source}, where everybody sees it."
            message = "the gate `review` is required and cannot be changed locally"
            problems.append(Problem(where, message, hint))


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
    policies = POLICY_GATES if shared.review.get("required") else ()
    for hook in config.hooks:
        before = _shared_hook(hook.name, shared)
        reached = reachable(before.gates, gates)
        required = [name for name in reached if gates[name].required]
        required += [name for name in policies if name in before.gates]
        after = (*reachable(hook.gates, merged), *hook.gates)
        gone = [name for name in required if name not in after]
        problems.extend(_taken_away(name, hook, before, layers) for name in gone)
        if required:
            problems += _narrowed(before, required[0], layers)


def _shared_hook(name: str, shared: Settings) -> Hook:
    """Return what would run without the local settings: another hook's gates, maybe."""
    source = name if name in shared.hooks else STANDS_IN_FOR.get(name, name)
    return Hook(name=name, **shared.hooks.get(source, {}))


def _taken_away(name: str, hook: Hook, before: Hook, layers: list[Settings]) -> Problem:
    if hook.gates != before.gates:
        where = layers[-1].document.where("hooks", hook.name, "gates")
        message = f"takes the required gate `{name}` away"
        return Problem(where, message, f"Put `{name}` back into the list.")
    cut = {
        layers[-1].document.where("gates", gate, action): gate
        for gate, table in layers[-1].gates.items()
        for action in ("on_pass", "on_fail")
        if action in table and layers[0].gates.get(gate, {}).get(action) != table[action]
    }
    where = next(iter(cut), layers[-1].document.source)
    message = f"cuts the chain of {hook.name} to the required gate `{name}`"
    return Problem(where, message, f"Leave it as {layers[0].document.source} has it.")


def _narrowed(before: Hook, gate: str, layers: list[Settings]) -> list[Problem]:
    """Find local settings that change when, or on what, the required gate of a hook runs."""
    return [
        Problem(
            layer.document.where("hooks", before.name, field),
            f"cannot be changed locally: the required gate `{gate}` runs at {before.name}",
            f"Change it in {layers[0].document.source}, where everybody sees it.",
        )
        for layer in layers[1:]
        for field, value in layer.hooks.get(before.name, {}).items()
        if field not in _FREE_HOOK_FIELDS
        and (field, value) != _STRICT
        and value != getattr(before, field)
    ]


def reachable(names: tuple[str, ...], gates: dict[str, Gate]) -> tuple[str, ...]:
    """Return the defined gates that the named ones lead to, themselves included, in order."""
    found: dict[str, None] = {}
    waiting = list(names)
    for name in waiting:  # which grows while it is walked
        gate = gates.get(name)
        if gate is None or name in found:
            continue
        found[name] = None
        waiting += [action for action in (gate.on_pass, gate.on_fail) if action not in ACTIONS]
    return tuple(found)

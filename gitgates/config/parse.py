"""From settings files to a `Config`: local ones over shared ones, checked as a whole. Pure.

Only the whole shows a required gate that local settings take away, a gate that is not there, and a
chain that never ends.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from gitgates.clean import visible_line
from gitgates.config.document import Document, Settings, read
from gitgates.config.keys import POLICY_NAMES
from gitgates.config.values import did_you_mean
from gitgates.lifecycle import ENDING_HOOKS, HOOK_OF, HOOK_POINTS, STANDS_IN_FOR
from gitgates.policy import policy_gates
from gitgates.types import ACTIONS, Config, Gate, Hook, Problem, Review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# What a person may still adapt in a required gate: nothing that changes what it checks.
_FREE_FIELDS = ("description", "timeout_s", "env")
# And in a hook that runs one. Which gates it runs is looked at by itself.
_FREE_HOOK_FIELDS = ("gates", "strategy")
_STRICT = ("unstaged", "hide")  # gates see what is being committed: nobody is fooled by that


def parse(documents: tuple[Document, ...]) -> tuple[Config, tuple[Problem, ...]]:
    """Return the configuration of all documents, later ones laid over earlier ones.

    The configuration is usable where every problem is a deferred one: a gate that is named but not
    defined, or has no command, stops the hook that reaches it, and no other.
    """
    problems: list[Problem] = []
    layers = [read(document, problems) for document in documents]
    merged = _merge(layers, problems)
    config = _build(merged, tuple(document.source for document in documents))
    if not problems:
        problems += _required_gone(layers, config)
    _check(config, merged, problems)
    return config, tuple(problems)


def _merge(layers: list[Settings], problems: list[Problem]) -> Settings:
    """Return all layers as one; a later layer wins key by key."""
    merged = Settings(layers[0].document, {}, {})
    for depth, layer in enumerate(layers):
        if depth:
            problems.extend(_required_changed(merged, layer))
        for path, table in layer.tables.items():
            merged.tables[path] = {**merged.tables.get(path, {}), **table}
        for path, document in layer.origins.items():
            is_table = path in layer.tables  # which is where the first one has it
            merged.origins[path] = merged.origins.get(path, document) if is_table else document
    return merged


def _build(merged: Settings, sources: tuple[str, ...]) -> Config:
    config = Config(
        **merged.tables[()],
        review=Review(**merged.tables.get(("review",), {})),
        gates=tuple(Gate(name=name, **table) for name, table in merged.named("gates").items()),
        hooks=tuple(Hook(name=name, **table) for name, table in merged.named("hooks").items()),
    )
    digest = hashlib.sha256(repr(config).encode("utf-8", "replace")).hexdigest()
    return config._replace(digest=digest, sources=sources)


def _required_changed(merged: Settings, layer: Settings) -> Iterator[Problem]:
    """Find local settings of gates that the shared ones require."""
    for path, table in layer.tables.items():
        there = merged.tables.get(path, {})
        if path[:1] not in (("gates",), ("review",)) or not there.get("required"):
            continue
        article = "" if path[0] == "gates" else "the "
        free, defaults = (_FREE_FIELDS, {}) if path[0] == "gates" else ((), Review()._asdict())
        for field, value in table.items():
            if field not in free and there.get(field, defaults.get(field)) != value:
                yield Problem(
                    layer.where(*path, field=field),
                    f"{article}gate `{path[-1]}` is required and cannot be changed locally",
                    f"Change it in {merged.document.source}, where everybody sees it.",
                )


def _required_gone(layers: list[Settings], config: Config) -> Iterator[Problem]:
    """Find required gates that the shared settings reach in a hook and the merged ones do not."""
    shared = layers[0]
    gates = {name: Gate(name=name, **table) for name, table in shared.named("gates").items()}
    merged = {gate.name: gate for gate in config.gates}
    policies = policy_gates() if shared.tables.get(("review",), {}).get("required") else ()
    for hook in config.hooks:
        before = _shared_hook(hook.name, shared)
        required = [name for name in reachable(before.gates, gates) if gates[name].required]
        required += [name for name in policies if name in before.gates]
        after = (*reachable(hook.gates, merged), *hook.gates)
        yield from (_taken_away(n, hook, before, layers) for n in required if n not in after)
        if required:
            yield from _narrowed(before, required[0], layers)


def _shared_hook(name: str, shared: Settings) -> Hook:
    """Return what would run without the local settings: another hook's gates, maybe."""
    hooks = shared.named("hooks")
    return Hook(name=name, **hooks.get(name, hooks.get(STANDS_IN_FOR.get(name, name), {})))


def _taken_away(name: str, hook: Hook, before: Hook, layers: list[Settings]) -> Problem:
    shared, local = layers[0], layers[-1]
    if hook.gates != before.gates:
        where = local.document.where("hooks", hook.name, "gates")
        message = f"takes the required gate `{name}` away"
        return Problem(where, message, f"Put `{name}` back into the list.")
    cuts = (
        local.where("gates", gate, field=action)
        for gate, table in local.named("gates").items()
        for action in ("on_pass", "on_fail")
        if action in table and shared.named("gates").get(gate, {}).get(action) != table[action]
    )
    where = next(cuts, local.document.source)
    message = f"cuts the chain of {hook.name} to the required gate `{name}`"
    return Problem(where, message, f"Leave it as {shared.document.source} has it.")


def _narrowed(before: Hook, gate: str, layers: list[Settings]) -> Iterator[Problem]:
    """Find local settings that change when, or on what, the required gate of a hook runs."""
    for layer in layers[1:]:
        for field, value in layer.named("hooks").get(before.name, {}).items():
            is_free = field in _FREE_HOOK_FIELDS or (field, value) == _STRICT
            if not is_free and value != getattr(before, field):
                yield Problem(
                    layer.where("hooks", before.name, field=field),
                    f"cannot be changed locally: the required gate `{gate}` runs at {before.name}",
                    f"Change it in {layers[0].document.source}, where everybody sees it.",
                )


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


def _check(config: Config, merged: Settings, problems: list[Problem]) -> None:
    """Append what is wrong between the parts of `config`."""
    gates = {gate.name: gate for gate in config.gates}
    for gate in config.gates:
        problems += _wrong_in_gate(gate, gates, merged)
    for hook in config.hooks:
        problems += _wrong_in_hook(hook, gates, merged)
    lists_review = any("review" in hook.gates for hook in config.hooks)
    if not problems and merged.tables.get(("review",)) and not lists_review:
        where = merged.document.where("review")
        hint = f'Add it: [tool.gitgates.hooks.{HOOK_OF["turn-end"]}] gates = [..., "review"].'
        message = "no hook lists the gate `review`, so that these settings have no effect"
        problems.append(Problem(where, message, hint, deferred=True))
    for circle in _circles(gates):
        chain = " → ".join(f"`{name}`" for name in circle)
        message = f"its chain comes back to itself: {chain}"
        hint = "Let one of them end in CONTINUE, BLOCK or STOP instead."
        problems.append(Problem(merged.where("gates", circle[0]), message, hint))


def _wrong_in_gate(gate: Gate, gates: dict[str, Gate], merged: Settings) -> Iterator[Problem]:
    path = ("gates", gate.name)
    if gate.command is not None and gate.pre_commit is not None:
        hint = "Make two gates of it, and name both in the hook."
        message = "stands beside `command`; a gate has one of them"
        yield Problem(merged.where(*path, field="pre_commit"), message, hint)
    # One that is written and makes no sense is reported already.
    is_read = all(
        (*path, field) not in merged.origins or field in merged.tables[path]
        for field in ("command", "pre_commit")
    )
    if gate.command is None and gate.pre_commit is None and is_read:
        hint = f'Add command = "…" to `{gate.name}`.'
        yield Problem(merged.where(*path), "has no `command`", hint, deferred=True)
    if gate.restage and not gate.writes:
        hint = "Add writes = true, so that its changes are looked for."
        message = "has a meaning only for a gate that writes"
        yield Problem(merged.where(*path, field="restage"), message, hint)
    for field, target in (("on_pass", gate.on_pass), ("on_fail", gate.on_fail)):
        if target not in ACTIONS and target not in gates:
            yield _undefined(merged.where(*path, field=field), target, (*ACTIONS, *gates))


def _wrong_in_hook(hook: Hook, gates: dict[str, Gate], merged: Settings) -> Iterator[Problem]:
    path = ("hooks", hook.name)
    point = HOOK_POINTS[hook.name]
    if hook.name == "pre-push" and hook.unstaged == "hide":
        hint = "Use `checkout`, which is the default, or `keep`."
        message = "a push is of commits; hiding what is unstaged does not show them"
        yield Problem(merged.where(*path, field="unstaged"), message, hint)
    where = merged.where(*path, field="gates")
    unknown = [name for name in hook.gates if name not in (*gates, *policy_gates())]
    yield from (_undefined(where, name, tuple(gates)) for name in unknown)
    for name in hook.gates:
        if name in policy_gates() and hook.name not in ENDING_HOOKS:
            message = f"the built-in gate `{name}` decides whether an agent may stop"
            hint = f"List it in {' or '.join(ENDING_HOOKS)} instead."
            yield Problem(where, message, hint, deferred=True)
    for name in reachable(hook.gates, gates):
        if gates[name].restage and point.scope == "staged" and hook.unstaged == "checkout":
            message = f"in a private checkout, gate `{name}` cannot restage what it fixes"
            hint = "Use `hide`, which is the default, or take out `restage`."
            yield Problem(merged.where(*path, field="unstaged"), message, hint)
        if gates[name].pre_commit is not None and (point.host, point.scope) == ("git", "none"):
            message = (
                f"gate `{name}` runs pre-commit hooks on paths, and {hook.name} is not about paths"
            )
            yield Problem(where, message, "Use a gate with a command here.")


def _undefined(where: str, name: str, known: tuple[str, ...]) -> Problem:
    if name in policy_gates():
        hint = f"`{name}` is a built-in gate, which a hook lists; no action leads to it."
    elif name in POLICY_NAMES:
        hint = f"`{name}` is kept for a built-in policy that this version does not have."
    elif name in ACTIONS:
        hint = f"`{name}` is an action; a hook lists gates."
    else:
        hint = did_you_mean(name, known) or "Define it, with a command, or take the name out."
    return Problem(where, f"gate `{visible_line(name)}` is not defined", hint, deferred=True)


def _circles(gates: dict[str, Gate]) -> list[tuple[str, ...]]:
    """Return chains that come back to their start, from their first gate in the file.

    One for each gate that is in none before it.
    """
    leads_to = {
        gate.name: [action for action in (gate.on_pass, gate.on_fail) if action in gates]
        for gate in gates.values()
    }
    for name in _without_circles(leads_to):
        del leads_to[name]
    found: list[tuple[str, ...]] = []
    told: set[str] = set()
    for start in leads_to:
        if start not in told and (chain := _way_back(start, leads_to)):
            found.append(chain)
            told.update(chain)
    return found


def _without_circles(leads_to: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the gates that lead to no circle."""
    sorter = TopologicalSorter(leads_to)
    with suppress(CycleError):  # what leads to none can be sorted all the same
        sorter.prepare()
    while ready := sorter.get_ready():
        yield from ready
        sorter.done(*ready)


def _way_back(start: str, leads_to: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return the shortest chain from `start` to itself, both ends named; empty if none."""
    came_from: dict[str, str] = {}
    waiting = [start]
    for name in waiting:  # which grows while it is walked
        for target in leads_to.get(name, ()):
            if target not in came_from:
                came_from[target] = name
                waiting.append(target)
        if start in came_from:
            break
    else:
        return ()
    chain = [start, came_from[start]]
    while chain[-1] != start:
        chain.append(came_from[chain[-1]])
    return tuple(reversed(chain))

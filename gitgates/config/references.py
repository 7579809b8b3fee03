"""Find what only the whole configuration can show: gates that are not there, chains in circles."""

from __future__ import annotations

from gitgates.clean import visible_line
from gitgates.config.document import Document, Settings
from gitgates.config.keys import POLICY_NAMES
from gitgates.config.overrides import reachable
from gitgates.config.values import did_you_mean
from gitgates.lifecycle import ENDING_HOOKS, HOOK_OF, HOOK_POINTS
from gitgates.types import ACTIONS, POLICY_GATES, Config, Gate, Hook, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def check(config: Config, merged: Settings, problems: list[Problem]) -> None:
    """Append what is wrong between the parts of `config`.

    A gate that is named but not defined, or has no command, is a deferred problem: it stops the
    hook that reaches it, and no other.
    """
    gates = {gate.name: gate for gate in config.gates}
    for gate in config.gates:
        _check_command(gate, merged, problems)
        if gate.restage and not gate.writes:
            where = merged.where("gates", gate.name, "restage")
            hint = "Add writes = true, so that its changes are looked for."
            problems.append(Problem(where, "has a meaning only for a gate that writes", hint))
        for field in ("on_pass", "on_fail"):
            target = getattr(gate, field)
            if target not in ACTIONS and target not in gates:
                where = merged.where("gates", gate.name, field)
                problems.append(_undefined(where, target, (*ACTIONS, *gates)))
    for hook in config.hooks:
        if hook.name == "pre-push" and hook.unstaged == "hide":
            where = merged.where("hooks", hook.name, "unstaged")
            hint = "Use `checkout`, which is the default, or `keep`."
            message = "a push is of commits; hiding what is unstaged does not show them"
            problems.append(Problem(where, message, hint))
        where = merged.where("hooks", hook.name, "gates")
        problems.extend(_listed_wrongly(where, hook, gates))
        for name in reachable(hook.gates, gates):
            problems += _restaged_elsewhere(merged, hook, gates[name])
            if gates[name].pre_commit is not None:
                _check_pre_commit_place(hook.name, name, where, problems)
    problems += _without_effect(merged, config, problems)
    for circle in _circles(gates):
        where = merged.where("gates", circle[0])
        chain = " → ".join(f"`{name}`" for name in circle)
        hint = "Let one of them end in CONTINUE, BLOCK or STOP instead."
        problems.append(Problem(where, f"its chain comes back to itself: {chain}", hint))


def _check_command(gate: Gate, merged: Settings, problems: list[Problem]) -> None:
    if gate.command is None and gate.pre_commit is None:
        if _has_bad_command(gate.name, problems):
            return  # there is one, and it is reported already
        where = merged.where("gates", gate.name)
        hint = f'Add command = "…" to `{gate.name}`.'
        problems.append(Problem(where, "has no `command`", hint, deferred=True))
    elif gate.command is not None and gate.pre_commit is not None:
        where = merged.where("gates", gate.name, "pre_commit", "pre-commit")
        hint = "Make two gates of it, and name both in the hook."
        problems.append(Problem(where, "stands beside `command`; a gate has one of them", hint))


def _has_bad_command(gate: str, problems: list[Problem]) -> bool:
    nowhere = Document(source="", prefix=(), table={})
    ends = tuple(
        nowhere.where("gates", gate, key).removeprefix(": ") for key in ("command", "pre-commit")
    )
    places = [p.where.rpartition("[")[0] if p.where.endswith("]") else p.where for p in problems]
    return any(where.endswith(ends) for where in places)


def _check_pre_commit_place(hook: str, gate: str, where: str, problems: list[Problem]) -> None:
    point = HOOK_POINTS[hook]
    if point.host == "git" and point.scope == "none":
        message = f"gate `{gate}` runs pre-commit hooks on paths, and {hook} is not about paths"
        problems.append(Problem(where, message, "Use a gate with a command here."))


def _without_effect(merged: Settings, config: Config, problems: list[Problem]) -> list[Problem]:
    """Find settings of the gate `review` where no hook runs it: it would seem to be on."""
    if problems or not merged.review or any("review" in hook.gates for hook in config.hooks):
        return []
    where = merged.document.where("review")
    hint = f'Add it: [tool.gitgates.hooks.{HOOK_OF["turn-end"]}] gates = [..., "review"].'
    message = "no hook lists the gate `review`, so that these settings have no effect"
    return [Problem(where, message, hint, deferred=True)]


def _listed_wrongly(where: str, hook: Hook, gates: dict[str, Gate]) -> list[Problem]:
    """Find what a hook lists and cannot run."""
    found = [
        _undefined(where, name, tuple(gates))
        for name in hook.gates
        if name not in (*gates, *POLICY_GATES)
    ]
    misplaced = hook.name not in ENDING_HOOKS
    return found + [_misplaced(where, n) for n in hook.gates if n in POLICY_GATES and misplaced]


def _restaged_elsewhere(merged: Settings, hook: Hook, gate: Gate) -> list[Problem]:
    """Find a gate whose fixes would be staged in a private checkout, and not in the commit."""
    is_commit = HOOK_POINTS[hook.name].scope == "staged"
    if not (gate.restage and is_commit and hook.unstaged == "checkout"):
        return []
    where = merged.where("hooks", hook.name, "unstaged")
    message = f"in a private checkout, gate `{gate.name}` cannot restage what it fixes"
    return [Problem(where, message, "Use `hide`, which is the default, or take out `restage`.")]


def _misplaced(where: str, name: str) -> Problem:
    message = f"the built-in gate `{name}` decides whether an agent may stop"
    hint = f"List it in {' or '.join(ENDING_HOOKS)} instead."
    return Problem(where, message, hint, deferred=True)


def _undefined(where: str, name: str, known: tuple[str, ...]) -> Problem:
    if name in POLICY_GATES:
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
        gate.name: [a for a in (gate.on_pass, gate.on_fail) if a in gates]
        for gate in gates.values()
    }
    for name in _in_order_of_chains(leads_to):
        del leads_to[name]  # it leads to no circle, so that it is in none
    found: list[tuple[str, ...]] = []
    told: set[str] = set()
    for start in leads_to:
        if start not in told and (chain := _way_back(start, leads_to)):
            found.append(chain)
            told.update(chain)
    return found


def _in_order_of_chains(leads_to: Mapping[str, list[str]]) -> list[str]:
    """Return the gates that lead to no circle, each after those that it leads to."""
    left = {name: len(set(targets)) for name, targets in leads_to.items()}
    callers: dict[str, list[str]] = {name: [] for name in leads_to}
    for name, targets in leads_to.items():
        for target in set(targets):
            callers[target].append(name)
    ended = [name for name, count in left.items() if not count]
    for name in ended:  # which grows while it is walked
        for caller in callers[name]:
            left[caller] -= 1
            if not left[caller]:
                ended.append(caller)
    return ended


def _way_back(start: str, leads_to: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return the shortest chain from `start` to itself, both ends named; empty where none."""
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

"""Settings files to a `Config`: each read value by value, local ones laid over shared ones. Pure.

A problem does not end the reading, so that all are told at once. Only the whole shows a required
gate that local settings take away, a gate that is not there, and a chain that never ends.
"""

from __future__ import annotations

import hashlib
import re
from graphlib import CycleError, TopologicalSorter

from gitgates.clean import visible_line
from gitgates.config.keys import (
    GATE_KEYS,
    HEADLESS_KEYS,
    HOOK_KEYS,
    POLICY_NAMES,
    RESERVED_GATE_NAMES,
    REVIEW_KEYS,
    TOP_KEYS,
    Key,
    foreign_key,
    hook_keys,
)
from gitgates.config.values import BadValue, did_you_mean, show
from gitgates.lifecycle import ENDING_HOOKS, HOOK_OF, HOOK_POINTS, STANDS_IN_FOR
from gitgates.policy import policy_gates
from gitgates.record import Record
from gitgates.types import ACTIONS, Config, Gate, Headless, Hook, Problem, Review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    # Of a table: () for the top, ("review",), ("headless",), ("gates", NAME), ("hooks", NAME).
    Path: TypeAlias = tuple[str, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What could break a line of output, or command a terminal. The JSON Schema says the same.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SECTIONS = ("review", "headless", "gates", "hooks")
_KEYS = (*TOP_KEYS, *GATE_KEYS, *HOOK_KEYS, *REVIEW_KEYS, *HEADLESS_KEYS)
_NAMES = {key.field: key.name for key in _KEYS}
# What a person may still adapt in a required gate, and in a hook that runs one (whose gates are
# looked at apart): nothing that changes what is checked.
_FREE_FIELDS = ("description", "timeout_s", "env")
_FREE_HOOK_FIELDS = ("gates", "strategy")
_DEFAULTS = {"headless": {"strategy": "collect"}}  # every failure is told at once
_STRICT = ("unstaged", "hide")  # gates see what is being committed: nobody is fooled by that


def parse(documents: tuple[Document, ...]) -> tuple[Config, tuple[Problem, ...]]:
    """Return the configuration of the shared document, the local one, or the second over the first.

    The configuration is usable where every problem is a deferred one: a gate that is named but not
    defined, or has no command, stops the hook that reaches it, and no other.
    """
    problems: list[Problem] = []
    shared, *local = [_read(document, problems) for document in documents]
    merged = _merge(shared, local)
    config = _build(merged, tuple(document.source for document in documents))
    for layer in local:
        problems += _required_changed(shared, layer)
        if not problems:
            problems += _required_gone(shared, layer, config)
    _check(config, merged, problems)
    return config, tuple(problems)


def _merge(shared: Settings, local: list[Settings]) -> Settings:
    """Return all layers as one; a later layer wins key by key."""
    merged = Settings(shared.document, {}, {})
    for layer in (shared, *local):
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
        headless=Headless(**merged.tables.get(("headless",), {})),
        gates=tuple(Gate(name=name, **table) for name, table in merged.named("gates").items()),
        hooks=tuple(
            Hook(name=name, **{**_DEFAULTS.get(name, {}), **table})
            for name, table in merged.named("hooks").items()
        ),
    )
    digest = hashlib.sha256(repr(config).encode("utf-8", "replace")).hexdigest()
    return config._replace(digest=digest, sources=sources)


def _required_changed(shared: Settings, local: Settings) -> Iterator[Problem]:
    """Find local settings of gates that the shared ones require."""
    for path in local.tables:
        there = shared.tables.get(path, {})
        if not there.get("required"):
            continue
        is_gate = path[0] == "gates"
        before = Gate(name=path[1], **there) if is_gate else Review(**there)
        article = "" if is_gate else "the "
        message = f"{article}gate `{path[-1]}` is required and cannot be changed locally"
        for where in _changed(before, local, path, free=_FREE_FIELDS if is_gate else ()):
            yield Problem(where, message, _change_shared(shared))


def _required_gone(shared: Settings, local: Settings, config: Config) -> Iterator[Problem]:
    """Find required gates that local settings keep from running in a hook, or on all of it."""
    gates = {name: Gate(name=name, **table) for name, table in shared.named("gates").items()}
    merged = {gate.name: gate for gate in config.gates}
    policies = policy_gates() if shared.tables.get(("review",), {}).get("required") else ()
    hooks = shared.named("hooks")
    for hook in config.hooks:
        # What would run without the local settings: another hook's gates, maybe.
        table = hooks.get(hook.name, hooks.get(STANDS_IN_FOR.get(hook.name, hook.name), {}))
        before = Hook(name=hook.name, **table)
        required = [name for name in reachable(before.gates, gates) if gates[name].required]
        required += [name for name in policies if name in before.gates]
        after = (*reachable(hook.gates, merged), *hook.gates)
        for name in required:
            if name in after:
                continue
            if hook.gates != before.gates:
                where = local.document.where("hooks", hook.name, "gates")
                message = f"takes the required gate `{name}` away"
                yield Problem(where, message, f"Put `{name}` back into the list.")
            else:
                message = f"cuts the chain of {hook.name} to the required gate `{name}`"
                hint = f"Leave `on_pass` and `on_fail` as {shared.document.source} has them."
                yield Problem(local.document.where("gates"), message, hint)
        if required:
            for where in _changed(before, local, ("hooks", hook.name), free=_FREE_HOOK_FIELDS):
                why = f"the required gate `{required[0]}` runs at {hook.name}"
                yield Problem(where, f"cannot be changed locally: {why}", _change_shared(shared))


def _changed(
    before: Gate | Hook | Review, local: Settings, path: Path, *, free: tuple[str, ...]
) -> Iterator[str]:
    """Yield the places of a table, but for the free fields, in which local settings differ."""
    for field, value in local.tables.get(path, {}).items():
        is_free = field in free or (field, value) == _STRICT
        if not is_free and getattr(before, field) != value:
            yield local.where(*path, field=field)


def _change_shared(shared: Settings) -> str:
    return f"Change it in {shared.document.source}, where everybody sees it."


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
    """Append problems between the parts of `config`."""
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
    if circle := _circle(gates):
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
    if gate.ratchet and not gate.metrics:
        message = "has a meaning only for a gate with `metrics`"
        yield Problem(merged.where(*path, field="ratchet"), message)
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


def _circle(gates: dict[str, Gate]) -> list[str]:
    """Return a cycle of actions, from its first gate in the file; empty if there is none."""
    leads_to = {gate.name: (gate.on_pass, gate.on_fail) for gate in gates.values()}
    try:
        TopologicalSorter(leads_to).prepare()
    except CycleError as error:
        chain: list[str] = error.args[1][:0:-1]  # each leads to the next, the last to the first
        first = chain.index(min(chain, key=list(gates).index))
        return [*chain[first:], *chain[: first + 1]]
    return []


class Document(Record):
    """One settings file, as TOML gave it."""

    source: str  # the file's name
    prefix: tuple[str, ...]  # the table that holds our keys
    table: dict[str, Any]

    def where(self, *path: str) -> str:
        """Name a place in this file, such as `pyproject.toml: tool.gitgates.gates.lint`."""
        keys = (*self.prefix, *path)
        dotted = ".".join(key if _BARE_KEY.fullmatch(key) else show(key) for key in keys)
        return f"{self.source}: {dotted}" if dotted else self.source


class Settings(Record):
    """What one document, or several merged ones, set."""

    document: Document
    tables: dict[Path, dict[str, Any]]  # path → record field → value
    origins: dict[Path, Document]  # path, and path with a field that is written there, right or not

    def named(self, section: str) -> dict[str, dict[str, Any]]:
        """Return the tables of one section, by name."""
        return {path[1]: table for path, table in self.tables.items() if path[:1] == (section,)}

    def where(self, *path: str, field: str = "") -> str:
        """Name a table, or a field of it, in the file that set it."""
        document = self.origins.get((*path, field) if field else path, self.document)
        return document.where(*path, *([_NAMES[field]] if field else []))


def _read(document: Document, problems: list[Problem]) -> Settings:
    """Parse one document, value by value; what does not fit goes to `problems`."""
    settings = Settings(document, {}, {})
    _read_table(settings, (), document.table, keys=TOP_KEYS, problems=problems)
    for section in ("gates", "hooks"):
        tables = document.table.get(section, {})
        if not isinstance(tables, dict):
            message = f"got {show(tables)}, expected a table for each name"
            problems.append(Problem(document.where(section), message))
            continue
        for name, table in tables.items():
            _read_named(settings, (section, name), table, problems)
    for section, keys, try_it in (
        ("review", REVIEW_KEYS, 'mode = "remind", and list `review` in a hook.'),
        ("headless", HEADLESS_KEYS, 'agent = "claude".'),
    ):
        table = document.table.get(section, {})
        if isinstance(table, dict):
            _read_table(settings, (section,), table, keys=keys, problems=problems)
        else:
            hint = f"Try [tool.gitgates.{section}] with {try_it}"
            problems.append(_no_table(document, (section,), table, hint))
    return settings


def _read_named(settings: Settings, path: Path, table: object, problems: list[Problem]) -> None:
    is_gate, name = path[0] == "gates", path[1]
    if not isinstance(table, dict):
        # Guess which key was meant.
        key, kind = ("command", str) if is_gate else ("gates", list)
        hint = f"Try {{ {key} = {show(table)} }}." if isinstance(table, kind) else ""
        problems.append(_no_table(settings.document, path, table, hint))
        return
    message, hint = _wrong_name(path[0], name)
    if message:
        problems.append(Problem(settings.document.where(*path), message, hint))
        return
    keys = GATE_KEYS if is_gate else hook_keys(name)
    _read_table(settings, path, table, keys=keys, problems=problems)


def _no_table(document: Document, path: Path, value: object, hint: str) -> Problem:
    return Problem(document.where(*path), f"got {show(value)}, expected a table", hint)


def _read_table(
    settings: Settings,
    path: Path,
    table: dict[str, Any],
    *,
    keys: tuple[Key, ...],
    problems: list[Problem],
) -> None:
    document = settings.document
    known = (*(key.name for key in keys), *(() if path else _SECTIONS))
    for name in table:
        if name not in known:
            hint = _unknown_key_hint(document, path, name, known)
            problems.append(Problem(document.where(*path, name), "unknown key", hint))
    found = settings.tables.setdefault(path, {})
    settings.origins[path] = document
    for key in keys:
        if key.name not in table:
            continue
        settings.origins[*path, key.field] = document
        value = table[key.name]
        try:
            found[key.field] = key.type.parse(value)
        except BadValue as bad:
            where = document.where(*path, key.name, *bad.keys) + bad.index
            message = f"got {show(bad.part_of(value))}, expected {bad.expected}"
            problems.append(Problem(where, message, bad.hint))


def _unknown_key_hint(document: Document, path: Path, name: str, known: tuple[str, ...]) -> str:
    """Return the hint for an unknown key: its place, its name here, or a similar key."""
    tool = document.table.get("tool") if not (path or document.prefix) else None
    if name == "tool" and isinstance(tool, dict) and "gitgates" in tool:
        return f"In {document.source}, leave `tool.gitgates.` out: [gates.x]."
    for key in HOOK_KEYS if path[:1] == ("hooks",) else ():
        if key.name == name:
            return f"`{name}` has a meaning only for {', '.join(key.only_in)}."
    hint = foreign_key(name) or did_you_mean(name, known)
    return hint or f"Known here: {', '.join(known)}."


def _wrong_name(section: str, name: str) -> tuple[str, str]:
    """Return what is wrong with the name of a gate or hook, and what to do; empty where nothing."""
    if section == "hooks":
        if name in HOOK_POINTS:
            return "", ""
        known = "the hooks of githooks(5), an agent's events such as Stop, headless and manual"
        hint = did_you_mean(name, tuple(HOOK_POINTS)) or f"Known are {known}."
        return f"unknown hook `{visible_line(name)}`", hint
    if name.casefold() in {word.casefold() for word in RESERVED_GATE_NAMES}:
        message = f"`{name}` is the name of an action or of a built-in policy"
        return message, "Choose another name for the gate."
    if "," in name:
        message = f"got {show(name)}, expected a name without a comma"
        return message, "Commas separate names in GITGATES_SKIP."
    if not name or name != name.strip() or _CONTROL.search(name):
        return f"got {show(name)}, expected a name on one line, without spaces at its ends", ""
    return "", ""

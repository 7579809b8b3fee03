"""Make a `Config` of settings files: read each value by value, then lay local over shared. Pure.

A problem does not end the parsing, so all are reported at once. Only the merged settings show that
local ones remove a required gate, that a gate does not exist, or that a chain never ends.
"""

from __future__ import annotations

import hashlib
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from gitgates.config import FILES, LOCAL_FILE
from gitgates.config.keys import POLICY_NAMES, completed, defaults, tables
from gitgates.config.read import Document, Settings, read_settings
from gitgates.config.values import did_you_mean
from gitgates.core.clean import visible_line
from gitgates.core.lifecycle import (
    ENDING_HOOKS,
    GATES_OWN_TIME,
    HOOK_POINTS,
    STANDS_IN_FOR,
    TOOL_EVENTS,
)
from gitgates.core.policy import POLICIES, policy_gates
from gitgates.core.types import ACTIONS, Config, Gate, Hook, Problem, make_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from gitgates.config.read import Path

# What a person may still adapt in a required gate, and in a hook that runs one (whose gates are
# checked separately): nothing that changes what is checked.
_FREE_FIELDS = ("description", "timeout_s", "weight", "after", "resources")
_FREE_HOOK_FIELDS = ("gates", "strategy", "fail_fast")
_DEFAULTS = {"headless": {"strategy": "collect"}}  # reports every failure at once
_MOST_NAMED = 50
_STRICT = ("unstaged", "hide")  # gates see what is being committed: that hides nothing
# Of a member: only gates, and the hooks that run them. Everything else applies to the whole
# repository, or to a whole hook, and belongs to the root.
OF_FILES = ("requires", "root", "extends")  # they decide which files are read, in sources.py
_MEMBER_TOP_FIELDS = ("requires", "root", "members", "extends")  # `members` is refused elsewhere
_WITHOUT_PATHS = ("none", "message")
_SPECIAL_IN_PATTERNS = "\\*?["


def parse(
    documents: tuple[Document, ...], problems_between: Iterable[Problem] = ()
) -> tuple[Config, tuple[Problem, ...]]:
    """Return the configuration of shared documents, with a local one laid over them, and problems.

    The configuration is usable if every problem is deferred: a gate that is named but not defined,
    or has no command, stops only hooks that reach it.
    """
    problems = [*problems_between]
    layers = [read_settings(document, problems) for document in documents]
    local = [layer for layer in layers[1:] if layer.document.source == LOCAL_FILE]
    shared = _shared(layers[: len(layers) - len(local)], problems)
    for layer in local:
        problems += _only_new_entries(shared, layer)
    merged = _merge([shared, *local], shared.document)
    files = dict.fromkeys(document.source for document in documents)
    config = _build(merged, tuple(sorted(files, key=lambda file: file not in FILES)))
    for layer in local:
        problems += _required_changed(shared, layer)
        if not problems:
            problems += _required_removed(shared, layer, config)
    _check(config, merged, problems)
    return config, tuple(dict.fromkeys(problems))  # a file is read for each that extends it


def _shared(layers: list[Settings], problems: list[Problem]) -> Settings:
    """Return the settings of the root and its members as one."""
    by_member: dict[str, list[Settings]] = {}
    for layer in layers:
        by_member.setdefault(layer.document.member, []).append(layer)
    root, *members = [_merge(of_one, of_one[-1].document) for of_one in by_member.values()]
    return _with_members(root, members, problems) if members else root


def _with_members(root: Settings, members: list[Settings], problems: list[Problem]) -> Settings:
    """Return the root's settings, with its members' added.

    A member's document has its folder: `web:lint` is the gate `lint` of `web`.
    """
    tables, origins = {**root.tables}, {**root.origins}
    all_hooks = [root.tables_of("hooks")]
    for part in members:
        problems += _misplaced(root, part)
        member = part.document.member
        names = {name: f"{member}:{name}" for name in part.tables_of("gates")}
        hooks = part.tables_of("hooks")
        for name, table in part.tables_of("gates").items():
            path = ("gates", names[name])
            if path in tables:
                message = f"is the name of a gate of {part.document.source}"
                problems.append(Problem(root.location(*path), message, "Choose another name."))
            tables[path] = _scoped(table, member, names)
            by_path = {at: doc for at, doc in part.origins.items() if at[:2] == ("gates", name)}
            origins |= {(*path, *at[2:]): document for at, document in by_path.items()}
        for hook, table in hooks.items():
            listed = tuple(names.get(name, name) for name in table.get("gates", ()))
            hooks[hook] = {"gates": listed}
            document = part.origins["hooks", hook]
            origins.setdefault(("hooks", hook), document)
            origins |= {("hooks", hook, "gates", name): document for name in listed}
        all_hooks.append(hooks)
    tables |= {("hooks", name): table for name, table in _joined(all_hooks)}
    return root._replace(tables=tables, origins=origins)


def _joined(all_hooks: list[dict[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each hook with the gates of the root (the first entry) and of all members."""
    for name in dict.fromkeys(name for hooks in all_hooks for name in hooks):
        other = STANDS_IN_FOR.get(name, name)
        first, *others = [hooks.get(name, hooks.get(other, {})) for hooks in all_hooks]
        gates = dict.fromkeys(gate for table in others for gate in table.get("gates", ()))
        of_root = first.get("gates", ())
        yield name, {**first, "gates": (*of_root, *(g for g in gates if g not in of_root))}


def _scoped(table: dict[str, Any], member: str, names: dict[str, str]) -> dict[str, Any]:
    """Return the table of a gate whose folders and patterns are relative to the root."""
    place = "/" + "".join(f"\\{char}" if char in _SPECIAL_IN_PATTERNS else char for char in member)
    folder = table.get("working_dir", ".")
    scoped = {
        **table,
        "working_dir": member if folder == "." else f"{member}/{folder}",
        "files": (f"{place}/",),
    }
    for field in ("files", "exclude", "inputs"):
        if table.get(field) is not None:
            scoped[field] = tuple(_below(place, pattern) for pattern in table[field])
    for field in ("ignored_inputs", "outputs"):
        if field in table:
            scoped[field] = tuple(f"{member}/{path}" for path in table[field])
    if "examples" in table:
        scoped["examples"] = tuple((kind, f"{member}/{path}") for kind, path in table["examples"])
    for field in ("on_pass", "on_fail"):
        if table.get(field, "BLOCK") not in ACTIONS:
            scoped[field] = names.get(table[field], table[field])
    if "after" in table:
        scoped["after"] = tuple(names.get(name, name) for name in table["after"])
    return scoped


def _below(place: str, pattern: str) -> str:
    """Return a folder's gitignore pattern as a pattern of the root, by gitignore(5)."""
    negated = pattern.startswith("!")
    body = pattern[negated:]
    if body.startswith(("\\!", "\\#")):
        body = body[1:]
    is_anchored = "/" in body.rstrip("/")
    body = body.lstrip("/") if is_anchored else f"**/{body}"
    return f"{'!' if negated else ''}{place}/{body}"


def _misplaced(root: Settings, part: Settings) -> Iterator[Problem]:
    """Yield what a member may not set."""
    hint = f"Set it in {root.document.source}."

    def problem(message: str, *path: str, field: str = "") -> Problem:
        return Problem(part.location(*path, field=field), message, hint)

    for path, table in part.tables.items():
        match path:
            case ():
                for field in table.keys() - {*_MEMBER_TOP_FIELDS}:
                    yield problem("applies to the whole repository", field=field)
            case ("gates", _name):
                pass
            case ("hooks", name):
                for field in table.keys() - {"gates"}:
                    yield problem("applies to the whole hook", *path, field=field)
                point = HOOK_POINTS[name]
                by_agent = point.kind in (*TOOL_EVENTS, *GATES_OWN_TIME)
                if point.scope in _WITHOUT_PATHS and not by_agent:
                    message = "has no paths, but a member's gates run for the paths below it"
                    yield problem(message, *path)
                for gate in {*policy_gates()} & {*table.get("gates", ())}:
                    yield problem(f"`{gate}` is about the whole repository", *path, field="gates")
            case _:
                yield problem("applies to the whole repository", *path)


def _only_new_entries(shared: Settings, local: Settings) -> Iterator[Problem]:
    """Leave out local array entries that the shared settings also have: they could only weaken."""
    for array in [table.name for table in tables().values() if table.id_of]:
        for name in local.tables_of(array).keys() & shared.tables_of(array).keys():
            del local.tables[array, name]
            location, shared_file = local.document.location(array, name), shared.document.source
            message = f"is also in {shared_file}, which takes precedence"
            yield Problem(location, message, "Give the local one a different `id`.", deferred=True)


def _merge(layers: list[Settings], document: Document) -> Settings:
    """Return all layers as one, under this document; a later layer wins key by key."""
    merged = Settings(document, {}, {})
    for layer in layers:
        for path, table in layer.tables.items():
            merged.tables[path] = {**merged.tables.get(path, {}), **table}
        for path, origin in layer.origins.items():
            is_table = path in layer.tables  # a table belongs to the first layer that has it
            merged.origins[path] = merged.origins.get(path, origin) if is_table else origin
    return merged


def _build(merged: Settings, sources: tuple[str, ...]) -> Config:
    by_table = [row.table for row in POLICIES if "by-table" in row.traits]
    features: dict[str, Any] = {}
    for name, table in tables().items():
        if table.id_of:
            entries = merged.tables_of(name).values()
            features |= (
                {name: tuple(completed(name, entry) for entry in entries)} if entries else {}
            )
        elif name not in by_table or (name,) in merged.tables:
            features[name] = completed(name, merged.tables.get((name,), {}))
    top = {name: value for name, value in merged.tables[()].items() if name not in OF_FILES}
    config = Config(
        **top,
        tables=features,
        tuned=tuple(
            name for name, table in features.items() if name in by_table or table != defaults(name)
        ),
        gates=tuple(
            make_gate(name=name, **table) for name, table in merged.tables_of("gates").items()
        ),
        hooks=tuple(
            Hook(name=name, **{**_DEFAULTS.get(name, {}), **table})
            for name, table in merged.tables_of("hooks").items()
        ),
    )
    digest = hashlib.sha256(repr(config).encode("utf-8", "replace")).hexdigest()
    return config._replace(digest=digest, sources=sources)


def _required_changed(shared: Settings, local: Settings) -> Iterator[Problem]:
    """Find local settings of gates that the shared ones require."""
    for path in local.tables:
        shared_table = shared.tables.get(path, {})
        if not shared_table.get("required"):
            continue
        is_gate = path[0] == "gates"
        gate = make_gate(name=path[1], **shared_table).table() if is_gate else {}
        before = gate or completed(path[0], shared_table)
        what = "gate " if is_gate else "the gate " if path[0] in policy_gates() else ""
        message = f"{what}`{path[-1]}` is required and cannot be changed locally"
        for location in _changed(before, local, path, free=_FREE_FIELDS if is_gate else ()):
            yield Problem(location, message, _change_shared(shared, path))


def _required_removed(shared: Settings, local: Settings, config: Config) -> Iterator[Problem]:
    """Find required gates that local settings keep from running in a hook, or on all its paths."""
    gates = {
        name: make_gate(name=name, **table) for name, table in shared.tables_of("gates").items()
    }
    merged = {gate.name: gate for gate in config.gates}
    policies = [
        row.gate
        for row in POLICIES
        if row.gate and shared.tables.get((row.table,), {}).get("required")
    ]
    hooks = shared.tables_of("hooks")
    for hook in config.hooks:
        # What would run without the local settings, which may be another hook's gates.
        table = hooks.get(hook.name, hooks.get(STANDS_IN_FOR.get(hook.name, hook.name), {}))
        before = Hook(name=hook.name, **table)
        required = [
            name for name in reachable_defined(before.gates, gates) if gates[name].actions.required
        ]
        required += [name for name in policies if name in before.gates]
        after = (*reachable_defined(hook.gates, merged), *hook.gates)
        for name in required:
            if name in after:
                continue
            if hook.gates != before.gates:
                location = local.document.location("hooks", hook.name, "gates")
                message = f"removes the required gate `{name}`"
                yield Problem(location, message, f"Add `{name}` to the list again.")
            else:
                message = f"breaks the chain of {hook.name} to the required gate `{name}`"
                hint = f"Keep `on_pass` and `on_fail` as in {shared.document.source}."
                yield Problem(local.document.location("gates"), message, hint)
        if required:
            shared_table, path = before._asdict(), ("hooks", hook.name)
            for location in _changed(shared_table, local, path, free=_FREE_HOOK_FIELDS):
                why = f"the required gate `{required[0]}` runs at {hook.name}"
                message = f"cannot be changed locally: {why}"
                yield Problem(location, message, _change_shared(shared, path))


def _changed(
    before: Mapping[str, Any], local: Settings, path: Path, *, free: tuple[str, ...]
) -> Iterator[str]:
    """Yield the locations in a table where local settings differ, except for the free fields."""
    for field, value in local.tables.get(path, {}).items():
        is_free = field in free or (field, value) == _STRICT
        if not is_free and before[field] != value:
            yield local.location(*path, field=field)


def _change_shared(shared: Settings, path: Path) -> str:
    return f"Change it in {shared.origins.get(path, shared.document).source} instead."


def reachable_defined(names: tuple[str, ...], gates: dict[str, Gate]) -> tuple[str, ...]:
    """Return the defined gates that the named ones lead to, themselves included, in order."""
    reached: dict[str, None] = {}
    waiting = list(names)
    for name in waiting:  # grows during the walk
        gate = gates.get(name)
        if gate is None or name in reached:
            continue
        reached[name] = None
        waiting += [
            action
            for action in (gate.actions.on_pass, gate.actions.on_fail)
            if action not in ACTIONS
        ]
    return tuple(reached)


def _check(config: Config, merged: Settings, problems: list[Problem]) -> None:
    """Append problems between parts of `config`."""
    gates = {gate.name: gate for gate in config.gates}
    for gate in config.gates:
        problems += _wrong_in_gate(gate, gates, merged)
    for hook in config.hooks:
        problems += _wrong_in_hook(hook, gates, merged)
    named = tuple(dict.fromkeys(name for gate in config.gates for name in gate.schedule.resources))
    for name, _count in config.resources:
        if name not in named and (hint := did_you_mean(name, named)):
            message = f"no gate has the resource `{name}`"
            problems.append(Problem(merged.location(field="resources"), message, hint))
    in_tables = [
        problem
        for table in tables().values()
        if table.validate
        for problem in table.validate(config, merged)
    ]
    problems += [problem for problem in in_tables if not problem.deferred]
    problems += [problem for problem in in_tables if problem.deferred] if not problems else []
    leads_to = {gate.name: [gate.actions.on_pass, gate.actions.on_fail] for gate in gates.values()}
    if circle := _circle(leads_to):
        message = f"its chain of actions is a cycle: {_arrows(circle)}"
        hint = "Make one of them end in CONTINUE, BLOCK or STOP."
        problems.append(Problem(merged.location("gates", circle[0]), message, hint))
        return
    for gate in config.gates:
        for name in gate.schedule.after:
            leads_to.get(name, []).append(gate.name)
    if circle := _circle(leads_to):
        pairs = pairwise(circle)
        waiting = next(after for name, after in pairs if name in gates[after].schedule.after)
        message = f"makes a cycle in the order in which gates run: {_arrows(circle)}"
        hint = f"Remove one of them from `after` of `{waiting}`."
        problems.append(Problem(merged.location("gates", waiting, field="after"), message, hint))


def _wrong_in_gate(gate: Gate, gates: dict[str, Gate], merged: Settings) -> Iterator[Problem]:
    path = ("gates", gate.name)
    if gate.program.command is not None and gate.program.pre_commit is not None:
        hint = "Split it into two gates, and list both in the hook."
        message = "cannot be combined with `command`"
        yield Problem(merged.location(*path, field="pre_commit"), message, hint)
    # An invalid one is already reported.
    is_read = all(
        (*path, field) not in merged.origins or field in merged.tables[path]
        for field in ("command", "pre_commit")
    )
    if gate.program.command is None and gate.program.pre_commit is None and is_read:
        hint = f'Add command = "…" to `{gate.name}`.'
        yield Problem(merged.location(*path), "has no `command`", hint, deferred=True)
    for field, message, hint in _missing_keys(gate):
        yield Problem(merged.location(*path, field=field), message, hint)
    for name in gate.schedule.after:
        if name not in gates:
            yield _undefined(merged.location(*path, field="after"), name, tuple(gates))
    for field, target in (("on_pass", gate.actions.on_pass), ("on_fail", gate.actions.on_fail)):
        if target not in ACTIONS and target not in gates:
            yield _undefined(merged.location(*path, field=field), target, (*ACTIONS, *gates))


def _missing_keys(gate: Gate) -> Iterator[tuple[str, str, str]]:
    """Yield each key of a gate that needs another one: the field, what it needs, and a hint."""
    if gate.program.restage and not gate.program.writes:
        yield "restage", "requires `writes = true`", "Add writes = true to detect its changes."
    yield from _wrong_for_reuse(gate)
    yield from _wrong_for_remote(gate)
    if gate.measures.ratchet and not gate.measures.metrics:
        yield "ratchet", "requires `metrics`", ""
    if gate.measures.tolerance and not gate.measures.ratchet:
        yield "tolerance", "requires `ratchet`", ""
    if gate.measures.baseline == "file" and not gate.measures.failures:
        yield "baseline", 'as "file" requires `failures`', ""
    if gate.schedule.parallel and not gate.program.pass_files:
        hint = 'To run gates in parallel, write `strategy = "collect"` in the hook.'
        yield "parallel", "requires `pass_files = true`", hint
    if gate.schedule.parallel and gate.program.pre_commit is not None:
        yield "parallel", "cannot be combined with `pre-commit`, which splits the paths itself", ""


def _wrong_for_reuse(gate: Gate) -> Iterator[tuple[str, str, str]]:
    if gate.reuse.mode == "by-file" and not gate.program.pass_files:
        yield "reuse", 'as "by-file" requires `pass_files = true`', ""
    for path in gate.reuse.reads:
        if not path.startswith(("/", "~/", "../")) or {"*", "?"} & {*path}:
            hint = "Files of the repository are compared anyway, or by `inputs`."
            message = f"got `{visible_line(path)}`, expected `/path`, `~/path` or `../name`"
            yield "reads", message, hint
    if gate.reuse.inputs and all(pattern.startswith("!") for pattern in gate.reuse.inputs):
        hint = 'Patterns with `!` only exclude what others match: put "/*" first.'
        yield "inputs", "matches no file", hint
    for name in gate.reuse.env_inputs:
        if "=" in name or " " in name:
            message = f"got `{visible_line(name)}`, expected the name of a variable"
            yield "env_inputs", message, "Name it without its value."


def _wrong_for_remote(gate: Gate) -> Iterator[tuple[str, str, str]]:
    for field in ("ignored_inputs", "outputs"):
        for path in getattr(gate.remote, field):
            names = {*path.rstrip("/").lower().split("/")}
            if path.startswith("~") or {"", "..", ".", ".git"} & names or {"*", "?"} & {*path}:
                message = f"got `{visible_line(path)}`, expected a path relative to the root"
                yield field, message, "Such as node_modules."
    if gate.remote.allowed and gate.schedule.resources:
        yield "resources", "cannot be combined with `remote`: they belong to this machine", ""
    if gate.remote.allowed and gate.program.writes:
        hint = "Split it into two gates, or remove `remote`."
        yield "remote", "cannot be combined with `writes`: its changes stay there", hint


def _wrong_in_hook(hook: Hook, gates: dict[str, Gate], merged: Settings) -> Iterator[Problem]:
    path = ("hooks", hook.name)
    point = HOOK_POINTS[hook.name]
    location = merged.location(*path, field="gates")
    unknown = [name for name in hook.gates if name not in (*gates, *policy_gates())]
    for name in unknown[:_MOST_NAMED]:
        by_member = merged.origins.get((*path, "gates", name))  # which lists it
        place = by_member.location(*path, "gates") if by_member else location
        yield _undefined(place, name, tuple(gates))
    if len(unknown) > _MOST_NAMED:
        message = f"{len(unknown) - _MOST_NAMED} more gates are not defined"
        yield Problem(location, message, deferred=True)
    for name in hook.gates:
        if name in policy_gates() and hook.name not in ENDING_HOOKS:
            message = f"the built-in gate `{name}` decides whether an agent may stop"
            hint = f"List it in {' or '.join(ENDING_HOOKS)} instead."
            yield Problem(location, message, hint, deferred=True)
    for name in reachable_defined(hook.gates, gates):
        if gates[name].program.restage and point.scope == "staged" and hook.unstaged == "checkout":
            message = f"in a private checkout, gate `{name}` cannot restage what it fixes"
            hint = "Use `hide` (the default), or remove `restage`."
            yield Problem(merged.location(*path, field="unstaged"), message, hint)
        if gates[name].program.pre_commit is not None and (point.host, point.scope) == (
            "git",
            "none",
        ):
            message = f"gate `{name}` runs pre-commit hooks on paths, but {hook.name} has no paths"
            yield Problem(location, message, "Use a gate with a command.")


def _undefined(location: str, name: str, defined: tuple[str, ...]) -> Problem:
    if name in policy_gates():
        hint = f"`{name}` is a built-in gate: list it in a hook only."
    elif name in POLICY_NAMES:
        hint = f"`{name}` is a built-in policy, not a gate; it cannot be listed in a hook."
    elif name in ACTIONS:
        hint = f"`{name}` is an action, not a gate."
    else:
        hint = did_you_mean(name, defined) or "Define it with a command, or remove the name."
    return Problem(location, f"gate `{visible_line(name)}` is not defined", hint, deferred=True)


def _arrows(names: list[str]) -> str:
    return " → ".join(f"`{name}`" for name in names)


def _circle(leads_to: dict[str, list[str]]) -> list[str]:
    """Return a cycle of gates, from the first one in the file; empty if there is none."""
    try:
        TopologicalSorter(leads_to).prepare()
    except CycleError as error:
        chain: list[str] = error.args[1][:0:-1]  # each leads to the next, the last to the first
        first = chain.index(min(chain, key=list(leads_to).index))
        return [*chain[first:], *chain[: first + 1]]
    return []

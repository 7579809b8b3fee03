"""The rules that policies apply in a session: those that a person approved, not what it wrote.

Policies' settings, and entries that block, are those that the files had when the session began;
files of policies' own count as HEAD had them then. So an agent gains nothing by rewriting them.
What a person writes meanwhile applies to later sessions, and to running ones after
`gitgates approve rules` in a terminal. The session's journal keeps the rules (`what` is `rules`), a
log of the worktree what was approved since.
"""

from __future__ import annotations

import time

from gitgates.config.load import unconfigured
from gitgates.core.errors import StateError
from gitgates.core.policy import POLICIES, functions_of, is_kept, kept_entries, policy_gates
from gitgates.core.types import Config, Hook
from gitgates.journal.entries import RulesEntry, SnapshotEntry
from gitgates.journal.journal import fact_of, of_kind, stamp_of
from gitgates.store.log import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gitgates.core.policy import Policy
    from gitgates.drivers.call import Call
    from gitgates.git.repo import Repo
    from gitgates.store.log import Fact

APPROVE = "gitgates approve rules"
_APPROVED = "approved-rules.jsonl"


def rules_of(call: Call) -> Fact:
    """Return the rules of a session, with what was approved since; empty if none are recorded."""
    if not call.session.rules and not call.elsewhere:
        return {}
    first = first_rules([*call.session.rules, *call.entries_elsewhere])
    states = [f"{folder}/gitgates" for folder in call.elsewhere]
    return with_approvals(first, [call.repo.state_abs, *states]) if first else {}


def settings_in_force(call: Call, config: Config | None) -> Config | None:
    """Return the files' configuration with the policy settings that are in force.

    If the session has removed the whole configuration, those settings stay. None: there is none.
    """
    rules = rules_of(call)
    if not rules:
        return config
    base = config or unconfigured()
    if policy_settings(base) == {name: rules[name] for name in _parts()}:
        return config
    tables = _with_tables(base.tables, rules)
    changed = [name for name, table in tables.items() if table != base.tables.get(name)]
    return base._replace(
        tables=tables,
        tuned=tuple(dict.fromkeys((*base.tuned, *changed))),
        hooks=_with_gates(base.hooks, rules["gates"]),
    )


def _with_tables(tables: Mapping[str, Any], rules: Fact) -> dict[str, Any]:
    """Return tables with those in rules, and arrays with the entries in rules."""
    merged = {**tables}
    for row in _tables():
        if row.table in rules["settings"]:
            merged.pop(row.table, None)
            table = rules["settings"][row.table]
            merged |= {row.table: unplain(table)} if table is not None else {}
    for row in _arrays():
        recorded = {entry["id"]: unplain(entry) for entry in rules[row.table]}
        others = [entry for entry in tables.get(row.table, ()) if entry["id"] not in recorded]
        merged.pop(row.table, None)
        merged |= {row.table: (*recorded.values(), *others)} if recorded or others else {}
    return merged


def are_in_force(call: Call, config: Config) -> bool:
    """Return whether policies' settings are in force as a configuration has them."""
    rules, now = rules_of(call), policy_settings(config)
    return all(rules.get(name, now[name]) == now[name] for name in _parts())


def first_rules(facts: Iterable[Fact]) -> Fact | None:
    """Return the entry of the rules that a session began with, in the worktree that it began in.

    Rules that another version recorded in another form do not count.
    """
    entries = [
        fact
        for fact in of_kind(facts, RulesEntry)
        if isinstance(fact["rules"], dict) and fact["rules"].keys() >= {*_parts()}
    ]
    return min(entries, key=stamp_of, default=None)


def begin(call: Call) -> Fact:
    """Record the rules of a session at its first event, or take over those of its beginning.

    Return them.
    """
    first = first_rules([*call.session.rules, *call.entries_elsewhere])
    if first is None:
        heads = (fact.get("head") for fact in of_kind(call.entries, SnapshotEntry))
        rules = rules_now(call.repo, call.config, head=str(next(filter(None, heads), "HEAD")))
    else:
        rules = first["rules"]
    call.record(RulesEntry(first["t"] if first else time.time(), rules))
    return rules


def rules_now(repo: Repo, config: Config, *, head: str) -> Fact:
    """Return the rules that a session begins with at a commit."""
    rules = policy_settings(config)
    # What policies keep in files of their own.
    for rules_at in functions_of(config, "rules_at", "session-start"):
        rules |= rules_at(repo, config, head)
    return rules


# What a person has approved, the oldest first.


def approve(repo: Repo, fields: Fact) -> None:
    """Record what a person approves: rules, or parts of them. Raises: StateError."""
    journal = Journal(f"{repo.state_abs}/{_APPROVED}")
    try:
        journal.append(fact_of(RulesEntry(time.time(), fields)))
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error


def approve_entry(repo: Repo, table: str, name: str, entry: Mapping[str, Any] | None) -> None:
    """Apply the change of one array entry. None: it is gone. Raises: StateError."""
    entries = [plain(entry)] if entry and is_kept(table, entry) else []
    approve(repo, {"table": table, "id": name, "is": entries})


def approvals(state_abs: str) -> list[Fact]:
    """Return what a person has approved in a worktree. Raises: OSError."""
    return of_kind(Journal(f"{state_abs}/{_APPROVED}").read(), RulesEntry)


def with_approvals(first: Fact, states_abs: Iterable[str]) -> Fact:
    """Return the rules of an entry, with what was approved since in worktrees.

    `states_abs`: their state folders.
    """
    rules = {**first["rules"]}
    approved = [approval for state_abs in states_abs for approval in approvals(state_abs)]
    for approval in sorted(approved, key=stamp_of):
        parts = approval["rules"]
        if stamp_of(approval) < stamp_of(first):
            continue
        if "id" in parts:  # of one entry of an array
            others = [other for other in rules[parts["table"]] if other["id"] != parts["id"]]
            rules[parts["table"]] = [*others, *parts["is"]]
            continue
        if not parts.keys() <= {*_parts()}:  # what a policy keeps in a file of its own
            rules.pop("problem", None)
        rules |= parts
    return rules


# What rules consist of.


def policy_settings(config: Config) -> Fact:
    """Return the policies' settings, as a journal has them."""
    tables = {row.table: config.tables.get(row.table) for row in _tables()}
    policies = policy_gates()
    gates = {hook.name: [name for name in hook.gates if name in policies] for hook in config.hooks}
    return {
        "settings": {name: table and plain(table) for name, table in tables.items()},
        "gates": {name: names for name, names in gates.items() if names},
        **{row.table: [plain(entry) for entry in kept_entries(config, row)] for row in _arrays()},
    }


def _tables() -> list[Policy]:
    return [row for row in POLICIES if "keeps-settings" in row.traits and not row.kept_where]


def _arrays() -> list[Policy]:
    return [row for row in POLICIES if row.kept_where]


def _parts() -> list[str]:
    return ["settings", "gates", *[row.table for row in _arrays()]]


def _with_gates(hooks: tuple[Hook, ...], gates_by_hook: dict[str, list[str]]) -> tuple[Hook, ...]:
    """Return hooks that list the gates of policies that they listed."""
    by_name = {hook.name: hook for hook in hooks}
    for name, gates in gates_by_hook.items():
        hook = by_name.get(name, Hook(name=name))
        missing = [gate for gate in gates if gate not in hook.gates]
        by_name[name] = hook._replace(gates=(*hook.gates, *missing))
    return tuple(by_name.values())


def plain(fields: Mapping[str, Any]) -> Fact:
    """Return fields of a record as JSON has them."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


def unplain(fields: Fact) -> dict[str, Any]:
    """Return the fields that `plain` has converted."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }

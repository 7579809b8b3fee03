"""The rules that policies apply in a session: those that a person approved, not what it wrote.

The settings of policies, and advice that blocks, are those that the files had as the session began;
what policies keep in files of their own is that of HEAD then. So an agent gains nothing by
rewriting them. What a person writes meanwhile counts for later sessions, and for running ones once
`gitgates approve rules` was run in a terminal. The journal of the session keeps the rules (`what`
is `rules`), a log of the worktree what was approved since.
"""

from __future__ import annotations

import time

from gitgates.core.errors import StateError
from gitgates.core.policy import functions_of, policy_gates
from gitgates.core.types import LIVE, SECTIONS, Advice, Config, Hook
from gitgates.store.log import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gitgates.git.repo import Repo
    from gitgates.session.call import Call
    from gitgates.store.log import Fact

RULES = "rules"
APPROVE = "gitgates approve rules"
_APPROVED = "approved-rules.jsonl"
_POLICIES = ("guard", "intents", "review", "trace")  # tables of the configuration
_PARTS = ("settings", "gates", "advice")


def rules_of(call: Call) -> Fact:
    """Return the rules of a session, with what was approved since; empty if none are recorded."""
    if not call.session.rules and not call.elsewhere:
        return {}
    found = first_rules([*call.entries, *call.entries_elsewhere])
    states = [f"{folder}/gitgates" for folder in call.elsewhere]
    return with_approvals(found, [call.repo.state_abs, *states]) if found else {}


def settings_in_force(call: Call, config: Config | None) -> Config | None:
    """Return the configuration of the files with the settings of policies that are in force.

    Where the session has removed the whole configuration, those settings stay. None: there is none.
    """
    rules = rules_of(call)
    there = config or Config()
    if not rules or settings_of(there) == {name: rules[name] for name in _PARTS}:
        return config
    tables: dict[str, Any] = {
        name: table if table is None else record_of(SECTIONS[name], table)
        for name, table in rules["settings"].items()
        if name in _POLICIES
    }
    known = {one["id"]: record_of(Advice, one) for one in rules["advice"]}
    others = tuple(one for one in there.advice if one.id not in known)
    hooks = _with_gates(there.hooks, rules["gates"])
    return there._replace(**tables, hooks=hooks, advice=(*known.values(), *others))


def are_in_force(call: Call, config: Config) -> bool:
    """Return whether the settings of policies are in force as a configuration has them."""
    rules, now = rules_of(call), settings_of(config)
    return all(rules.get(name, now[name]) == now[name] for name in _PARTS)


def first_rules(facts: Iterable[Fact]) -> Fact | None:
    """Return the rules that a session began with, in the worktree that it began in.

    Another version may have recorded them in another form: those are none.
    """
    whole = {"t", *_PARTS}
    rules = [one for one in facts if one.get("what") == RULES and whole.issubset(one)]
    return min(rules, key=lambda one: float(one.get("t", 0.0)), default=None)


def begin(call: Call) -> Fact:
    """Record the rules of a session at its first event, or take over those of its beginning.

    Return them.
    """
    found = first_rules([*call.entries, *call.entries_elsewhere])
    if found is None:
        heads = (one.get("head") for one in call.entries if one.get("what") == "snapshot")
        found = rules_now(call.repo, call.config, head=str(next(filter(None, heads), "HEAD")))
    call.record(found)
    return found


def rules_now(repo: Repo, config: Config, *, head: str) -> Fact:
    """Return the rules that a session begins with at a commit, as an entry of its journal."""
    rules = {"what": RULES, "t": time.time(), **settings_of(config)}
    for rules_at in functions_of(
        config, "rules_at", "session-start"
    ):  # what policies keep in files of their own
        rules |= rules_at(repo, config, head)
    return rules


# What a person has approved, the oldest first.


def approve(repo: Repo, fields: Fact) -> None:
    """Record what a person approves: rules, or parts of them. Raises: StateError."""
    journal = Journal(f"{repo.state_abs}/{_APPROVED}")
    try:
        journal.append({"what": RULES, "t": time.time(), **fields})
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error


def approve_settings(repo: Repo, config: Config) -> None:
    """Let the settings of policies count that the files have now. Raises: StateError."""
    approve(repo, settings_of(config))


def approve_advice(repo: Repo, name: str, advice: Advice | None) -> None:
    """Let the change of one advice count. None: it is gone. Raises: StateError."""
    approve(repo, {"id": name, "is": [plain(advice)] if advice and _blocks(advice) else []})


def approvals(state_abs: str) -> list[Fact]:
    """Return what a person has approved in a worktree. Raises: OSError."""
    return Journal(f"{state_abs}/{_APPROVED}").read()


def with_approvals(rules: Fact, states_abs: Iterable[str]) -> Fact:
    """Return rules with what was approved since in worktrees, by their state folders."""
    found, began = dict(rules), float(rules.get("t", 0.0))
    approved = [one for state_abs in states_abs for one in approvals(state_abs)]
    for one in sorted(approved, key=lambda one: float(one["t"])):
        if one["t"] < began:
            continue
        if "intents" in one:
            found.pop("problem", None)
        found |= {name: one[name] for name in (*_PARTS, "intents") if name in one}
        if "id" in one:
            others = [other for other in found["advice"] if other["id"] != one["id"]]
            found["advice"] = [*others, *one["is"]]
    return found


# What rules consist of.


def settings_of(config: Config) -> Fact:
    """Return the settings of policies, as they are in a journal."""
    tables = {name: getattr(config, name) for name in _POLICIES}
    policies = policy_gates()
    gates = {hook.name: [name for name in hook.gates if name in policies] for hook in config.hooks}
    return {
        "settings": {name: one and plain(one) for name, one in tables.items()},
        "gates": {name: names for name, names in gates.items() if names},
        "advice": [plain(one) for one in config.advice if _blocks(one)],
    }


def _blocks(advice: Advice) -> bool:
    return advice.hook_on_failure == "block" and advice.status in LIVE


def _with_gates(hooks: tuple[Hook, ...], wanted: dict[str, list[str]]) -> tuple[Hook, ...]:
    """Return hooks that list the gates of policies that they listed."""
    there = {hook.name: hook for hook in hooks}
    for name, gates in wanted.items():
        hook = there.get(name, Hook(name=name))
        missing = [gate for gate in gates if gate not in hook.gates]
        there[name] = hook._replace(gates=(*hook.gates, *missing))
    return tuple(there.values())


def plain(record: Any) -> Fact:  # noqa: ANN401 - a record of any table
    """Return a record as JSON has it."""
    fields = record._asdict().items()
    return {name: list(one) if isinstance(one, tuple) else one for name, one in fields}


def record_of(kind: type[Any], fields: Fact) -> Any:  # noqa: ANN401 - of that type
    """Return the record that `plain` has made such fields of; unknown ones are left out."""
    known = ((name, one) for name, one in fields.items() if name in kind._fields)
    return kind(**{name: tuple(one) if isinstance(one, list) else one for name, one in known})

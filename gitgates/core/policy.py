"""The table of policies in order of priority, and the loop that asks them.

A policy is a module with `decide(call, so_far) -> Verdict`, and with `needs(config)` if it needs
events itself. Nothing but its row and its module knows of it. drivers/git.py asks them
on git hooks and the framework's, drivers/agent.py on an agent's events. A policy that is not
asked costs a git hook its row.
"""

from __future__ import annotations

import sys

from gitgates.core.errors import Interrupted
from gitgates.core.lifecycle import AGENT_KINDS, ENDINGS, GIT_KINDS, RETRIED
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal, Protocol, TypeAlias

    from gitgates.core.agent_types import ToolKind
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config, Hook

    Trait: TypeAlias = Literal[
        "by-table",  # without its table, it is off
        "keeps-settings",  # a session keeps the settings of that table with which it began
        "without-config",  # it judges tools while the configuration cannot be read
        "traced",  # if on, what agents write is recorded, unless told otherwise
        "reserved",  # no gate may have its name
        "passive",  # it needs no event itself; asked if another policy needs one
        "no-install",  # it needs an agent's events, but is no reason to install its hooks
    ]

    class AnyCall(Protocol):
        """The context of an event that policies of any host get."""

        kind: EventKind
        repo: Any  # a Repo, which is above
        env: Mapping[str, str]
        is_dry: bool  # nothing may be written, or run
        config: Config
        say: Callable[[str], None]
        hook: Hook

    class PolicyModule(Protocol):
        """The interface of a policy's module.

        It may also have `needs(config)`, `agents(config)`, `rules(config)`, `repeat(call, answer)`;
        `always`: it is asked even after a final verdict; `fails_closed(config)`: whether a tool
        call is refused if it fails in itself, and `WAY_OUT`: what can be done then.
        What it tells others, by `functions_of`: `person_verbs(call)`, the verbs that no agent may
        run; `guarded_files(call)`, rules of the guard with paths; `labels(call)`, what the trace
        notes of a tool call; `rules_at(repo, config, head)`, what a session begins with, and
        `approve(repo, config)`, by which that counts as it is now; `watched_files(call)`, and
        `unapproved(call, changed)`, what the person is told of changes to these;
        `plan_of(event, repo, config)`, what runs beside the gates of a git hook;
        `runs_commands(config)`, whether it runs any that are no gates;
        `weakened_between(repo, config, before, after)` and `bars_landing(repo, config, trees)`,
        what a landing tells, and why it may not be;
        `file_limits(config)`, which files are too large to be saved, or None if none are; and
        `follows_writers(config)`, whether it asks who has written what.
        """

        def decide(self, call: Any, so_far: Verdict) -> Verdict:  # noqa: ANN401 - a Call, which is above
            """Return the verdict of this policy."""


class Need(Record):
    """One event that a policy needs; all fields but `kind` are about agents."""

    kind: EventKind
    tools: tuple[str, ...] | None = None  # patterns, in the host's words; None: all
    tool_kinds: tuple[ToolKind, ...] = ()  # tools of these kinds, too
    but_reads: bool = False  # all tools but those that read, unless `tools` names one
    agents: tuple[str, ...] | None = None
    more_s: float = 0.0  # what the policy's own work may take, beside the gates


class WantedAgent(Record):
    """A sub-agent that a policy works with: `install-hooks` writes it, `doctor` looks for it."""

    name: str
    model: str
    setting: str  # where the configuration names it
    is_needed: bool  # without it, nobody can give what the policy may ask for
    is_required: bool  # it will ask for that


class Policy(Record):
    """One row: the module of a policy, and the events at which it is imported."""

    name: str
    module: str
    gate: str = ""  # the name that hooks list it by; without a hook that does, it is off
    table: str = ""  # of the configuration, in `keys.py` of the same folder
    switch: str = ""  # the key of that table that turns it off
    # Of an array, a session keeps the entries with one of these values in each of these fields.
    kept_where: Mapping[str, tuple[str, ...]] = {}
    traits: tuple[Trait, ...] = ()
    verb: str = ""  # of gitgates, that agents may always call
    approvals: Mapping[str, str] = {}  # its commands that a person has to approve → what they do
    person_word: str = ""  # that is in those, for the guard
    label: str = ""  # what the trace keeps of it with each record
    kinds: tuple[EventKind, ...] = ()  # of the events that it may need; (): any
    provides: tuple[str, ...] = ()  # functions that lower layers call if its table exists
    priority: str = "normal"  # of PRIORITIES; the table is in this order


POLICIES: tuple[Policy, ...] = (
    # Refuses what bypasses the gates, whoever does it.
    Policy(
        name="guard",
        priority="critical",
        module="gitgates.features.guard.policy",
        table="guard",
        switch="enabled",
        kinds=("before-tool",),
        traits=("keeps-settings", "without-config", "reserved", "no-install"),
    ),
    # Holds a reviewer to reading, and turns the strict form on: before anything else is done.
    Policy(
        name="reviewer",
        priority="critical",
        module="gitgates.features.review.reviewer",
        gate="review",
        kinds=("session-start", "prompt", "before-tool", "subagent-start", "subagent-end"),
        traits=("reserved",),
    ),
    Policy(
        name="intents",
        priority="critical",
        module="gitgates.features.intents.policy",
        table="intents",
        verb="intent",
        label="intent",
        approvals={"intent approve-scope": "extend the scope of an intent"},
        kinds=(
            *("session-start", "prompt", "subagent-start", "before-tool", "after-tool"),
            *("tool-failed", "before-compact", "session-end", "before-commit", *ENDINGS),
        ),
        traits=("by-table", "keeps-settings", "traced", "without-config", "reserved"),
    ),
    Policy(
        name="commits",
        priority="critical",
        module="gitgates.features.commits.policy",
        table="commits",
        kinds=("before-tool", "after-tool", "tool-failed", "before-commit"),
        traits=("by-table",),
    ),
    # Before gates run, which may write; after those that refuse.
    Policy(
        name="undo",
        priority="high",
        module="gitgates.features.undo.policy",
        table="undo",
        approvals={"undo": "undo or redo what is not the agent's own turn"},
        kinds=("session-start", "prompt", "before-tool", "after-tool", "tool-failed"),
        traits=("keeps-settings", "no-install"),
    ),
    Policy(
        name="session",
        priority="high",
        module="gitgates.drivers.start",
        kinds=AGENT_KINDS,
        traits=("passive",),
    ),
    # Before the gates: they need what is installed.
    Policy(
        name="worktree",
        priority="high",
        module="gitgates.features.worktree.policy",
        table="worktree",
        kinds=("session-start", "subagent-start", "turn-end", "subagent-end"),
        traits=("by-table", "keeps-settings", "no-install"),
    ),
    Policy(
        name="gates",
        module="gitgates.features.gates.policy",
        approvals={"baseline write": "accept failures of gates"},
        person_word="baseline",
        kinds=AGENT_KINDS,
        traits=("passive",),
    ),
    # The same without a session; whoever starts such a hook wants them.
    Policy(name="gates", module="gitgates.drivers.git", kinds=GIT_KINDS, traits=("passive",)),
    # For pre-push hooks that demand that commits have passed their gates.
    Policy(name="verify", module="gitgates.features.evidence.policy", kinds=("before-push",)),
    # Publishes what gates have proved, and provides what trusted others have.
    Policy(
        name="proof",
        module="gitgates.features.proof.policy",
        table="proof",
        provides=("signed_passes", "signed_evidence", "publish_landed"),
        kinds=("before-push",),
        traits=("by-table",),
    ),
    Policy(
        name="remote",
        module="gitgates.features.remote.policy",
        table="remote",
        provides=("verdict_cache", "remote_execution", "sent_inputs"),
        kinds=("before-push",),
        traits=("by-table",),
    ),
    Policy(
        name="advice",
        module="gitgates.features.advice.policy",
        table="advice",
        approvals={
            "advice edit": "weaken an advice entry that blocks",
            "advice close": "close an advice entry that blocks",
            "advice remove": "remove an advice entry that blocks",
        },
        person_word="advice",
        kept_where={"hook_on_failure": ("block",), "status": ("open", "pinned")},
        kinds=(
            *("session-start", "subagent-start", "before-tool", "turn-end", "session-end"),
            *("before-compact", "before-commit", "before-push"),
        ),
        traits=("by-table", "keeps-settings", "reserved"),
    ),
    Policy(
        name="handoff",
        module="gitgates.features.advice.received",
        kinds=("session-start",),
        traits=("passive",),
    ),
    Policy(
        name="review",
        module="gitgates.features.review.policy",
        gate="review",
        table="review",
        verb="review",
        approvals={"review skip": "record that a change needs no independent review"},
        kinds=("prompt-expansion", "before-tool", "after-tool", "tool-failed", *ENDINGS),
        traits=("keeps-settings", "reserved"),
    ),
    Policy(
        name="undo",
        module="gitgates.features.undo.after_gates",
        table="undo",
        switch="enabled",
        kinds=("turn-end",),
        traits=("passive", "no-install"),
    ),
    Policy(
        name="tampering",
        module="gitgates.drivers.tampering",
        kinds=("turn-end",),
        traits=("passive", "no-install"),
    ),
    # After the save point at the end of a turn.
    Policy(
        name="land",
        module="gitgates.features.land.policy",
        table="land",
        switch="conflicts",
        kinds=("turn-end",),
        traits=("by-table", "passive", "no-install"),
    ),
    Policy(name="breaker", module="gitgates.drivers.breaker", kinds=RETRIED, traits=("passive",)),
    # Last, so that its hashes are of what formatters have left.
    Policy(
        name="trace",
        priority="low",
        module="gitgates.features.trace.policy",
        table="trace",
        approvals={"trace prune": "remove records of the trace"},
        person_word="prune",
        kinds=("session-start", "prompt", "before-tool", "after-tool", "tool-failed"),
        traits=("keeps-settings",),
    ),
)

LABELS = tuple(row.label for row in POLICIES if row.label)


def policy_gates() -> tuple[str, ...]:
    """Return the names of gates that are policies and have no command."""
    return tuple(dict.fromkeys(row.gate for row in POLICIES if row.gate))


def enabled_policies(config: Config, kind: EventKind = "") -> list[Policy]:
    """Return the rows of enabled policies, at events of a kind or at all."""
    gate_names = {name for hook in config.hooks for name in hook.gates}
    return [
        row
        for row in POLICIES
        if (not row.gate or row.gate in gate_names)
        and ("by-table" not in row.traits or row.table in config.tables)
        and (not row.switch or config.tables.get(row.table, {}).get(row.switch, True))
        and (not (kind and row.kinds) or kind in row.kinds)
    ]


def kept_entries(config: Config, row: Policy) -> list[Mapping[str, Any]]:
    """Return the entries of an array of tables that a session keeps."""
    return [entry for entry in config.tables.get(row.table, ()) if is_kept(row.table, entry)]


def is_kept(table: str, entry: Mapping[str, Any]) -> bool:
    """Return whether a session keeps an entry of an array of tables."""
    allowed = next((row.kept_where for row in POLICIES if row.table == table), {})
    return all(entry.get(field) in values for field, values in allowed.items())


def module_of(row: Policy) -> PolicyModule:
    """Import the module of a policy."""
    __import__(row.module)
    module: PolicyModule = sys.modules[row.module]
    return module


def needs_of(module: PolicyModule, config: Config) -> tuple[Need, ...]:
    """Return the events that a policy needs; without `needs`, none."""
    needs: Callable[[Config], tuple[Need, ...]] | None = getattr(module, "needs", None)
    return needs(config) if needs else ()


def functions_of(config: Config, name: str, kind: EventKind = "") -> list[Callable[..., Any]]:
    """Return the functions with a name in the modules of enabled policies, in their order."""
    modules = map(module_of, enabled_policies(config, kind))
    return [function for module in modules if (function := getattr(module, name, None))]


def providers(config: Config, name: str) -> list[Callable[..., Any]]:
    """Return the functions with a name that enabled policies provide to lower layers."""
    rows = [row for row in POLICIES if name in row.provides and row.table in config.tables]
    return [getattr(module_of(row), name) for row in rows]


def is_provided(config: Config, name: str) -> bool:
    """Return whether a policy provides functions with a name, without importing it."""
    return any(name in row.provides and row.table in config.tables for row in POLICIES)


def policies_at(config: Config, kind: EventKind) -> list[tuple[Policy, PolicyModule, list[Need]]]:
    """Return the policies to ask at an event, in order, with what they need of it."""
    policies = []
    for row in enabled_policies(config, kind):
        module = module_of(row)
        needs = [need for need in needs_of(module, config) if need.kind == kind]
        if needs or "passive" in row.traits:
            policies.append((row, module, needs))
    return policies


def ask(
    call: Any,  # noqa: ANN401 - a Call of either kind, which is above
    policies: Sequence[tuple[str, PolicyModule]],
    failed: Callable[[str, Exception], Verdict],
    on_verdict: Callable[[str, Verdict, Verdict], None] | None = None,
) -> Verdict:
    """Ask each policy in turn. `failed` handles a policy's error, which stops no other.

    `on_verdict` gets the name of each, with the verdict before it and after.

    Raises: Interrupted, OSError.
    """
    so_far = Verdict()
    for name, module in policies:
        before = so_far
        if so_far.final and not getattr(module, "always", False):
            continue
        try:
            so_far = module.decide(call, so_far)
        except (Interrupted, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - of one policy, which the others can do without
            so_far = before.joined(failed(name, error))
        if so_far.level >= BLOCK > before.level:
            so_far = so_far._replace(blocked_by=(*so_far.blocked_by, name))
        if before.final:
            so_far = so_far._replace(final=True)
        if on_verdict:
            on_verdict(name, before, so_far)
    return so_far

"""Which advice is for whom, in which order, and advice hooks as gates. Pure.

The rig, role and agent that an advice entry names must all match the caller's.
"""

from __future__ import annotations

from gitgates.config.load import as_record
from gitgates.core.record import Record
from gitgates.core.types import Gate, Hook, make_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.core.types import Config, Decision
    from gitgates.features.advice.facts import AdviceEntry

TABLE = "advice"
LIVE = ("open", "pinned")  # the statuses of advice that is shown and run
TRIGGERS = ("session-end", "before-commit", "before-push", "before-handoff")
PREFIX = "advice:"  # in a gate's name
_HOOKS_HEAD = "Commands that run as hooks of your work (gitgates advice hooks):"
_LONGEST_LINE = 300
_SPECIFIC = ("agent", "role", "rig")  # the most specific first


class Advice(Record):
    """Guidance for agents or, with a command, a hook of their work."""

    id: str
    title: str
    description: str
    status: str  # open, pinned, closed, tombstone
    priority: int  # 0 is the highest
    created_at: str  # ISO 8601 in UTC; empty: unknown
    rig: str  # the target; empty: any
    role: str
    agent: str
    hook_command: str
    hook_trigger: str  # session-end, before-commit, before-push, before-handoff
    hook_timeout_s: float
    hook_on_failure: str  # block, warn, ignore


def advice_of(config: Config) -> tuple[Advice, ...]:
    """Return all advice in a configuration."""
    return tuple(as_record(TABLE, entry, Advice) for entry in config.tables.get(TABLE, ()))


class Identity(Record):
    """The caller: the names with which advice targets are compared."""

    rig: str = ""
    role: str = ""
    agent: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that are set."""
        return tuple(name for name in self if name)


def identify(
    env: Mapping[str, str], agent_type: str = "", *, rig: str = "", role: str = "", agent: str = ""
) -> Identity:
    """Return the caller, by options, the environment, or the host's type for the agent."""
    return Identity(
        rig=rig or env.get("GITGATES_RIG", ""),
        role=role or env.get("GITGATES_ROLE", ""),
        agent=agent or env.get("GITGATES_AGENT", "") or agent_type,
    )


def applicable(advice: Sequence[Advice], who: Identity) -> list[Advice]:
    """Return the live advice for a caller.

    The most specific comes first; then by priority, oldest first, and as written.
    """
    matching = [entry for entry in advice if entry.status in LIVE and _is_for(entry, who)]
    # Without its Z, a whole second sorts before its fractions.
    return sorted(matching, key=lambda a: (_distance(a), a.priority, a.created_at.rstrip("Z")))


def hooks_at(advice: Sequence[Advice], who: Identity, triggers: Sequence[str]) -> list[Advice]:
    """Return the applicable advice with a command for some triggers, in their order."""
    hooks = [hook for hook in applicable(advice, who) if hook.hook_command]
    return [hook for trigger in triggers for hook in hooks if hook.hook_trigger == trigger]


def _is_for(advice: Advice, who: Identity) -> bool:
    agents = (who.agent, who.agent.rpartition(":")[2])  # a bare name also matches a plugin's
    return (
        advice.rig in ("", who.rig)
        and advice.role in ("", who.role)
        and advice.agent in ("", *agents)
    )


def _distance(advice: Advice) -> int:
    return next((n for n, name in enumerate(_SPECIFIC) if getattr(advice, name)), len(_SPECIFIC))


def content_hash(advice: Advice) -> str:
    """Return the digest of an advice entry's fields, including its hook."""
    import hashlib  # only if a hook has run

    content = "".join(f"{value}\0" for value in advice)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def with_hooks(config: Config, hook: Hook, hooks: Sequence[Advice], folder: str = ".") -> Config:
    """Return a configuration in which a hook runs all advice, one after another."""
    gates = tuple(_gate(advice, folder) for advice in hooks)
    advice_hook = hook._replace(
        gates=tuple(gate.name for gate in gates),
        strategy="collect",
        timeout_s=sum(gate.schedule.timeout_s for gate in gates)
        + len(gates),  # so that each reaches its own limit first
    )
    others = tuple(other for other in config.hooks if other.name != hook.name)
    return config._replace(jobs=1, gates=gates, hooks=(*others, advice_hook))


def _gate(advice: Advice, folder: str) -> Gate:
    return make_gate(
        name=f"{PREFIX}{advice.id}",
        description=": ".join(filter(None, ("advice", advice.title, _flat(advice)))),
        command=_command(advice),
        working_dir=folder,
        env=(("GITGATES_ADVICE", advice.id), ("GITGATES_ADVICE_TRIGGER", advice.hook_trigger)),
        timeout_s=advice.hook_timeout_s,
        on_fail="BLOCK" if advice.hook_on_failure == "block" else "CONTINUE",
    )


def _command(advice: Advice) -> str:
    """Return the command; one whose failure is ignored always passes."""
    command = advice.hook_command
    return f"(\n{command}\n) || :" if advice.hook_on_failure == "ignore" else command


def records(decision: Decision, hooks: Sequence[Advice], tree: str = "") -> list[AdviceEntry]:
    """Return the journal entry for each hook that has run on a snapshot."""
    from gitgates.features.advice.facts import AdviceEntry  # only if one has run

    by_name = {f"{PREFIX}{hook.id}": hook for hook in hooks}
    return [
        AdviceEntry(
            id=advice.id,
            hash=content_hash(advice),
            trigger=advice.hook_trigger,
            status=visit.result.status,
            duration_s=round(visit.result.duration_s, 3),
            tree=tree,
        )
        for visit in decision.visits
        if visit.result.status != "skipped" and (advice := by_name.get(visit.result.gate))
    ]


def describe(advice: Advice) -> str:
    """Return an advice entry on one line: its id, title and hook."""
    hook = f" [{advice.hook_trigger}: {advice.hook_command}]" if advice.hook_command else ""
    how = f" ({advice.hook_on_failure})" if advice.hook_command else ""
    return f"{advice.id} · {advice.title}{hook}{how}"


def target_of(advice: Advice) -> str:
    """Return an advice entry's target, such as `beads/polecat`; empty for everybody."""
    names = [name or "*" for name in (advice.rig, advice.role, advice.agent)]
    while names and names[-1] == "*":
        names.pop()
    return "/".join(names)


def guidance(advice: Sequence[Advice], who: Identity, longest: int) -> str:
    """Return the commands that will run, and the advice without one.

    What does not fit is counted. A command whose failure is ignored is left out.
    """
    lines = [text for trigger in TRIGGERS if (text := _moment(advice, who, trigger))]
    head = [_HOOKS_HEAD, *lines] if lines else []
    entries = [entry for entry in applicable(advice, who) if not entry.hook_command]
    if entries:
        head.append("Advice for your work here:")
    fitting, room = [], longest - sum(len(line) + 1 for line in lines)
    for entry in entries:
        line = f"- {entry.title}" + (f": {_flat(entry)}" if entry.description else "")
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    if len(fitting) < len(entries):
        fitting.append(f"(and {len(entries) - len(fitting)} more: gitgates advice list)")
    return "\n".join([*head, *fitting])


def _moment(advice: Sequence[Advice], who: Identity, trigger: str) -> str:
    """Return a line on a trigger's commands; empty if there are none."""
    hooks = [hook for hook in hooks_at(advice, who, (trigger,)) if hook.hook_on_failure != "ignore"]
    titles = ", ".join(
        hook.title + (" (blocks)" if hook.hook_on_failure == "block" else "") for hook in hooks
    )
    line = f"- {trigger}: {titles}" if hooks else ""
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"


def _flat(advice: Advice) -> str:
    return " ".join(advice.description.split())

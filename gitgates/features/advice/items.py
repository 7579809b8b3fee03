"""Which advice is for whom, in which order, and an advice hook as a gate. Pure.

Rig, role and agent of an advice must all be those of who asks, where it names them.
"""

from __future__ import annotations

from gitgates.config.load import as_record
from gitgates.core.record import Record
from gitgates.core.types import Gate, Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitgates.core.types import Config

TABLE = "advice"
LIVE = ("open", "pinned")  # statuses of advice that is shown, and run
TRIGGERS = ("session-end", "before-commit", "before-push", "before-handoff")
PREFIX = "advice:"  # of the gate's name
_HOOKS_HEAD = "Commands that run as hooks of your work (gitgates advice hooks):"
_LONGEST_LINE = 300
_SPECIFIC = ("agent", "role", "rig")  # the most specific first


class Advice(Record):
    """Guidance for agents, or with a command what runs at a moment of their work."""

    id: str
    title: str
    description: str
    status: str  # open, pinned, closed, tombstone
    priority: int  # 0 is the highest
    created_at: str  # ISO 8601 in UTC; empty: not told
    rig: str  # whom it is for; empty: any
    role: str
    agent: str
    hook_command: str
    hook_trigger: str  # session-end, before-commit, before-push, before-handoff
    hook_timeout_s: float
    hook_on_failure: str  # block, warn, ignore


def advice_of(config: Config) -> tuple[Advice, ...]:
    """Return all advice of a configuration."""
    return tuple(as_record(TABLE, entry, Advice) for entry in config.tables.get(TABLE, ()))


class Identity(Record):
    """Who asks: the names that targets of advice are compared with."""

    rig: str = ""
    role: str = ""
    agent: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that there are."""
        return tuple(name for name in self if name)


def identify(
    env: Mapping[str, str], agent_type: str = "", *, rig: str = "", role: str = "", agent: str = ""
) -> Identity:
    """Return who asks: by options, by the environment, or by the host's type of the agent."""
    return Identity(
        rig=rig or env.get("GITGATES_RIG", ""),
        role=role or env.get("GITGATES_ROLE", ""),
        agent=agent or env.get("GITGATES_AGENT", "") or agent_type,
    )


def applicable(advice: Sequence[Advice], who: Identity) -> list[Advice]:
    """Return the live advice for a target, the most specific first.

    Then by priority, then the oldest first, then as they are written.
    """
    found = [one for one in advice if one.status in LIVE and _is_for(one, who)]
    # Without its Z, a whole second comes before its fractions.
    return sorted(found, key=lambda a: (_distance(a), a.priority, a.created_at.rstrip("Z")))


def hooks_at(advice: Sequence[Advice], who: Identity, triggers: Sequence[str]) -> list[Advice]:
    """Return the advice with a command that applies at some triggers, in that order of those."""
    found = [one for one in applicable(advice, who) if one.hook_command]
    return [one for trigger in triggers for one in found if one.hook_trigger == trigger]


def _is_for(advice: Advice, who: Identity) -> bool:
    agents = (who.agent, who.agent.rpartition(":")[2])  # a bare name means a plugin's, too
    return (
        advice.rig in ("", who.rig)
        and advice.role in ("", who.role)
        and advice.agent in ("", *agents)
    )


def _distance(advice: Advice) -> int:
    return next((n for n, name in enumerate(_SPECIFIC) if getattr(advice, name)), len(_SPECIFIC))


def content_hash(advice: Advice) -> str:
    """Return the digest of all that an advice says, its hook included."""
    import hashlib  # where one has run

    said = "".join(f"{value}\0" for value in advice)
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


def with_hooks(config: Config, hook: Hook, hooks: Sequence[Advice], folder: str = ".") -> Config:
    """Return a configuration in which a hook runs advice, one after another and each to its end."""
    gates = tuple(_gate(one, folder) for one in hooks)
    own = hook._replace(
        gates=tuple(gate.name for gate in gates),
        strategy="collect",
        timeout_s=sum(gate.timeout_s for gate in gates) + len(gates),  # each meets its own first
    )
    others = tuple(one for one in config.hooks if one.name != hook.name)
    return config._replace(jobs=1, gates=gates, hooks=(*others, own))


def _gate(advice: Advice, folder: str) -> Gate:
    return Gate(
        name=f"{PREFIX}{advice.id}",
        description=": ".join(filter(None, ("advice", advice.title, _flat(advice)))),
        command=advice.hook_command,
        working_dir=folder,
        env=(("GITGATES_ADVICE", advice.id), ("GITGATES_ADVICE_TRIGGER", advice.hook_trigger)),
        timeout_s=advice.hook_timeout_s,
        on_fail="BLOCK" if advice.hook_on_failure == "block" else "CONTINUE",
    )


def describe(advice: Advice) -> str:
    """Return an advice on one line: its id, title and hook."""
    hook = f" [{advice.hook_trigger}: {advice.hook_command}]" if advice.hook_command else ""
    how = f" ({advice.hook_on_failure})" if advice.hook_command else ""
    return f"{advice.id} · {advice.title}{hook}{how}"


def target_of(advice: Advice) -> str:
    """Return whom an advice is for, such as `beads/polecat`; empty for everybody."""
    names = [name or "*" for name in (advice.rig, advice.role, advice.agent)]
    while names and names[-1] == "*":
        names.pop()
    return "/".join(names)


def guidance(advice: Sequence[Advice], who: Identity, longest: int) -> str:
    """Return the commands that will run, and the advice without one; what does not fit is counted.

    One whose failure is ignored is not told.
    """
    lines = [text for trigger in TRIGGERS if (text := _moment(advice, who, trigger))]
    head = [_HOOKS_HEAD, *lines] if lines else []
    told = [one for one in applicable(advice, who) if not one.hook_command]
    if told:
        head.append("Advice for your work here:")
    kept, room = [], longest - sum(len(line) + 1 for line in lines)
    for one in told:
        line = f"- {one.title}" + (f": {_flat(one)}" if one.description else "")
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if len(kept) < len(told):
        kept.append(f"(and {len(told) - len(kept)} more: gitgates advice list)")
    return "\n".join([*head, *kept])


def _moment(advice: Sequence[Advice], who: Identity, trigger: str) -> str:
    """Return a line on the commands of a trigger; empty for none."""
    found = [one for one in hooks_at(advice, who, (trigger,)) if one.hook_on_failure != "ignore"]
    named = ", ".join(
        one.title + (" (blocks)" if one.hook_on_failure == "block" else "") for one in found
    )
    line = f"- {trigger}: {named}" if found else ""
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"


def _flat(advice: Advice) -> str:
    return " ".join(advice.description.split())

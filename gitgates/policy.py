"""The table of policies, in order of priority: what may have a say in an event. Data only.

A policy is a module with `decide(call, so_far) -> Verdict` and `needs(config)`; policies/driver.py
asks them. Nothing but its row and its module knows of it.
"""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent_types import ToolKind
    from gitgates.lifecycle import EventKind


class Need(Record):
    """One event of an agent that is to be heard of."""

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
    is_needed: bool  # without it, nobody can give what the policy may ask for
    is_required: bool  # it will ask for that


class Policy(Record):
    """One row: where a policy is, and when its module has to be imported at all."""

    name: str
    module: str
    gate: str = ""  # the name that hooks list it by; without a hook that does, it is off
    kinds: tuple[EventKind, ...] = ()  # of the events that it may need; (): any
    passive: bool = False  # needs no event itself; asked where another policy needs one


_ENDINGS: tuple[EventKind, ...] = ("turn-end", "subagent-end")

POLICIES: tuple[Policy, ...] = (
    # Holds a reviewer to reading, and turns the strict form on: before anything else is done.
    Policy(
        name="reviewer",
        module="gitgates.policies.reviewer",
        gate="review",
        kinds=("prompt", "before-tool", "subagent-start", "subagent-end"),
    ),
    # Notes whose work it is before gates run, which may take minutes.
    Policy(
        name="authorship",
        module="gitgates.policies.authorship",
        gate="review",
        kinds=("prompt", *_ENDINGS),
    ),
    Policy(name="session", module="gitgates.policies.session_start", passive=True),
    Policy(name="gates", module="gitgates.policies.gates", passive=True),
    Policy(
        name="review",
        module="gitgates.policies.review",
        gate="review",
        kinds=("prompt-expansion", "before-tool", "after-tool", *_ENDINGS),
    ),
    Policy(
        name="tampering", module="gitgates.policies.tampering", kinds=("turn-end",), passive=True
    ),
    Policy(name="breaker", module="gitgates.policies.breaker", kinds=_ENDINGS, passive=True),
)


def policy_gates() -> tuple[str, ...]:
    """Return the names of gates that no command stands behind: hooks list a policy by it."""
    return tuple(dict.fromkeys(row.gate for row in POLICIES if row.gate))

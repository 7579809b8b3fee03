"""Describe a repository's rules for agents: which gates run when, and what to do.

Agents get this at the start of each session, so it is short, no matter what is configured.
"""

from __future__ import annotations

from gitgates.core.clean import plain_line
from gitgates.core.lifecycle import HOOK_OF, HOOK_POINTS, RETRIED, kind_of
from gitgates.core.policy import enabled_policies, module_of, policy_gates
from gitgates.core.types import Gate
from gitgates.drivers.needs import gates_on
from gitgates.engine.plan.plan import reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config, Hook

LONGEST = 1500
_WHEN = {
    HOOK_OF["turn-end"]: "When you want to stop, and files have changed",
    HOOK_OF["subagent-end"]: "When a sub-agent wants to stop, and files have changed",
    HOOK_OF["task-end"]: "When you mark a task as completed, and files have changed",
    HOOK_OF["teammate-idle"]: "When a teammate has nothing left to do, and files have changed",
    HOOK_OF["before-tool"]: "Before you use a tool",
    HOOK_OF["after-tool"]: "After you have used a tool",
    HOOK_OF["after-batch"]: "After the tools of a step have changed something",
    HOOK_OF["prompt"]: "When a prompt arrives",
    "pre-commit": "Before a commit",
    "pre-push": "Before a push",
    "commit-msg": "On a commit message",
    "manual": "When you call gitgates run",
}
_TOLD_FIRST = tuple(_WHEN)
_HEAD = "gitgates checks the work in this repository. These gates run:"
_BLOCKS = (
    "A gate that fails blocks, and you are told why{retries}. Fix the cause, not the gate: do not "
    "weaken, skip or delete checks, and do not use --no-verify. To run the gates yourself: "
    "gitgates run {hook}. To end your turn with a question: gitgates cannot-fix --question "
    '"…". If a failure cannot be fixed, report it, and the person decides: '
    'gitgates cannot-fix GATE --reason "why".'
)
_CUT = "… (in full: gitgates explain HOOK)"
_STOPS = " A gate marked (stops) ends your turn when it fails."
_WARNS = " One marked (warns) only warns."


def rules_text(config: Config) -> str:
    """Return the rules in at most 1,500 characters; empty if no gate runs."""
    hooks = sorted((hook for hook in config.hooks if _listed(hook, config)), key=_rank)
    if not hooks:
        return ""
    for longest in (80, 40, 0):
        lines = [_line(hook, config, longest) for hook in hooks]
        closing = _closing(config, hooks[0], "\n".join(lines))
        text = "\n".join([_HEAD, *lines, closing])
        if len(text) <= LONGEST:
            return text
    room = LONGEST - len(_HEAD) - len(closing) - len(_CUT) - 2
    return f"{_HEAD}\n{text[len(_HEAD) + 1 :][:room]}{_CUT}\n{closing}"


def _rank(hook: Hook) -> int:
    return _TOLD_FIRST.index(hook.name) if hook.name in _TOLD_FIRST else len(_TOLD_FIRST)


def _listed(hook: Hook, config: Config) -> tuple[str, ...]:
    """Return a hook's gates, without those of disabled policies."""
    off = set(policy_gates()).difference(gates_on(config))
    return tuple(name for name in hook.gates if name not in off)


def _line(hook: Hook, config: Config, longest: int) -> str:
    gates = {gate.name: gate for gate in config.gates}
    gates |= {name: Gate(name=name) for name in policy_gates()}
    reached = [gates[name] for name in reachable(_listed(hook, config), gates) if name in gates]
    when = _WHEN.get(hook.name, f"At {hook.name}")
    return f"- {when}{_filter(hook)}: {', '.join([_gate(gate, longest) for gate in reached])}"


def _gate(gate: Gate, longest: int) -> str:
    text = gate.name if len(gate.name) <= 2 * LONGEST // 50 else gate.name[:40] + "…"
    checks = plain_line(gate.description, 0)
    if longest and checks:
        text += f" ({checks if len(checks) <= longest else checks[: longest - 1] + '…'})"
    if gate.actions.observe:
        return f"{text} (only observes)"
    return text + {"STOP": " (stops)", "CONTINUE": " (warns)"}.get(gate.actions.on_fail, "")


def _filter(hook: Hook) -> str:
    point = HOOK_POINTS[hook.name]
    if point.host != "agent":
        return ""
    names = [*(hook.enabled_tools or ()), *(hook.enabled_agents or ())]
    filters = ", ".join(map(plain_line, names[:6])) + (", …" if len(names) > 6 else "")  # noqa: PLR2004 - as shown
    return f" ({filters})" if names else ""


def _closing(config: Config, first: Hook, listing: str) -> str:
    ends = [hook for hook in config.hooks if kind_of(hook.name) in RETRIED and hook.gates]
    most = max((hook.max_retries for hook in ends), default=0)
    retries = f", up to {most} time{'s' if most > 1 else ''}" if most else ""
    offers = [
        getattr(module_of(row), "rules", None) for row in enabled_policies(config) if row.gate
    ]
    policy_rules = "\n".join([text for offer in offers if offer and (text := offer(config))])
    if all(name in policy_gates() for hook in config.hooks for name in hook.gates):
        return policy_rules  # there are no gates to run by hand or to report
    text = _BLOCKS.format(retries=retries, hook=first.name)
    text += _STOPS if "(stops)" in listing else ""
    text += _WARNS if "(warns)" in listing else ""
    return f"{text}\n{policy_rules}" if policy_rules else text

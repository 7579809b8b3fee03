"""Compare what was found with what is configured: only what is missing is proposed. Pure."""

from __future__ import annotations

from gitgates.config.edit import Addition
from gitgates.config.parse import reachable
from gitgates.discover.choose import USUAL, Proposal
from gitgates.hosts.claude import TOOL_NAMES
from gitgates.lifecycle import HOOK_OF, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config


def find_missing(
    proposals: list[Proposal], placed: dict[str, list[str]], config: Config
) -> Addition:
    """Return the gates that the configuration lacks, and their places in its hooks.

    A gate that has a place in some hook already keeps to it: whoever wrote it chose.
    """
    there = {gate.name: gate for gate in config.gates}
    commands = {gate.command for gate in config.gates if gate.command}
    used = {name for gates in placed.values() for name in gates}
    new = [
        p
        for p in proposals
        if p.name in used and p.name not in there and p.task.command not in commands
    ]
    chosen = {name for hook in config.hooks for name in reachable(hook.gates, there)}
    waiting = {p.name for p in new} | (there.keys() - chosen)
    hooks = {
        hook: [name for name in gates if name in waiting]
        for hook, gates in placed.items()
        # A project that has hooks and none of this name does without it.
        if hook != "manual" or not config.hooks or hook in {known.name for known in config.hooks}
    }
    return Addition(
        gates={proposal.name: proposal.table() for proposal in new},
        hooks={hook: {"gates": gates} for hook, gates in hooks.items() if gates},
    )


def with_agent(addition: Addition, config: Config) -> Addition:
    """Return an addition with the hooks of an agent, where the configuration has none.

    Before it may stop: all that looks, and a review. After an edit: what is given that file.
    """
    if has_agent(config):
        return addition
    there = {gate.name: gate for gate in config.gates}
    listed = [*((hook.name, hook.gates) for hook in config.hooks), *_listed(addition)]
    names = dict.fromkeys(name for hook, gates in listed if hook in USUAL[1:] for name in gates)
    names = names or dict.fromkeys(
        name for hook, gates in listed if hook in USUAL for name in gates
    )
    looks, quick = [], []
    for name in names:
        new = addition.gates.get(name, {})
        gate = there.get(name)
        if gate.writes if gate else new.get("writes"):
            continue
        looks.append(name)
        if gate.pass_files if gate else new.get("pass_files"):
            quick.append(name)
    hooks: dict[str, dict[str, object]] = {
        HOOK_OF["turn-end"]: {"gates": [*looks, "review"], "strategy": "collect"}
    }
    if quick:
        hooks[HOOK_OF["after-tool"]] = {
            "enabled_tools": [*TOOL_NAMES["writes"][:2]],
            "gates": quick,
        }
    return addition._replace(hooks={**addition.hooks, **hooks})


def has_agent(config: Config) -> bool:
    """Tell whether a configuration has a hook of an agent with gates in it."""
    return any(hook.gates and kind_of(hook.name) for hook in config.hooks)


def _listed(addition: Addition) -> list[tuple[str, list[str]]]:
    return [(hook, list(table["gates"])) for hook, table in addition.hooks.items()]  # type: ignore[call-overload]

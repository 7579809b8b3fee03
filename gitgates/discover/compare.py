"""Compare what was found with what is configured: only what is missing is proposed. Pure."""

from __future__ import annotations

from gitgates.config.edit import Addition
from gitgates.config.overrides import reachable
from gitgates.discover.choose import Proposal, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config


def find_missing(proposals: list[Proposal], config: Config) -> Addition:
    """Return the gates that the configuration lacks, and their places in its hooks.

    A gate that has a place in some hook already keeps to it: whoever wrote it chose.
    """
    there = {gate.name: gate for gate in config.gates}
    commands = {gate.command for gate in config.gates}
    new = [p for p in proposals if p.name not in there and p.task.command not in commands]
    placed = {name for hook in config.hooks for name in reachable(hook.gates, there)}
    waiting = {p.name for p in new} | (there.keys() - placed)
    hooks = {
        hook: [name for name in gates if name in waiting]
        for hook, gates in place(proposals).items()
        # A project that has hooks and none of this name does without it.
        if hook != "manual" or not config.hooks or hook in {known.name for known in config.hooks}
    }
    return Addition(
        gates={proposal.name: proposal.table() for proposal in new},
        hooks={hook: {"gates": gates} for hook, gates in hooks.items() if gates},
    )

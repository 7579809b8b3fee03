"""What a signed pass is about: a gate by its definition, and files by SHA-256. Cold.

Of the machine, only its system is part of that. What is installed there, and whether to believe
the signer, is a question of trust.
"""

from __future__ import annotations

import os

from gitgates.core.environ import is_ci
from gitgates.core.record import Record
from gitgates.core.types import BY_FILE
from gitgates.engine.plan.command import gate_env, make_commands, with_hook
from gitgates.engine.reuse.declared import seen_paths
from gitgates.engine.reuse.visible_content import digest
from gitgates.hosts import is_called_by_agent
from gitgates.proc.call import argument_limit
from gitgates.store.proofs import definition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gitgates.core.types import Command, Event, Gate, Plan, Step
    from gitgates.engine.reuse.visible_content import VisibleContent
    from gitgates.git.repo import Repo

_VERSION = "gitgates 1"


class FoundPass(Record):
    """A pass signed by somebody who is trusted."""

    signer: str  # the identity
    time_s: float  # when the gate ran, since the epoch


def definition_sha256(gate: Gate) -> str:
    """Return a digest of what decides how a gate ends on a content, the same on any machine."""
    return digest(_VERSION, ascii(definition(gate)))


def platform() -> str:
    """Return the system and the architecture of this machine."""
    system = os.uname()
    return f"{system.sysname} {system.machine}"


def key_of(step: Step, commands: Sequence[Command], root_abs: str, content: VisibleContent) -> str:
    """Return the key of a pass of a step, the same on any machine of this system.

    `commands`: those without paths. Raises: GitgatesError or OSError if the content is not known.
    """
    gate = step.gate
    passes = gate.program.pass_files or gate.program.pre_commit is not None
    # The folder of a program differs between machines.
    calls = [
        ((os.path.basename(each.argv[0]), *each.argv[1:]), os.path.relpath(each.cwd_abs, root_abs))
        for each in commands
    ]
    return digest(
        *("pass", gate.name, definition_sha256(gate), platform()),
        ascii((calls, step.paths if passes else ())),
        # A linter of imports looks whether a module is there, not what is in it.
        content.names if gate.reuse.mode == BY_FILE else "",
        content.identity_of(seen_paths(step, content)),
    )


def maker_of(event: Event, env: Mapping[str, str]) -> str:
    """Return who makes the passes of an event, as in a Proof."""
    if event.payload or is_called_by_agent(env):
        return "agent"
    return "ci" if is_ci(env) else ""


def commands_for(plan: Plan, repo: Repo) -> Callable[[Step], list[Command]]:
    """Return a function that makes the commands of a step as a run would."""
    hook_env = with_hook(repo.env, plan.event.name, repo.git_dir_abs)

    def commands_of(step: Step) -> list[Command]:
        env = gate_env(
            hook_env,
            plan.event,
            step.gate,
            git_dir_abs="" if repo.found_by_folder else repo.git_dir_abs,
            root_abs=repo.root_abs,
        )
        limit = argument_limit(env)
        return make_commands(
            step, plan.event, root_abs=repo.root_abs, env=env, stdin_abs="", limit=limit
        )

    return commands_of

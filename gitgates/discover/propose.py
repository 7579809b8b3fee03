"""Propose the gates and hooks that a project lacks: what was found, less what is configured."""

from __future__ import annotations

import os

from gitgates.config.edit import Addition, Edit, make_edit, read_shared
from gitgates.config.load import read_files
from gitgates.config.parse import reachable
from gitgates.discover.choose import USUAL, Proposal, assign_hooks, choose
from gitgates.discover.sources import find_tasks, read_project
from gitgates.discover.tools import find_languages
from gitgates.hosts.claude import FOLDER, TOOL_NAMES
from gitgates.hosts.claude.settings import RULES_FILE
from gitgates.lifecycle import HOOK_OF, kind_of
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.types import Config

_AGENT_FILES = (FOLDER, RULES_FILE)


class Found(Record):
    """What a project says about itself."""

    languages: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()  # only those that have a place
    hooks: dict[str, list[str]] = {}  # hook → its gates
    left_out: tuple[str, ...] = ()  # what, and why
    troubles: tuple[str, ...] = ()  # files that could not be read


def inspect_project(root_abs: str) -> Found:
    """Find out how a project checks itself."""
    project, unreadable = read_project(root_abs)
    tasks, by_hand, broken = find_tasks(project)
    proposals, unusable = choose(tasks)
    hooks, doubled = assign_hooks(proposals)
    used = {name for gates in hooks.values() for name in gates}
    return Found(
        languages=find_languages(project),
        proposals=tuple(one for one in proposals if one.name in used),
        hooks=hooks,
        left_out=(*by_hand, *unusable, *doubled),
        troubles=(*unreadable, *broken),
    )


def wants_agent(root_abs: str) -> bool:
    """Tell whether an agent is in use and nothing is set up.

    Raises: ConfigError where the configuration has problems.
    """
    is_used = any(os.path.exists(os.path.join(root_abs, name)) for name in _AGENT_FILES)
    return is_used and not read_shared(read_files(root_abs)).hooks


def propose_agent(root_abs: str) -> Edit:
    """Return the edit that adds the hooks of an agent, and gates where no hook is configured.

    Raises: ConfigError where the configuration has problems, or nothing can be added to it.
    """
    has_hooks = bool(read_shared(read_files(root_abs)).hooks)
    return propose(root_abs, Found() if has_hooks else inspect_project(root_abs), with_agent=True)


def propose(
    root_abs: str, found: Found, failed: dict[str, str] | None = None, *, with_agent: bool
) -> Edit:
    """Return the edit that adds what is missing, without what failed (gate → why).

    Raises: ConfigError where the configuration has problems, or nothing can be added to it.
    """
    failed = failed or {}
    raw = read_files(root_abs)
    config = read_shared(raw)
    addition = _missing(found, failed, config)
    if with_agent and not any(hook.gates and kind_of(hook.name) for hook in config.hooks):
        addition = _with_agent(addition, config)
    comments = tuple(f"left out by gitgates init --try: {why}" for why in failed.values())
    return make_edit(raw, addition._replace(comments=comments))


def _missing(found: Found, failed: dict[str, str], config: Config) -> Addition:
    """Return the gates that the configuration lacks, and their places in its hooks.

    A gate that has a place in some hook already keeps to it: whoever wrote it chose.
    """
    there = {gate.name: gate for gate in config.gates}
    commands = {gate.command for gate in config.gates if gate.command}
    known = {*there, *failed}
    missing = [one for one in found.proposals if one.name not in known]
    new = {one.name: one.table() for one in missing if one.task.command not in commands}
    chosen = {name for hook in config.hooks for name in reachable(hook.gates, there)}
    waiting = new.keys() | (there.keys() - chosen - failed.keys())
    hooks = {
        hook: [name for name in gates if name in waiting]
        for hook, gates in found.hooks.items()
        # A project that has hooks and none of this name does without it.
        if hook != "manual" or hook in {one.name for one in config.hooks} or not config.hooks
    }
    listed = {hook: {"gates": gates} for hook, gates in hooks.items() if gates}
    return Addition(gates=new, hooks=listed)


def _with_agent(addition: Addition, config: Config) -> Addition:
    """Add the hooks of an agent.

    Before it may stop: all that looks, and a review. After an edit: what is given that file.
    """
    there = {gate.name: gate._asdict() for gate in config.gates}
    gates = {**addition.gates, **there}
    lists = [*((hook.name, hook.gates) for hook in config.hooks), *_lists(addition)]
    late = [name for hook, names in lists if hook in USUAL[1:] for name in names]
    names = late or [name for hook, names in lists if hook in USUAL for name in names]
    looks = [n for n in dict.fromkeys(names) if n not in gates or not gates[n].get("writes")]
    quick = [name for name in looks if gates.get(name, {}).get("pass_files")]
    hooks: dict[str, dict[str, object]] = {
        HOOK_OF["turn-end"]: {"gates": [*looks, "review"], "strategy": "collect"}
    }
    if quick:
        tools = [*TOOL_NAMES["writes"][:2]]
        hooks[HOOK_OF["after-tool"]] = {"enabled_tools": tools, "gates": quick}
    return addition._replace(hooks={**addition.hooks, **hooks})


def _lists(addition: Addition) -> Iterator[tuple[str, list[str]]]:
    for hook, table in addition.hooks.items():
        yield hook, list(table["gates"])  # type: ignore[call-overload]

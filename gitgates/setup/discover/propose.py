"""Read a project, find its tasks, and propose the gates and hooks that it lacks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from gitgates.config import load
from gitgates.config.edit import Addition, Edit, make_edit, read_shared
from gitgates.config.parse import reachable_defined
from gitgates.core.lifecycle import AGENT_KINDS, HOOK_OF, kind_of
from gitgates.core.policy import policy_gates
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.hosts import AGENTS, DEFAULT_AGENT, agent_host
from gitgates.setup.discover import managers, runners, tools
from gitgates.setup.discover.choose import USUAL, Proposal, assign_hooks, choose
from gitgates.setup.discover.project import (
    BadFile,
    Project,
    Task,
    is_inside,
    list_files,
    list_folder,
    read_files,
)
from gitgates.worktree.lock_files import as_setting, install_commands

# Of a gate whose passes are reused.
REUSE_REMARK = "while everything it reads is unchanged"
_RULES_FILE = "AGENTS.md"  # which most agents read
# Folders of programs, and how deep they are looked into.
_PROGRAMS = (
    *((folder, 2) for folder in runners.MISE_FOLDERS),
    *(
        (folder, 1)
        for folder in (*runners.SCRIPT_FOLDERS, *tools.ENVIRONMENTS, "node_modules/.bin")
    ),
)
_TESTS = ("tests", "test")


class Inspection(Record):
    """The tasks of a project, and notes."""

    languages: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()  # only those that some hook runs
    hooks: dict[str, list[str]] = {}  # hook → its gates
    managers: tuple[str, ...] = ()  # of hooks, whose commands are known
    left_out: tuple[str, ...] = ()  # what, and why
    troubles: tuple[str, ...] = ()  # files that could not be read
    setup: tuple[str, ...] = ()  # the commands that install what gates need elsewhere


def read_project(root_abs: str, path: str = "") -> tuple[Project, list[str]]:
    """Return a project, and which of its files could not be read and why.

    `path`: the variable PATH.
    """
    names = set(list_folder(root_abs))
    for folder, depth in _PROGRAMS:
        names |= list_files(root_abs, folder, depth=depth, programs=True)
    for folder in (tools.WORKFLOWS, *_TESTS):
        names |= list_files(root_abs, folder)
    project = Project(texts={}, names=frozenset(names))
    file_names = (*runners.FILES, *tools.READS, *managers.READS, *tools.workflows(project))
    file_names += tuple(runners.task_scripts(project))
    texts, troubles = read_files(root_abs, tuple(dict.fromkeys(file_names)))
    project = project._replace(texts=texts)
    for name in (*_included(project), *managers.included(project)):
        if os.path.isdir(os.path.join(root_abs, name)):
            names |= list_files(root_abs, name, depth=2, programs=True)
        elif is_inside(name):
            more, unreadable = read_files(root_abs, (name,))
            texts |= more
            troubles += unreadable
    # A shim of pyenv, asdf or mise exists whether or not the program that it starts does.
    path = os.pathsep.join(
        directory for directory in path.split(os.pathsep) if "shims" not in directory.split("/")
    )
    in_path = frozenset(name for name in tools.IN_PATH if shutil.which(name, path=path))
    return Project(texts=texts, names=frozenset(names), in_path=in_path), troubles


def _included(project: Project) -> list[str]:
    included: list[str] = []
    for name in runners.FILES:
        if name in project.texts:
            try:
                included += runners.included_files(name, project)
            except BadFile:
                continue  # reported when its tasks are read
    return included


def find_tasks(project: Project) -> tuple[list[Task], list[str], list[str]]:
    """Return all tasks, better sources first; what only a person can take over; what is broken."""
    tasks, troubles = runners.find_runner_tasks(project)
    for name in tools.workflows(project):
        tasks += tools.find_in_workflow(name, project) if name in project.texts else []
    managed, notes = managers.find(project)
    return [*tasks, *tools.find_defaults(project), *managed], notes, troubles


def inspect_project(
    root_abs: str, env: Mapping[str, str], *, take_over: bool = False
) -> Inspection:
    """Find the tasks of a project, and notes.

    `take_over`: hook managers are to be uninstalled, and gates run what they have run.
    """
    project, unreadable = read_project(root_abs, env.get("PATH", os.defpath))
    tasks, by_hand, broken = find_tasks(project)
    proposals, unusable = choose(tasks)
    hooks, doubled = assign_hooks(proposals, take_over=take_over)
    used = {name for gates in hooks.values() for name in gates}
    return Inspection(
        languages=tools.find_languages(project),
        proposals=tuple(proposal for proposal in proposals if proposal.name in used),
        hooks=hooks,
        managers=tuple(
            dict.fromkeys(proposal.task.manager for proposal in proposals if proposal.managed)
        ),
        left_out=(*by_hand, *unusable, *doubled),
        troubles=(*unreadable, *broken),
        setup=install_commands(root_abs),
    )


def wants_agent(root_abs: str) -> bool:
    """Return whether an agent is in use and nothing is set up.

    Raises: ConfigError where the configuration has problems.
    """
    is_used = bool(agents_used(root_abs)) or os.path.isfile(os.path.join(root_abs, _RULES_FILE))
    return is_used and not read_shared(load.read_files(root_abs)).hooks


def agents_used(root_abs: str) -> list[str]:
    """Return the agents that have settings, or rules of their own, in a project."""
    agents = []
    for name, agent in AGENTS.items():
        settings = os.path.join(root_abs, os.path.dirname(agent.settings))
        rules = "" if agent.rules == _RULES_FILE else os.path.join(root_abs, agent.rules)
        if (agent.settings and os.path.isdir(settings)) or os.path.isfile(rules):
            agents.append(name)
    return agents


def propose_agent(root_abs: str, env: Mapping[str, str]) -> Edit:
    """Return the edit that adds the hooks of an agent, and gates where no hook is configured.

    Raises: ConfigError where the configuration has problems, or nothing can be added to it.
    """
    has_hooks = bool(read_shared(load.read_files(root_abs)).hooks)
    return propose(
        root_abs, Inspection() if has_hooks else inspect_project(root_abs, env), with_agent=True
    )


def propose(
    root_abs: str,
    inspection: Inspection,
    failed: dict[str, str] | None = None,
    *,
    remarks: dict[str, str] | None = None,
    with_agent: bool,
) -> Edit:
    """Return the edit that adds what is missing, without what failed (gate → why).

    `remarks` on other gates (gate → what) are written beside that as comments.

    Raises: ConfigError where the configuration has problems, or nothing can be added to it.
    """
    failed = failed or {}
    raw = load.read_files(root_abs)
    config = read_shared(raw)
    addition = _missing(inspection, failed, config)
    if with_agent and not any(
        hook.gates and kind_of(hook.name) in AGENT_KINDS for hook in config.hooks
    ):
        addition = _with_agent(addition, config)
    comments = tuple(f"omitted by gitgates init --try: {why}" for why in failed.values())
    comments += tuple(f"gitgates init --try: {what}" for what in (remarks or {}).values())
    return make_edit(raw, addition._replace(comments=comments))


def _missing(inspection: Inspection, failed: dict[str, str], config: Config) -> Addition:
    """Return the gates that the configuration lacks, and the hooks that are to run them.

    A gate that some hook runs already is added to no other: whoever wrote it chose.
    """
    existing = {gate.name: gate for gate in config.gates}
    commands = {gate.command for gate in config.gates if gate.command}
    excluded = {*existing, *failed}
    missing = [proposal for proposal in inspection.proposals if proposal.name not in excluded]
    new = {
        proposal.name: proposal.table()
        for proposal in missing
        if proposal.task.command not in commands
    }
    chosen = {name for hook in config.hooks for name in reachable_defined(hook.gates, existing)}
    waiting = new.keys() | (existing.keys() - chosen - failed.keys())
    hooks = {
        hook: [name for name in gates if name in waiting]
        for hook, gates in inspection.hooks.items()
        # A project that has hooks and none of this name does without it.
        if hook != "manual"
        or hook in {configured.name for configured in config.hooks}
        or not config.hooks
    }
    tables = {
        hook: {"gates": gates, "strategy": "collect"} for hook, gates in hooks.items() if gates
    }
    # Where gates run on what is pushed, that may be another content than that of the working tree.
    is_pushed = "pre-push" in (*tables, *(hook.name for hook in config.hooks))
    setup = as_setting(inspection.setup)
    others = {"worktree": {"setup": setup}} if is_pushed and setup else {}
    return Addition(gates=new, hooks=tables, others=others, remarks={"reuse": REUSE_REMARK})


def _with_agent(addition: Addition, config: Config) -> Addition:
    """Add the hooks of an agent.

    Before it may stop: all that looks, and a review. After edits: what is given those files.
    """
    existing = {gate.name: gate._asdict() for gate in config.gates}
    gates = {**addition.gates, **existing}
    lists: list[tuple[str, Any]] = [(hook.name, hook.gates) for hook in config.hooks]
    lists += [(hook, table["gates"]) for hook, table in addition.hooks.items()]
    late = [name for hook, names in lists if hook in USUAL[1:] for name in names]
    names = late or [name for hook, names in lists if hook in USUAL for name in names]
    looks = [n for n in dict.fromkeys(names) if n not in gates or not gates[n].get("writes")]
    quick = [name for name in looks if gates.get(name, {}).get("pass_files")]
    hooks: dict[str, dict[str, object]] = {
        HOOK_OF["turn-end"]: {"gates": [*looks, *policy_gates()], "strategy": "collect"}
    }
    if quick:
        tools = [*agent_host(DEFAULT_AGENT).TOOLS.names["writes"][:2]]
        hooks[HOOK_OF["after-batch"]] = {"enabled_tools": tools, "gates": quick}
    return addition._replace(hooks={**addition.hooks, **hooks})

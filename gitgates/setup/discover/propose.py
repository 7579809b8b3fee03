"""Choose gates and hooks from a project's candidates, and propose the missing ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gitgates.config import load
from gitgates.config.edit import Addition, Edit, make_edit, read_shared
from gitgates.config.parse import reachable_defined
from gitgates.core.lifecycle import AGENT_KINDS, GIT_HOOKS, HOOK_OF, kind_of
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.edit.user_file import content
from gitgates.hosts import AGENTS, DEFAULT_AGENT, agent_host
from gitgates.proc.call import find_runner
from gitgates.setup.discover import candidates
from gitgates.setup.discover.candidates import KINDS, GateCandidate, Outcomes, TryResult
from gitgates.setup.discover.folder import KNOWN, ProjectFolder, Tree
from gitgates.setup.install.framework import FILE, read_hooks, stages_of
from gitgates.setup.task_files import list_folder, table
from gitgates.worktree.lock_files import as_setting, install_commands

USUAL = ("pre-commit", "pre-push", "manual")
# Comments behind keys.
REUSE_REMARK = "while everything it reads is unchanged"
WARNING_REMARK = "it failed when it was tried: only a warning, until this line goes"
QUICK_S = 5.0  # slower commands do not run before a commit
_RULES_FILE = "AGENTS.md"  # which most agents read
_FRAMEWORK = "pre-commit"  # the name of the gate that runs the framework
_OF_FRAMEWORK = ("format", "lint")  # kinds of tools that the framework usually runs
_PLAIN = re.compile(r"[^A-Za-z0-9]+")
_IN_VENV = re.compile(r"\bvenv/bin/")
_SETTINGS_ENDS = (".json", ".toml")


class Proposal(Record):
    """A gate to write."""

    candidate: GateCandidate
    name: str = ""
    outcome: TryResult | None = None  # None: not tried
    why_not: str = ""  # why it is left out

    @property
    def is_quick(self) -> bool:
        """Return whether it may run before a commit."""
        candidate, is_usual = self.candidate, bool(KINDS[self.candidate.kind].get("commit"))
        if candidate.is_whole or (candidate.kind == "test" and candidate.is_end_to_end):
            return False
        if not self.outcome or candidate.pass_files:  # a commit has few files
            return is_usual
        # A command that fails quickly may have done only part of its work.
        return self.outcome.seconds <= QUICK_S and (is_usual or not self.outcome.has_failed)

    @property
    def changes(self) -> bool:
        """Return whether it changed files when it was tried."""
        return bool(self.outcome and self.outcome.changed)

    def table(self) -> dict[str, object]:
        """Return its keys in the configuration."""
        candidate, row = self.candidate, KINDS[self.candidate.kind]
        keys: dict[str, object] = {"description": row["description"], "command": candidate.command}
        keys |= {"working_dir": candidate.folder} if candidate.folder else {}
        keys["timeout"] = row["timeout"]
        if files := selected_files(candidate):
            keys["files"] = [*files]
        keys |= {"pass_files": True} if candidate.pass_files else {}
        keys |= {"on_fail": "CONTINUE"} if self.outcome and self.outcome.has_failed else {}
        if self.changes:
            return {**keys, "writes": True}
        is_slow = self.outcome.seconds > QUICK_S if self.outcome else candidate.kind == "test"
        return {**keys, "reuse": True} if is_slow and not candidate.pass_files else keys


class Inspection(Record):
    """What was found in a project."""

    languages: tuple[str, ...] = ()
    candidates: tuple[GateCandidate, ...] = ()
    framework: FrameworkGate | None = None
    managed: Mapping[str, HookManager] = {}  # git hooks that other managers run
    ci: tuple[str, ...] = ()  # commands that CI runs
    notes: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()  # files that could not be read
    setup: tuple[str, ...] = ()  # the commands that install what gates need elsewhere


class Choice(Record):
    """A project's gates and hooks, and what was left out."""

    proposals: tuple[Proposal, ...] = ()
    framework: FrameworkGate | None = None  # the gate that runs pre-commit or prek
    no_framework: str = ""  # why that gate is left out
    hooks: Mapping[str, Sequence[str]] = {}
    left_out: tuple[Proposal, ...] = ()

    def tables(self) -> dict[str, dict[str, object]]:
        """Return gate → its keys."""
        tables = {proposal.name: proposal.table() for proposal in self.proposals}
        return {_FRAMEWORK: self.framework.table(), **tables} if self.framework else tables


def inspect_project(root_abs: str, env: Mapping[str, str]) -> Inspection:
    """Find a project's candidates, and what else checks its changes. Nothing is run."""
    tree = Tree(root_abs)
    choices = candidates.find_candidates(tree, env)
    titles = {row["title"]: row["signs"].split() for row in KNOWN["ecosystems"].values()}
    used = (title for title, signs in titles.items() if any(f.find(*signs) for f in tree.folders))
    return Inspection(
        languages=tuple(used),
        candidates=tuple(choices),
        framework=find_framework(tree.root, env),
        managed=managed_hooks(tree.root),
        ci=tuple(ci_hints(tree.root, (candidate.command for candidate in choices))),
        notes=tuple(tree.notes),
        troubles=tuple(why for _file, why in sorted(tree.troubles.items())),
        setup=install_commands(root_abs),
    )


def selected_files(candidate: GateCandidate) -> tuple[str, ...]:
    """Return the patterns of the files that a candidate checks."""
    folder = candidate.folder
    if not folder:
        return candidate.files
    return tuple(
        f"!{folder}/**/{pattern[1:]}" if pattern.startswith("!") else f"{folder}/**/{pattern}"
        for pattern in candidate.files
    ) or (f"{folder}/",)


def choose(inspection: Inspection, outcomes: Outcomes | None = None) -> Choice:
    """Choose the best candidate of each kind. `outcomes`: None if none was tried."""
    framework, no_framework = inspection.framework, ""
    if framework:  # slow hooks are no reason to leave it out
        outcome = (outcomes or {}).get(framework.candidate.key, TryResult())
        no_framework = framework.missing or ("" if outcome.runs_on else outcome.why_not)
        framework = None if no_framework else framework
    proposals, left_out = _usable(inspection, framework, outcomes)
    leaders = [*proposals]
    for each in left_out:
        if not any(leader.candidate.overlaps(each.candidate) for leader in leaders):
            leaders.append(each)
    hooks: dict[str, list[str]] = {hook: [] for hook in USUAL}
    hooks |= {hook: [_FRAMEWORK] for hook in (framework.hooks if framework else ())}
    chosen: list[Proposal] = []
    unfit: list[Proposal] = []
    for each in left_out:  # with the names that their gates would have
        leader = next(leader for leader in leaders if leader.candidate.overlaps(each.candidate))
        unfit.append(each._replace(name=_name(leader, leaders)))
    for each in proposals:
        proposal = each._replace(name=_name(each, leaders))
        places, why = _places(proposal, inspection, framework)
        (unfit if why else chosen).append(proposal._replace(why_not=why))
        for hook in places:
            hooks[hook].append(proposal.name)
    hooks = {hook: names for hook, names in hooks.items() if names}
    return Choice(tuple(chosen), framework, no_framework, hooks, tuple(unfit))


def _usable(
    inspection: Inspection, framework: FrameworkGate | None, outcomes: Outcomes | None
) -> tuple[list[Proposal], list[Proposal]]:
    """Return the best usable candidate of each kind, in the order of kinds; and the unusable."""
    usable: list[Proposal] = []
    left_out: list[Proposal] = []
    for candidate in inspection.candidates:
        is_usual = candidate.may_change or not candidate.is_task
        is_given = framework and candidate.kind in _OF_FRAMEWORK and is_usual
        if is_given or any(other.candidate.covers(candidate) for other in usable):
            continue
        outcome = (outcomes or {}).get(candidate.key)
        why = candidate.missing or (outcome.why_not if outcome else "")
        if not why and candidate.may_change and outcomes is None:
            why = "not tried, and its name says that it changes files"
        proposal = Proposal(candidate, "", outcome, why)
        if not why:
            usable.append(proposal)
        elif outcome or not any(other.candidate.covers(candidate) for other in left_out):
            left_out.append(proposal)
    return _needed(usable), _needed(left_out, usable)


def _needed(proposals: list[Proposal], others: Sequence[Proposal] = ()) -> list[Proposal]:
    """Return the proposals in the order of kinds, without kinds that others include."""
    kinds = {proposal.candidate.kind for proposal in (*proposals, *others)}
    needless = {"check"} if {"lint", "test"} <= kinds else set()
    needless |= {"build"} if kinds & {"check", "test"} else set()
    kept = (each for each in proposals if each.candidate.kind not in needless)
    return sorted(kept, key=lambda each: [*KINDS].index(each.candidate.kind))


def _name(proposal: Proposal, others: Sequence[Proposal]) -> str:
    """Return a gate's name: its kind, and what it checks if there are several of that kind."""
    candidate = proposal.candidate
    kind, subject = candidate.kind, candidate.ecosystem
    alike = [other.candidate.ecosystem for other in others if other.candidate.kind == kind]
    if len(alike) == 1:
        return kind
    if alike.count(subject) > 1 or not subject:
        subject = candidate.folder or subject or "root"
    return f"{kind}-{_PLAIN.sub('-', subject)}"


def _places(
    proposal: Proposal, inspection: Inspection, framework: FrameworkGate | None
) -> tuple[list[str], str]:
    """Return the hooks in which a gate runs, or why it runs in none.

    No gate is added to a hook that another manager runs. A gate that changes files runs only before
    a commit.
    """
    manager = inspection.managed.get("pre-commit")
    committed_by = manager.file if manager else ""
    if framework and "pre-commit" in framework.hooks:
        committed_by = framework.source
    if proposal.changes and committed_by:
        return [], f"it changes files, and {committed_by} says what runs before a commit"
    if proposal.changes and not proposal.is_quick:
        return [], "it changes files, and takes too long before a commit"
    places = ["pre-commit"] if proposal.is_quick and not committed_by else []
    if not proposal.changes and "pre-push" not in inspection.managed:
        places.append("pre-push")
    return [*places, "manual"], ""


def agents_used(root_abs: str) -> list[str]:
    """Return the agents for which a project has hooks, files or rules.

    `AGENTS.md` does not count, because most agents read it, nor do permissions alone.
    """
    agents = []
    for name, agent in AGENTS.items():
        rules_abs = os.path.join(root_abs, agent.rules)
        has_rules = agent.rules != _RULES_FILE and os.path.isfile(rules_abs)
        folder_abs = os.path.join(root_abs, os.path.dirname(agent.settings))
        files = list_folder(folder_abs) if agent.settings else []
        more = (file for file in files if not file.endswith(_SETTINGS_ENDS))
        has_more = any(more) or any(b"hooks" in content(f"{folder_abs}/{f}") for f in files)
        if has_more or (has_rules and not os.path.islink(rules_abs)):
            agents.append(name)
    return agents


def wants_agent(root_abs: str) -> bool:
    """Return whether an agent is used and no hook is configured.

    Raises: ConfigError if the configuration has problems.
    """
    return bool(agents_used(root_abs)) and not read_shared(load.read_files(root_abs)).hooks


def propose_agent(root_abs: str, env: Mapping[str, str]) -> Edit:
    """Return the edit that adds an agent's hooks, and gates if no hook is configured.

    Raises: ConfigError if the configuration has problems, or nothing can be added to it.
    """
    has_hooks = bool(read_shared(load.read_files(root_abs)).hooks)
    inspection = Inspection() if has_hooks else inspect_project(root_abs, env)
    return propose(root_abs, choose(inspection), inspection.setup, agent=True)


def propose(root_abs: str, choice: Choice, setup: tuple[str, ...] = (), *, agent: bool) -> Edit:
    """Return the edit that adds what is missing, with an agent's hooks if `agent`.

    `setup`: the commands that private checkouts need.

    Raises: ConfigError if the configuration has problems, or nothing can be added to it.
    """
    raw = load.read_files(root_abs)
    config = read_shared(raw)
    addition = _missing(choice, setup, config)
    kinds = {kind_of(hook.name) for hook in config.hooks if hook.gates}
    is_wanted = agent and not any(kind in AGENT_KINDS for kind in kinds)
    return make_edit(raw, _with_agent(addition, config) if is_wanted else addition)


def _missing(choice: Choice, setup: tuple[str, ...], config: Config) -> Addition:
    """Return the gates that the configuration lacks, and the hooks to run them.

    A gate that some hook already runs is added to no other hook: whoever wrote it chose.
    """
    existing = {gate.name: gate for gate in config.gates}
    commands = {
        (gate.program.working_dir, gate.program.command)
        for gate in config.gates
        if gate.program.command
    }
    new = {name: fields for name, fields in choice.tables().items() if name not in existing}
    for name, fields in [*new.items()]:
        if (fields.get("working_dir", "."), fields.get("command")) in commands:
            del new[name]
    chosen = {name for hook in config.hooks for name in reachable_defined(hook.gates, existing)}
    waiting = new.keys() | (existing.keys() - chosen)
    configured = {hook.name for hook in config.hooks}
    tables: dict[str, dict[str, object]] = {}
    for hook, gates in choice.hooks.items():
        names = [name for name in gates if name in waiting]
        # A project that has other hooks needs no hook for running gates by hand.
        if names and (hook != "manual" or hook in configured or not configured):
            tables[hook] = {"gates": names, "strategy": "collect"}
    # A push's gates run in a private checkout if the working tree has other content.
    setting = as_setting(setup) if "pre-push" in (*tables, *configured) else ""
    if "pre-push" in tables and not (setting or "worktree" in config.tuned):
        # Only the working tree has the programs of a virtual environment.
        texts = " ".join(str(fields.get("command")) for fields in new.values())
        tables["pre-push"] |= {"unstaged": "hide"} if _IN_VENV.search(texts) else {}
    return Addition(
        gates=new,
        hooks=tables,
        others={"worktree": {"setup": setting}} if setting else {},
        remarks={"reuse": REUSE_REMARK, "on_fail": WARNING_REMARK},
    )


def _with_agent(addition: Addition, config: Config) -> Addition:
    """Add an agent's hooks.

    Before it may stop, all gates run that change nothing; after edits, those that take paths.
    """
    existing = {gate.name: gate._asdict() for gate in config.gates}
    gates = {**addition.gates, **existing}
    lists: list[tuple[str, Any]] = [(hook.name, hook.gates) for hook in config.hooks]
    lists += [(hook, table["gates"]) for hook, table in addition.hooks.items()]
    late = [name for hook, names in lists if hook in USUAL[1:] for name in names]
    names = late or [name for hook, names in lists if hook in USUAL for name in names]
    looks = [n for n in dict.fromkeys(names) if not gates.get(n, {}).get("writes")]
    quick = [name for name in looks if gates.get(name, {}).get("pass_files")]
    if not looks:
        return addition
    stop: dict[str, object] = {"gates": looks, "strategy": "collect"}
    hooks = {HOOK_OF["turn-end"]: stop}
    if quick:
        tools = [*agent_host(DEFAULT_AGENT).TOOLS.names["writes"][:2]]
        hooks[HOOK_OF["after-batch"]] = {"enabled_tools": tools, "gates": quick}
    return addition._replace(hooks={**addition.hooks, **hooks})


_PREK = "prek.toml"
_HOOKS = frozenset(point.name for point in GIT_HOOKS)
_FRAMEWORK_HOOKS = ("pre-commit", "pre-push", "commit-msg", "prepare-commit-msg")
_FEW_HINTS = 5
_LONGEST = 100  # of a command in a hint
_RUN = re.compile(r"(?P<indent>[ ]*(?:- )?)(?:run|command|script|before_script):[ ]*(?P<text>.*)")
_COMMAND = re.compile(r"(?:\./)?[A-Za-z][\w./-]*(?: |$)")
_CHECKS = re.compile(KNOWN["ci"]["words"].strip(), re.IGNORECASE)
_INSTALLS = re.compile(
    r"\b(?:install|sync|restore|upload|download|apt|echo|cd|cache)\b|^(?:if|for|git|gh) "
)


class HookManager(Record):
    """A hook manager that is in use, other than pre-commit and prek."""

    name: str
    file: str  # its settings


class FrameworkGate(Record):
    """The gate that runs all hooks of pre-commit or prek, and the git hooks in which it runs."""

    runner: str
    source: str
    hooks: tuple[str, ...]
    missing: str = ""  # why it cannot start

    @property
    def candidate(self) -> GateCandidate:
        """Return the candidate to try: all its hooks, on all files."""
        command = f"{self.runner} run --all-files"
        return GateCandidate("format", command, self.source, framework=self.runner)

    def table(self) -> dict[str, object]:
        """Return the gate's keys."""
        keys = {"description": f"The hooks of {self.source}", "pre-commit": True, "timeout": "5m"}
        return {**keys, "runner": "prek"} if self.runner == "prek" else keys


def find_framework(root: ProjectFolder, env: Mapping[str, str]) -> FrameworkGate | None:
    """Return the gate for pre-commit or prek; None if neither is used, or if it runs gitgates."""
    source = root.find(FILE, _PREK)
    settings = root.table(source)
    hooks = read_hooks(settings)
    if not hooks or any("gitgates" in str(hook.get("id")) for hook in hooks):
        return None
    stages = [stages_of(hook, settings) or ("pre-commit", "pre-push") for hook in hooks]
    names = {name for each in stages for name in each}
    run = [hook for hook in _FRAMEWORK_HOOKS if hook in names]
    run += ["manual"] if "pre-commit" in run else []
    runners = ("prek",) if source == _PREK else ("pre-commit", "prek")
    present = [name for name in runners if os.access(find_runner(name, env)[0], os.X_OK)]
    runner = (*present, *runners)[0]
    return FrameworkGate(runner, source, tuple(run), "" if present else f"{runner} is not found")


def managed_hooks(root: ProjectFolder) -> dict[str, HookManager]:
    """Return the git hooks that other hook managers run: hook → manager."""
    managed: dict[str, HookManager] = {}
    for row in KNOWN["managers"]:
        patterns = row["files"].split()
        if "paths" not in row:
            # In `.husky/_`, husky has a stub for every hook.
            folder = os.path.dirname(patterns[0])
            own = [name for name in sorted(root.files) if os.path.dirname(name) == folder]
            scripts = [name for name in own if fnmatchcase(name, patterns[0])]
            managed |= {os.path.basename(name): HookManager(row["name"], name) for name in scripts}
        elif name := root.find(*patterns):
            for path in row["paths"].split():
                keys = table(root.table(name), *(key for key in path.split(".") if key))
                managed |= dict.fromkeys(keys, HookManager(row["name"], name))
    return {hook: manager for hook, manager in managed.items() if hook in _HOOKS}


def ci_hints(root: ProjectFolder, commands: Iterable[str]) -> list[str]:
    """Return what CI runs in addition to some commands, as `file:line: command`."""
    patterns, proposed = KNOWN["ci"]["files"].split(), {*commands}
    hints: dict[str, str] = {}
    for file in sorted(root.files):
        is_of_ci = any(fnmatchcase(file, pattern) for pattern in patterns)
        for number, text in _ci_commands(root.text(file)) if is_of_ci else ():
            is_check = _COMMAND.match(text) and _CHECKS.search(text)
            if is_check and not _INSTALLS.search(text) and text not in proposed:
                hints.setdefault(text, f"{file}:{number}: {text[:_LONGEST]}")
    more = len(hints) - _FEW_HINTS
    return [*hints.values()][:_FEW_HINTS] + ([f"and {more} more"] if more > 0 else [])


def _ci_commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of scripts in a CI file, with their numbers."""
    indent = -1  # of the key whose script follows
    for number, line in enumerate(text.split("\n"), 1):
        depth = len(line) - len(line.lstrip())
        is_item = depth == indent and line.lstrip().startswith("- ")
        if indent >= 0 and (not line.strip() or depth > indent or is_item):
            yield number, line.strip().removeprefix("- ").strip("'\"")
            continue
        indent = -1
        if match := _RUN.fullmatch(line):
            is_block = match["text"] in ("", "|", "|-", ">", ">-", "|+", ">+")
            indent = len(match["indent"]) if is_block else -1
            if not is_block:
                yield number, match["text"].strip().strip("'\"")

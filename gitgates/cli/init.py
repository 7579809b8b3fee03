"""`gitgates init`: propose gates from the project's own files, and write them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import click

from gitgates.config.edit import Edit, difference, summary
from gitgates.config.load import parse_files, read_files
from gitgates.core import environ, errors
from gitgates.core.clean import plain_line
from gitgates.core.lifecycle import HOOK_OF, HOOK_POINTS
from gitgates.core.record import Record
from gitgates.core.types import Config, Gate, GateResult, Hook
from gitgates.engine.plan import REUSE, make_plan
from gitgates.engine.run import run_plan
from gitgates.engine.walk import describe
from gitgates.git.paths import tracked_paths
from gitgates.git.repo import find_repo
from gitgates.hosts import AGENTS, DEFAULT_AGENT
from gitgates.hosts.git import decode_by_hand
from gitgates.report.text import Console
from gitgates.setup.discover.propose import (
    REUSE_REMARK,
    Inspection,
    agents_used,
    inspect_project,
    propose,
    wants_agent,
)
from gitgates.setup.doctor.checks import find_missing
from gitgates.setup.install.managers import VIA
from gitgates.store.files import replace_unchanged
from gitgates.verbs.output import dump, stdout
from gitgates.verbs.repository import config_root, current_repo, edits_files

_CHECKED_NOTHING = ("skipped", "unchecked")
_AT_ONCE_S = 0.1  # the shell alone takes a few milliseconds; tools that read files, longer
_NOTHING = """\
Looked in {root_abs} for tasks named test, check, lint, typecheck, build and format in
  mise, just, make, Taskfile.yml, package.json, nox, tox, the tables of poe, taskipy, pdm, hatch,
  and scripts/; for what pre-commit, lefthook, husky, lint-staged and GitHub workflows run;
and for the tools of Python, Go, JavaScript, TypeScript and Rust; found nothing to propose.
"""
_EXAMPLE = """
Write a gate yourself, for example in {file}:

  [{prefix}gates.check]
  command = "./check.sh"
  timeout = "2m"

  [{prefix}hooks.pre-commit]
  gates = ["check"]
"""


@click.command("init")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Run each proposed gate once, omit those that cannot pass here, and report those that "
    "checked nothing. Asks first.",
)
@click.option("--yes", "-y", is_flag=True, help="With --try: skip the confirmation.")
@click.option(
    "--take-over",
    is_flag=True,
    help="Take over the commands that husky, lefthook and others run, in the same hooks; "
    "uninstall those managers afterwards.",
)
@click.option(
    "--agent",
    type=click.Choice([*AGENTS]),
    help="Also propose hooks for this coding agent. Default: the agents whose settings, "
    "AGENTS.md or CLAUDE.md are present.",
)
@edits_files
def command(*, dry_run: bool, tries: bool, yes: bool, agent: str | None, take_over: bool) -> int:
    """Propose gates and hooks from the checks that the project already has.

    Commands of the project (make lint, npm test, …), of its hook managers and of its CI come first.
    Commands that husky, lefthook or simple-git-hooks run in a hook do not become gates of that
    hook, unless --take-over is given; all hooks of pre-commit become one gate. Default commands of
    tools come last, and only if their paths are known and the tool is installed in the project.
    Gates are written to pyproject.toml, or to gitgates.toml if there is none. Existing gates and
    hooks, and all other content of the file, are left unchanged.

    With --try, a gate that passes but seems to have checked nothing is marked as such, also in a
    comment above it. Gates that rewrite files or need a commit message are not run; only the
    existence of their program is checked.

    Exit status 0: done, or nothing to do. 64: --try without --yes, and standard input is not a
    terminal. 78: the configuration has errors, or cannot be written.
    """
    if tries and not yes and not sys.stdin.isatty():
        raise errors.UsageError(
            "--try runs the proposed commands and asks first, but standard input is not a "
            "terminal; nothing was run or written",
            "To run them without confirmation: gitgates init --try --yes",
        )
    cwd_abs = os.getcwd()
    root_abs = config_root(cwd_abs)
    inspection = inspect_project(root_abs, environ.read(), take_over=take_over)
    for_agent = bool(agent) or wants_agent(root_abs)
    edit = propose(root_abs, inspection, with_agent=for_agent)
    for trouble in inspection.troubles:
        click.echo(trouble, err=True)
    if not edit.adds and not inspection.proposals:
        prefix = "tool.gitgates." if edit.file == "pyproject.toml" else ""
        notes = "".join(f"  left out: {note}\n" for note in inspection.left_out)
        text = _NOTHING.format(root_abs=root_abs) + notes
        text += _EXAMPLE.format(file=edit.file, prefix=prefix)
        click.echo(text, nl=False, err=dry_run)
        _has_repository(cwd_abs)
        return errors.OK
    click.echo(_proposals_text(inspection, take_over=take_over), nl=False, err=dry_run)
    if tries and edit.adds:
        trial = _try_gates(edit, yes=yes, err=dry_run)
        if trial is None:
            click.echo("nothing was run, and nothing was written", err=True)
            return errors.OK
        edit = propose(
            root_abs, inspection, trial.failed, remarks=trial.remarks, with_agent=for_agent
        )
        if not edit.adds:
            click.echo("no gate remains; nothing was written", err=True)
            click.echo("  Fix what failed, or write them anyway: gitgates init", err=True)
            return errors.OK
    finish(root_abs, edit, dry_run=dry_run)
    click.echo(_remarks(inspection, edit), nl=False, err=dry_run)
    if _has_repository(cwd_abs) and edit.adds and not dry_run:
        has_agent = HOOK_OF["turn-end"] in edit.hooks
        names = [agent] if agent else agents_used(root_abs) or [DEFAULT_AGENT]
        managers = () if take_over else inspection.managers
        click.echo(_next_step(edit.hooks, managers, names if has_agent else []))
    return errors.OK


def _remarks(inspection: Inspection, edit: Edit) -> str:
    """Return what there is to say of what was added."""
    if not edit.adds:
        return f"{edit.file}: nothing to add\n"
    added = [proposal for proposal in inspection.proposals if proposal.name in edit.gates]
    names = ", ".join(proposal.name for proposal in added if "reuse" in proposal.table())
    remarks = f"passes of {names} are reused {REUSE_REMARK}\n" if names else ""
    if edit.others:
        commands = " and ".join(f"`{text}`" for text in inspection.setup)
        remarks += f"gates that run on a pushed commit, not in the working tree, get {commands}\n"
    return remarks


def _next_step(hooks: Iterable[str], managers: tuple[str, ...], agents: list[str]) -> str:
    """Return the commands that install the added hooks: those of git, those of agents."""
    via = next((f" --via {manager}" for manager in managers if manager in VIA), "")
    of_git = any(HOOK_POINTS[hook].host == "git" for hook in hooks)
    options = [via] if of_git else []
    options += ["".join(f" --agent {name}" for name in agents)] if agents else []
    install = " and ".join(f"gitgates install-hooks{option}" for option in options)
    return f"next: {install and f'{install}, and '}try the gates now: gitgates run"


def _has_repository(cwd_abs: str) -> bool:
    """Return whether there is a repository for hooks; print a note if not."""
    try:
        find_repo(cwd_abs, environ.read())
    except errors.GitError as error:
        click.echo(f"gitgates: {error}", err=True)
        return False
    return True


def _beside(inspection: Inspection, *, take_over: bool) -> Iterator[str]:
    """Yield how the gates relate to the hook managers of a project."""
    framework_gates = {
        proposal.name: proposal.task.manager
        for proposal in inspection.proposals
        if "pre-commit" in proposal.task.keys
    }
    for manager in inspection.managers:
        if take_over:
            yield f"uninstall {manager}; otherwise, the commands taken over from it run twice"
        else:
            yield (
                f"{manager} keeps running its own commands; none of them is a gate of the same hook"
            )
    for gate, manager in framework_gates.items():
        yield f"gate `{gate}` replaces {manager}'s own hook, which no longer runs"


def _proposals_text(inspection: Inspection, *, take_over: bool) -> str:
    width = max((len(proposal.name) for proposal in inspection.proposals), default=0)
    lines = [f"languages: {', '.join(inspection.languages)}"] if inspection.languages else []
    for proposal in inspection.proposals:
        command = plain_line(proposal.task.command or proposal.task.description, 50)
        lines.append(f"  {proposal.name:{width}}  {command}  ({proposal.task.source})")
    lines += [f"  left out: {note}" for note in inspection.left_out]
    lines += [f"  {line}" for line in _beside(inspection, take_over=take_over)]
    return "".join(f"{line}\n" for line in lines)


class Trial(Record):
    """The outcome of gates that were run once: each as `gate: command: outcome`."""

    failed: dict[str, str] = {}
    remarks: dict[str, str] = {}  # on gates that pass, and seem to have looked at nothing


def _try_gates(edit: Edit, *, yes: bool, err: bool) -> Trial | None:
    """Run the new gates of an edit in sequence; return which fail, which checked nothing, and why.

    None: the person declined. Raises: GitError outside a repository.
    """
    repo = current_repo()
    repo = repo._replace(env={**repo.env, REUSE: "0"})
    config = parse_files({**read_files(repo.root_abs), edit.file: edit.after})[0] or Config()
    gates = [gate for gate in config.gates if gate.name in edit.gates]
    run = [
        gate
        for gate in gates
        if not (gate.writes or gate.pre_commit is not None or gate.pass_hook_input)
    ]
    if run and not yes and not _confirm(run, repo.root_abs):
        return None
    failed: dict[str, str] = {}
    for gate in gates:
        if gate not in run:
            why = "needs a commit message" if gate.pass_hook_input else "may rewrite files"
            click.echo(f"{gate.name}: not tried, because it {why}", err=err)
            for missing in find_missing((gate,), repo.root_abs, repo.env):
                failed[gate.name] = missing.what
    hook = Hook(name="manual", gates=tuple(gate.name for gate in run), strategy="collect")
    event = decode_by_hand(
        hook.name, tracked_paths(repo.git), (), (repo.root_abs, repo.git_dir_abs)
    )
    plan = make_plan(config, hook, event, {})
    console = Console(stdout())
    decision = run_plan(plan, config._replace(jobs=1), repo, console)
    results = [visit.result for visit in decision.visits]
    passed = [result for result in results if result.status in ("passed", *_CHECKED_NOTHING)]
    failed |= {result.gate: describe(result) for result in results if result not in passed}
    remarks = {result.gate: remark for result in passed if (remark := emptiness_of(result))}
    trial = Trial(failed=_with_commands(failed, gates), remarks=_with_commands(remarks, gates))
    for line in trial.failed.values():
        click.echo(f"  left out: {line}", err=err)
    for line in trial.remarks.values():
        click.echo(f"  look at: {line}", err=err)
    return trial


def emptiness_of(result: GateResult) -> str:
    """Return why a gate that passed may have looked at nothing; empty if there is no sign of it."""
    if result.status in _CHECKED_NOTHING:
        return describe(result)
    if result.duration_s < _AT_ONCE_S and not result.output.strip():
        return "passed immediately without output; verify that it checks something"
    return ""


def _with_commands(texts: dict[str, str], gates: list[Gate]) -> dict[str, str]:
    """Return `gate: command: text` for each gate, in the order of the gates."""
    commands = {gate.name: gate.command or gate.runner for gate in gates if gate.name in texts}
    return {
        name: " ".join(f"{name}: {command}: {texts[name]}".split())
        for name, command in commands.items()
    }


def _confirm(gates: list[Gate], root_abs: str) -> bool:
    click.echo(f"the following will run once each in {root_abs}:", err=True)
    for gate in gates:
        click.echo(f"  {gate.command if isinstance(gate.command, str) else gate.name}", err=True)
    return click.confirm("Run them?", err=True)


def finish(root_abs: str, edit: Edit, *, dry_run: bool) -> None:
    """Write an edit and print what changed; in a dry run, print the diff."""
    if dry_run:
        dump(difference(edit))
    elif edit.before != edit.after:
        replace_unchanged(root_abs, edit.file, edit.before, edit.after)
        click.echo(f"{edit.file}: {summary(edit)}")

"""`gitgates init`: propose gates from the project's own files, try them, and write them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping

import click

from gitgates.config.edit import Edit, difference, read_shared, summary, to_toml
from gitgates.config.load import read_files
from gitgates.config.values import BadValue, parse_duration
from gitgates.core import environ, errors
from gitgates.core.clean import counted, plain_line
from gitgates.core.lifecycle import HOOK_OF, HOOK_POINTS
from gitgates.core.types import Gate, GateResult, Plan
from gitgates.git.repo import Repo, find_repo
from gitgates.hosts import AGENTS, DEFAULT_AGENT
from gitgates.report.text import Console, open_terminal
from gitgates.setup.discover.candidates import GateCandidate, TryResult
from gitgates.setup.discover.folder import KNOWN
from gitgates.setup.discover.propose import (
    REUSE_REMARK,
    Choice,
    Inspection,
    Proposal,
    agents_used,
    choose,
    inspect_project,
    propose,
    wants_agent,
)
from gitgates.setup.install.managers import VIA
from gitgates.store.files import replace_unchanged
from gitgates.verbs.output import dump
from gitgates.verbs.repository import config_root, edits_files, note_nothing_found
from gitgates.worktree.setup import SetupError

_LONGEST = 60  # characters of a command in a line
_TRY_FOR = "60s"
_EXAMPLE = """
A gate is any command that exits with status 0 if the check passes. Paste into {file}:

  [{prefix}gates.check]
  command = "./check.sh"
  timeout = "2m"

  [{prefix}hooks.pre-commit]
  gates = ["check"]
"""


_NOTHING_RUNS = """\
nothing was written, because none of the commands found can run here
  Install what is missing and run gitgates init again, or paste the lines above.
"""


class _Duration(click.ParamType[float]):
    """A time such as 90s or 5m, in seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return it. Fails as click does."""
        try:
            return parse_duration(value)
        except BadValue:
            self.fail(f"`{value}` is not a time; use 90s or 5m", param, ctx)


@click.command("init")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@click.option(
    "--try/--no-try",
    "tries",
    default=None,
    help="Run each command once, in a private checkout, or run none. Default: ask on a terminal; "
    "elsewhere, run none.",
)
@click.option(
    "--try-for",
    "limit_s",
    type=_Duration(),
    default=_TRY_FOR,
    show_default=True,
    help="How long all commands together may take.",
)
@click.option(
    "--agent",
    type=click.Choice([*AGENTS]),
    help="Also propose hooks for this coding agent. Default: the agents that the project has "
    "hooks, files or rules for, other than AGENTS.md.",
)
@edits_files
def command(*, dry_run: bool, tries: bool | None, limit_s: float, agent: str | None) -> int:
    """Propose gates and hooks from the checks that the project already has.

    Looks for tasks that are named like a check (make lint, npm test, …) and for well-known tools'
    files, and runs each command once if you agree: in a private checkout, so that no file in the
    working tree changes. Commands that pass or fail are proposed; a command that cannot start,
    checks nothing or does not end is left out, with the reason and the lines to paste. A command
    that fails only warns. Quick commands run before a commit, the others before a push.

    Gates are written to pyproject.toml, or to gitgates.toml if there is none. Existing gates and
    hooks, and the rest of the file, are left unchanged. Other hook managers keep the hooks that
    they run; all hooks of pre-commit or prek become one gate.

    Exit status 0: done, or nothing to do. 78: the configuration has errors, or cannot be written.
    """
    cwd_abs = os.getcwd()
    root_abs = config_root(cwd_abs)
    repo = _repository(cwd_abs)
    if not repo:
        root_abs = cwd_abs  # a file further up may belong to anything
    inspection = inspect_project(root_abs, environ.read())
    for_agent = bool(agent) or wants_agent(root_abs)
    choice = choose(inspection)
    edit = propose(root_abs, choice, inspection.setup, agent=for_agent)
    for trouble in inspection.troubles:
        click.echo(trouble, err=True)
    outcomes = None
    if repo and tries is not False:
        outcomes = _try(repo, inspection, limit_s, asks=tries is None)
    if outcomes is not None:
        choice = choose(inspection, outcomes)
        edit = propose(root_abs, choice, inspection.setup, agent=for_agent)
    text = _found_text(inspection, choice, edit)
    if not edit.adds and not (choice.proposals or choice.framework):
        end = _NOTHING_RUNS if choice.left_out else _nothing_text(root_abs, edit.file)
        click.echo(text + end, nl=False, err=dry_run)
        if repo and not dry_run:
            note_nothing_found(repo)
        return errors.OK
    click.echo(text, nl=False, err=dry_run)
    finish(root_abs, edit, dry_run=dry_run)
    click.echo(_remarks(inspection, choice, edit), nl=False, err=dry_run)
    if repo and edit.adds and not dry_run:
        has_agent = HOOK_OF["turn-end"] in edit.hooks
        names = [agent] if agent else agents_used(root_abs) or [DEFAULT_AGENT]
        click.echo(_next_step(edit.hooks, inspection, names if has_agent else []))
    return errors.OK


def _repository(cwd_abs: str) -> Repo | None:
    """Return the repository for hooks; print a note if there is none."""
    try:
        return find_repo(cwd_abs, environ.read())
    except errors.GitError as error:
        text = f"{error.message}, so nothing is tried, and no hook can be installed yet"
        click.echo(f"gitgates: {text}\n  {error.hint}", err=True)
        return None


# trying


class _TryProgress(Console):
    """Shows what runs in one line on a terminal, and prints only messages."""

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - the listener's
        """Take a command out of the line."""
        self._running.pop(result.gate, None)
        self._clear()


def _try(
    repo: Repo, inspection: Inspection, limit_s: float, *, asks: bool
) -> Mapping[tuple[str, str], TryResult] | None:
    """Run what would be added, then the replacements of commands that cannot run.

    Returns None if nobody agreed, or there is nothing to run.
    """
    outcomes: dict[tuple[str, str], TryResult] = {}
    gates = read_shared(read_files(repo.root_abs)).gates
    waiting = _untried(inspection, outcomes, gates)
    if not waiting or (asks and not (sys.stdin.isatty() and _confirm(waiting, limit_s))):
        return None
    from gitgates.setup.discover.trial import Trial  # it loads all that runs gates

    progress = _TryProgress(open_terminal(sys.stderr.fileno(), repo.env))
    try:
        with Trial(repo, limit_s, progress) as trial:
            while waiting:
                outcomes |= trial.run(waiting)
                waiting = _untried(inspection, outcomes, gates)
    except (errors.GitError, errors.StateError, errors.LockError, SetupError) as error:
        click.echo(f"not tried: {error}", err=True)
        return None
    return outcomes


def _untried(
    inspection: Inspection,
    outcomes: Mapping[tuple[str, str], TryResult],
    gates: tuple[Gate, ...],
) -> list[GateCandidate]:
    """Return the candidates that would be added and have not run yet."""
    names, commands = {gate.name for gate in gates}, {gate.program.command for gate in gates}
    choice = choose(inspection, outcomes)
    candidates = [
        proposal.candidate
        for proposal in choice.proposals
        if proposal.name not in names and proposal.candidate.command not in commands
    ]
    if choice.framework and not any(gate.program.pre_commit is not None for gate in gates):
        candidates.append(choice.framework.candidate)
    return [candidate for candidate in candidates if candidate.key not in outcomes]


def _confirm(candidates: list[GateCandidate], limit_s: float) -> bool:
    click.echo(
        f"these would run once each, in a private checkout, for at most {limit_s:g} s in all:",
        err=True,
    )
    for candidate in candidates:
        place = f"{candidate.folder}: " if candidate.folder else ""
        click.echo(f"  {place}{plain_line(candidate.command, _LONGEST)}", err=True)
    return click.confirm("Run them?", default=True, err=True)


# text


def _found_text(inspection: Inspection, choice: Choice, edit: Edit) -> str:
    """Return what was found, what was left out, and what else checks the project."""
    lines = [f"languages: {', '.join(inspection.languages)}"] if inspection.languages else []
    width = max(map(len, choice.tables()), default=0)
    if choice.framework:
        lines.append(
            f"  {'pre-commit':{width}}  all hooks of {choice.framework.source}, as one gate"
        )
    for proposal in choice.proposals:
        command = plain_line(proposal.candidate.command, _LONGEST)
        hook = next((hook for hook, names in choice.hooks.items() if proposal.name in names), "")
        end = f"{_trial_end(proposal)}; {hook}" if proposal.name in edit.gates else "already there"
        source = proposal.candidate.source
        lines.append(f"  {proposal.name:{width}}  {command}  ({source}): {end}")
    lines += [*_left_out(inspection, choice, edit)]
    other_hooks = [hook for hook in ("pre-commit", "pre-push") if hook in inspection.managed]
    for hook in other_hooks:
        manager = inspection.managed[hook]
        lines.append(f"{hook} stays with {manager.name} ({manager.file}): no gate is added there")
    lines += ["to turn what it runs into gates: gitgates convert"] if other_hooks else []
    if inspection.ci:
        lines.append("CI also runs commands; add those that you want:")
        lines += [f"  {hint}" for hint in inspection.ci]
    lines += inspection.notes
    return "".join(f"{line}\n" for line in lines)


def _trial_end(proposal: Proposal) -> str:
    """Return how a gate's trial ended."""
    outcome = proposal.outcome
    if not outcome:
        return "not tried"
    took = f"{outcome.seconds:.1f} s"
    if outcome.changed:
        return f"changed {counted(outcome.changed, 'file')}, {took}"
    word = "failed, so it only warns" if outcome.has_failed else "passed"
    return f"{word}, {took}" + (f", {outcome.remark}" if outcome.remark else "")


def _left_out(inspection: Inspection, choice: Choice, edit: Edit) -> Iterator[str]:
    """Yield what is not proposed and why, and the lines to paste."""
    gates: dict[str, dict[str, object]] = {}
    hooks: dict[str, dict[str, list[str]]] = {}
    if (framework := inspection.framework) and choice.no_framework:
        yield f"  left out: the hooks of {framework.source}: {choice.no_framework}"
        gates["pre-commit"] = framework.table()
        hooks = {hook: {"gates": ["pre-commit"]} for hook in framework.hooks if hook != "manual"}
    for each in choice.left_out:
        command = plain_line(each.candidate.command, _LONGEST)
        yield f"  left out: {command} ({each.candidate.source}): {each.why_not}"
        if each.name not in {*choice.tables(), *gates}:
            gates[each.name] = each.table()
            hook = "pre-commit" if each.is_quick else "pre-push"
            hooks.setdefault(hook, {"gates": []})["gates"].append(each.name)
    if gates:
        prefix = ("tool", "gitgates") if edit.file == "pyproject.toml" else ()
        parts = [to_toml((*prefix, "gates"), gates)]
        parts += [
            to_toml((*prefix, "hooks"), {hook: table})
            for hook, table in hooks.items()
            if hook not in edit.hooks
        ]
        yield "  to add what was left out, paste this, and name the gates in their hooks:"
        text = "\n".join(parts).rstrip("\n")
        yield from (f"    {line}" if line else "" for line in text.split("\n"))


def _nothing_text(root_abs: str, file: str) -> str:
    """Return which files were looked for, and a gate to paste."""
    runners = [row["files"].split()[0] for row in KNOWN["runners"] if "files" in row]
    signs = [row["signs"].split()[0] for row in KNOWN["ecosystems"].values()]
    names = ", ".join(dict.fromkeys((*runners, *signs, ".pre-commit-config.yaml")))
    text = click.wrap_text(
        f"found no check to propose in {root_abs}. Looked for tasks named format, lint, typecheck, "
        f"check, test or build, and for tools, in {names}, scripts/ and similar places.",
        width=78,
    )
    prefix = "tool.gitgates." if file == "pyproject.toml" else ""
    return f"{text}\n{_EXAMPLE.format(file=file, prefix=prefix)}"


def _remarks(inspection: Inspection, choice: Choice, edit: Edit) -> str:
    """Return remarks on what was added."""
    if not edit.adds:
        return f"{edit.file}: nothing to add\n"
    tables = choice.tables()
    names = ", ".join(name for name in edit.gates if tables.get(name, {}).get("reuse"))
    remarks = f"passes of {names} are reused {REUSE_REMARK}\n" if names else ""
    if any(
        proposal.outcome is None for proposal in choice.proposals if proposal.name in edit.gates
    ):
        remarks += "not tried: gitgates init --dry-run --try shows which commands work here\n"
    if edit.others:
        commands = " and ".join(f"`{text}`" for text in inspection.setup)
        remarks += f"gates that run on a pushed commit, not in the working tree, get {commands}\n"
    if HOOK_OF["turn-end"] in edit.hooks:
        remarks += f'to have an agent\'s changes reviewed, add "review" to {HOOK_OF["turn-end"]}\n'
    return remarks


def _next_step(hooks: Iterable[str], inspection: Inspection, agents: list[str]) -> str:
    """Return the commands that install the added hooks: those of git, those of agents."""
    via = next((f" --via {m.name}" for m in inspection.managed.values() if m.name in VIA), "")
    of_git = any(HOOK_POINTS[hook].host == "git" for hook in hooks)
    options = [via] if of_git else []
    options += ["".join(f" --agent {name}" for name in agents)] if agents else []
    install = " and ".join(f"gitgates install-hooks{option}" for option in options)
    return f"next: {install and f'{install}, and '}try the gates now: gitgates run"


def finish(root_abs: str, edit: Edit, *, dry_run: bool) -> None:
    """Write an edit and print what changed; in a dry run, print the diff."""
    if dry_run:
        dump(difference(edit))
    elif edit.before != edit.after:
        replace_unchanged(root_abs, edit.file, edit.before, edit.after)
        click.echo(f"{edit.file}: {summary(edit)}")

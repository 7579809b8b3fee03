"""`gitgates init`: propose gates from what the project says about itself, and write them."""

from __future__ import annotations

import os
import sys

import click

from gitgates import environ, errors
from gitgates.cli.edits import finish, is_empty
from gitgates.cli.repository import config_root
from gitgates.config.load import read_files
from gitgates.git.repo import find_repo
from gitgates.lifecycle import HOOK_OF
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.config.edit import Edit
    from gitgates.discover.choose import Proposal

_NOTHING = """\
Looked in {root_abs} for tasks named test, check, lint, typecheck, build and format in
  mise, just, make, Taskfile.yml, package.json, nox, tox, the tables of poe, taskipy, pdm, hatch,
  and scripts/; for what pre-commit, lefthook, husky and lint-staged run, and GitHub's workflows;
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
_AGENT_FILES = (".claude", "CLAUDE.md")


class Found(Record):
    """What a project says about itself."""

    languages: tuple[str, ...]
    proposals: tuple[Proposal, ...]  # only those that have a place
    placed: dict[str, list[str]]  # hook → its gates
    left_out: tuple[str, ...]  # what, and why
    troubles: tuple[str, ...]  # files that could not be read


@click.command("init")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Run each proposed gate once, and leave out what cannot pass here. Asks first.",
)
@click.option("--yes", "-y", is_flag=True, help="With --try: do not ask.")
@click.option(
    "--agent",
    type=click.Choice(["claude"]),
    help="Propose hooks of this coding agent, too. Taken by itself where .claude or CLAUDE.md is.",
)
def command(*, dry_run: bool, tries: bool, yes: bool, agent: str | None) -> int:
    """Find out how this project checks itself, and make gates and hooks of that.

    The project's own words (make lint, npm test, …) come first, and what its hook managers and its
    CI run already; a tool's default only where its settings name its paths and the project's own
    environment has it. They go to pyproject.toml, or to gitgates.toml where there is none; every
    other byte of the file stays, and so does every gate and hook that is there.

    With --try, a gate that rewrites files, or is about a commit message, is not run: for it, only
    its program is looked for.

    Exit status 0: done, or nothing to do. 64: --try without --yes, where nobody can be asked. 78:
    the configuration has problems, or cannot be written.
    """
    if tries and not yes and not sys.stdin.isatty():
        raise errors.UsageError(
            "--try runs the proposed commands and asks first, but standard input is no terminal; "
            "nothing was run or written",
            "To run them without being asked: gitgates init --try --yes",
        )
    cwd_abs = os.getcwd()
    root_abs = config_root(cwd_abs)
    found = look(root_abs)
    for_agent = wants_agent(root_abs, asked=bool(agent))
    edit = propose(root_abs, found, with_agent=for_agent)
    for trouble in found.troubles:
        click.echo(trouble, err=True)
    if is_empty(edit) and not found.proposals:
        click.echo(_nothing(root_abs, found, edit.file), nl=False, err=dry_run)
        _has_repository(cwd_abs)
        return errors.OK
    click.echo(_shown(found), nl=False, err=dry_run)
    if tries and not is_empty(edit):
        from gitgates.cli.trying import try_gates

        failed = try_gates(edit, yes=yes, err=dry_run)
        if failed is None:
            click.echo("nothing was run, and nothing was written", err=True)
            return errors.OK
        edit = propose(root_abs, found, failed, with_agent=for_agent)
        if is_empty(edit):
            click.echo("no gate is left, and nothing was written", err=True)
            click.echo("  Mend what failed, or write them all the same: gitgates init", err=True)
            return errors.OK
    finish(root_abs, edit, dry_run=dry_run)
    if is_empty(edit):
        click.echo(f"{edit.file}: nothing is missing", err=dry_run)
    if _has_repository(cwd_abs) and not (is_empty(edit) or dry_run):
        click.echo(_next(edit))
    return errors.OK


def _has_repository(cwd_abs: str) -> bool:
    """Tell whether there is a repository that hooks can be installed in; say it where not."""
    try:
        find_repo(cwd_abs, environ.read())
    except errors.GitError as error:
        click.echo(f"gitgates: {error}", err=True)
        return False
    return True


def look(root_abs: str) -> Found:
    """Find out how a project checks itself."""
    from gitgates.discover.choose import choose, place
    from gitgates.discover.sources import find_tasks, read_project
    from gitgates.discover.tools import find_languages

    project, unreadable = read_project(root_abs)
    tasks, by_hand, broken = find_tasks(project)
    proposals, unusable = choose(tasks)
    placed, doubled = place(proposals)
    used = {name for gates in placed.values() for name in gates}
    return Found(
        languages=find_languages(project),
        proposals=tuple(one for one in proposals if one.name in used),
        placed=placed,
        left_out=(*by_hand, *unusable, *doubled),
        troubles=(*unreadable, *broken),
    )


def propose_agent(root_abs: str) -> Edit:
    """Return the edit that adds the hooks of an agent, and gates where no hook is configured.

    Raises: ConfigError where the configuration has problems, or nothing can be added to it.
    """
    from gitgates.config.edit import read_shared

    found = Found((), (), {}, (), ())
    if not read_shared(read_files(root_abs)).hooks:
        found = look(root_abs)
    return propose(root_abs, found, with_agent=True)


def wants_agent(root_abs: str, *, asked: bool) -> bool:
    """Tell whether hooks of an agent are wanted: asked for, or it is in use and nothing is set up.

    Raises: ConfigError where the configuration has problems.
    """
    from gitgates.config.edit import read_shared

    is_used = any(os.path.exists(os.path.join(root_abs, name)) for name in _AGENT_FILES)
    return asked or (is_used and not read_shared(read_files(root_abs)).hooks)


def propose(
    root_abs: str, found: Found, failed: dict[str, str] | None = None, *, with_agent: bool
) -> Edit:
    """Return the edit that adds what is missing, without what failed (gate → why).

    Raises: ConfigError where the configuration has problems, or nothing can be added to it.
    """
    # Cold: the list of verbs loads this file, too, and has no use for tomlkit.
    from gitgates.config.edit import make_edit, read_shared
    from gitgates.discover import compare

    failed = failed or {}
    raw = read_files(root_abs)
    config = read_shared(raw)
    proposals = [one for one in found.proposals if one.name not in failed]
    placed = {
        hook: [name for name in gates if name not in failed] for hook, gates in found.placed.items()
    }
    addition = compare.find_missing(proposals, placed, config)
    if with_agent:
        addition = compare.with_agent(addition, config)
    comments = tuple(f"left out by gitgates init --try: {why}" for why in failed.values())
    return make_edit(raw, addition._replace(comments=comments))


def _nothing(root_abs: str, found: Found, file: str) -> str:
    prefix = "tool.gitgates." if file == "pyproject.toml" else ""
    notes = "".join(f"  left out: {note}\n" for note in found.left_out)
    return _NOTHING.format(root_abs=root_abs) + notes + _EXAMPLE.format(file=file, prefix=prefix)


def _shown(found: Found) -> str:
    width = max((len(proposal.name) for proposal in found.proposals), default=0)
    lines = [f"languages: {', '.join(found.languages)}"] if found.languages else []
    for proposal in found.proposals:
        command = _short(proposal.task.command or proposal.task.description)
        lines.append(f"  {proposal.name:{width}}  {command}  ({proposal.task.source})")
    lines += [f"  left out: {note}" for note in found.left_out]
    managed = {one.task.source.partition(":")[0] for one in found.proposals if one.task.hooks}
    if managed:
        named = ", ".join(sorted(managed))
        lines.append(f"  runs twice while its manager is installed: {named}")
    return "".join(f"{line}\n" for line in lines)


def _short(command: str) -> str:
    command = " ".join(command.split())
    longest = 50
    return command if len(command) <= longest else command[: longest - 1] + "…"


def _next(edit: Edit) -> str:
    agents = (
        " and gitgates install-hooks --agent claude" if HOOK_OF["turn-end"] in edit.hooks else ""
    )
    return f"next: gitgates install-hooks{agents}, and to try the gates now: gitgates run"

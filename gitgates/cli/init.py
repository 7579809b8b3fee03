"""`gitgates init`: propose gates from what the project says about itself, and write them."""

from __future__ import annotations

import os

import click

from gitgates import environ, errors
from gitgates.cli.edits import finish, is_empty
from gitgates.cli.places import config_root
from gitgates.config.load import read_files
from gitgates.system.roots import find_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.discover.choose import Proposal

_NOTHING = """\
Looked in {root_abs} for tasks named test, check, lint, typecheck, build and format in
  mise, just, make, Taskfile.yml, package.json, nox, tox, and the tables of poe, taskipy, pdm, hatch
and for the tools of Python, Go, JavaScript, TypeScript and Rust; found nothing to propose.

Write a gate yourself, for example in {file}:

  [{prefix}gates.check]
  command = "./check.sh"
  timeout = "2m"

  [{prefix}hooks.pre-commit]
  gates = ["check"]
"""


@click.command("init")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
def command(*, dry_run: bool) -> int:
    """Find out how this project checks itself, and make gates and hooks of that.

    The project's own words (make lint, npm test, …) win over what its language suggests. They go to
    pyproject.toml, or to gitgates.toml where there is none; every other byte of the file stays, and
    so does every gate and hook that is there.

    Exit status 0: done, or nothing to do. 78: the configuration has problems, or cannot be written.
    """
    # Cold: the list of verbs loads this file, too, and has no use for tomlkit.
    from gitgates.config.edit import make_edit, read_shared
    from gitgates.discover.choose import choose
    from gitgates.discover.compare import find_missing
    from gitgates.discover.project import read_project
    from gitgates.discover.sources import find_languages, find_tasks

    cwd_abs = os.getcwd()
    root_abs = config_root(cwd_abs)
    raw = read_files(root_abs)
    project, unreadable = read_project(root_abs)
    tasks, broken = find_tasks(project)
    proposals, left_out = choose(tasks)
    edit = make_edit(raw, find_missing(proposals, read_shared(raw)))
    for trouble in (*unreadable, *broken):
        click.echo(trouble, err=True)
    if not proposals:
        prefix = "tool.gitgates." if edit.file == "pyproject.toml" else ""
        text = _NOTHING.format(root_abs=root_abs, file=edit.file, prefix=prefix)
        click.echo(text, nl=False, err=dry_run)
        _has_repository(cwd_abs)
        return errors.OK
    click.echo(_found(find_languages(project), proposals, left_out), nl=False, err=dry_run)
    finish(root_abs, edit, dry_run=dry_run)
    if is_empty(edit):
        click.echo(f"{edit.file}: nothing is missing", err=dry_run)
    if _has_repository(cwd_abs) and not (is_empty(edit) or dry_run):
        click.echo("next: gitgates install-hooks, and to try the gates now: gitgates run")
    return errors.OK


def _has_repository(cwd_abs: str) -> bool:
    """Tell whether there is a repository that hooks can be installed in; say it where not."""
    try:
        find_roots(cwd_abs, environ.read())
    except errors.GitError as error:
        click.echo(f"gitgates: {error}", err=True)
        return False
    return True


def _found(languages: tuple[str, ...], proposals: list[Proposal], left_out: list[str]) -> str:
    width = max(len(proposal.name) for proposal in proposals)
    lines = [f"languages: {', '.join(languages)}"] if languages else []
    lines += [
        f"  {proposal.name:{width}}  {_short(proposal.task.command)}  ({proposal.task.source})"
        for proposal in proposals
    ]
    lines += [f"  left out: {note}" for note in left_out]
    return "".join(f"{line}\n" for line in lines)


def _short(command: str) -> str:
    longest = 50
    return command if len(command) <= longest else command[: longest - 1] + "…"

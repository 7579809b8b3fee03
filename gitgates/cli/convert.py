"""`gitgates convert`: take over the gates of another tool."""

from __future__ import annotations

import os

import click

from gitgates.cli.init import finish
from gitgates.config import OWN_FILE, PYPROJECT
from gitgates.config.edit import Addition, Edit, make_edit
from gitgates.config.load import describe, read_files
from gitgates.core.clean import plain, visible_line
from gitgates.core.errors import BLOCKED, OK
from gitgates.setup.convert.conversion import Conversion, convert
from gitgates.setup.convert.prove import Prover, last_commits, scratch_folder
from gitgates.setup.install.managers import FRAMEWORK
from gitgates.verbs.repository import config_root, current_repo, edits_files

_SHOWN_LINES = 8  # of what each said about a commit on which they differ


@click.command("convert")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@click.option(
    "--prove",
    is_flag=True,
    help="Write nothing: make the last commits again in two clones, one with the hooks of the old "
    "manager, one with those of gitgates, and compare which are accepted.",
)
@click.option(
    "--commits",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="With --prove: how many commits.",
)
@click.argument("file", type=click.Path(), default="")
@edits_files
def command(file: str, *, dry_run: bool, prove: bool, commits: int) -> int:
    """Add what another tool runs to the configuration, as gates of the same hooks.

    FILE is a file of lefthook, husky, lint-staged, simple-git-hooks or pre-commit in the root of
    the repository. Without FILE, all files of these managers are converted.

    Local hooks of pre-commit become gates; one gate runs all its other hooks. Existing gates and
    hooks are left unchanged. What is not converted is reported on standard error, with the reason.

    --prove needs the manager and the tools that it runs. It runs the hooks of a commit, not those
    of a push. It uses the gates that are already configured, so you can change them until nothing
    differs.

    Exit status 0: done, or no difference. 1: with --prove, a difference, or no gate has run. 64:
    FILE cannot be read, is of an unknown kind, or is invalid; there is nothing to convert, or no
    manager to compare with. 78: the configuration has errors, or cannot be written.
    """
    root_abs = config_root(os.getcwd())
    conversion = convert(root_abs, file)
    addition = Addition(gates=conversion.gates, hooks=conversion.hooks)
    raw = read_files(root_abs)
    edit = make_edit(raw, addition)
    _report(conversion, edit)
    if prove:
        is_configured = raw[OWN_FILE] is not None or b"tool.gitgates" in (raw[PYPROJECT] or b"")
        return _prove(conversion, edit if is_configured else make_edit({}, addition), commits)
    finish(root_abs, edit, dry_run=dry_run)
    if not edit.adds:
        click.echo(f"{edit.file}: nothing to add", err=dry_run)
    elif not dry_run:
        click.echo("next: gitgates check")
        if others := ", ".join(name for name in conversion.managers if name not in FRAMEWORK):
            click.echo(f"then uninstall {others}, as its commands would run twice")
    return OK


def _prove(conversion: Conversion, edit: Edit, count: int) -> int:
    """Print each replayed commit, and what it comes to; return the exit status."""
    repo, old = current_repo(), " and ".join(conversion.managers)
    numbers = {"accepted by both": 0, "refused by both": 0, "different": 0}
    runs = dict.fromkeys(conversion.gates, 0)
    with scratch_folder() as scratch_abs:
        prover = Prover(repo, conversion, edit, os.path.realpath(scratch_abs))
        for replay in prover.replay(last_commits(repo, count)):
            both = f"{'accepted' if replay.old.accepted else 'refused'} by both"
            numbers["different" if replay.difference else both] += 1
            for gate in replay.gates:
                runs[gate] = runs.get(gate, 0) + 1
            verdict = f"DIFFERENT: {old} {replay.difference}" if replay.difference else both
            click.echo(visible_line(f"{replay.commit[:10]} {replay.subject[:50]}: {verdict}"))
            for name, end in ((old, replay.old), ("gitgates", replay.new)):
                lines = plain(end.output).strip().splitlines()[-_SHOWN_LINES:]
                for line in lines if replay.difference else ():
                    click.echo(visible_line(f"    {name}: {line}"))
    click.echo(", ".join(f"{verdict}: {number}" for verdict, number in numbers.items()))
    ran = [f"{gate} ({number})" for gate, number in runs.items() if number]
    idle = [gate for gate, number in runs.items() if not number]
    click.echo(f"gates that have run: {', '.join(ran) or 'none'}")
    if idle:
        click.echo(f"gates that have not run: {', '.join(idle)}")
    if not ran:
        click.echo("nothing was compared: no gate has run", err=True)
    return OK if ran and not numbers["different"] else BLOCKED


def _report(conversion: Conversion, edit: Edit) -> None:
    for note in conversion.notes:
        click.echo(visible_line(note), err=True)
    for location in edit.conflicts:
        click.echo(f"{location}: already exists with a different value; left unchanged", err=True)
    if edit.problems:
        click.echo(describe(list(edit.problems)), err=True)

"""`gitgates convert`: turn what another hook manager runs into gates."""

from __future__ import annotations

import os

import click

from gitgates.cli.init import finish
from gitgates.config.edit import Addition, Edit, make_edit
from gitgates.config.load import describe, read_files
from gitgates.core.clean import visible_line
from gitgates.core.errors import OK
from gitgates.setup.convert.conversion import Conversion, convert
from gitgates.setup.install.managers import FRAMEWORK
from gitgates.verbs.repository import config_root, edits_files


@click.command("convert")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@click.argument("file", type=click.Path(), default="")
@edits_files
def command(file: str, *, dry_run: bool) -> int:
    """Add gates to the configuration for what another hook manager runs, in the same hooks.

    FILE is a file of lefthook, husky, lint-staged, simple-git-hooks or pre-commit in the root of
    the repository. Without FILE, all files of these managers are converted.

    Each local hook of pre-commit becomes a gate, and one more gate runs all its other hooks.
    Existing gates and hooks are left unchanged. What is not converted is listed on standard error,
    with the reason.

    Exit status 0: done. 64: FILE cannot be read, is of an unknown kind, or is invalid, or there is
    nothing to convert. 78: the configuration has errors, or cannot be written.
    """
    root_abs = config_root(os.getcwd())
    conversion = convert(root_abs, file)
    addition = Addition(gates=conversion.gates, hooks=conversion.hooks)
    edit = make_edit(read_files(root_abs), addition)
    _report(conversion, edit)
    finish(root_abs, edit, dry_run=dry_run)
    if not edit.adds:
        click.echo(f"{edit.file}: nothing to add", err=dry_run)
    elif not dry_run:
        click.echo("next: gitgates check")
        if others := ", ".join(name for name in conversion.managers if name not in FRAMEWORK):
            click.echo(f"then uninstall {others}, because its commands would run twice")
    return OK


def _report(conversion: Conversion, edit: Edit) -> None:
    for note in conversion.notes:
        click.echo(visible_line(note), err=True)
    for location in edit.conflicts:
        click.echo(f"{location}: already exists with a different value; left unchanged", err=True)
    if edit.problems:
        click.echo(describe(list(edit.problems)), err=True)

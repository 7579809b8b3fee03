"""`gitgates convert`: take over the gates of another tool."""

from __future__ import annotations

import os

import click

from gitgates import errors
from gitgates.cli.init import finish
from gitgates.cli.repository import config_root
from gitgates.config.edit import Addition, make_edit
from gitgates.config.load import describe, read_files
from gitgates.discover.convert import read


@click.command("convert")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@click.argument("file", type=click.Path())
def command(file: str, *, dry_run: bool) -> int:
    """Add the gates and hooks of FILE to the configuration.

    FILE is a gates.json (`gates`, `hooks`) or a YAML or JSON file with `quality_gates`, which
    become the hook `headless`. Gates and hooks that the configuration has already stay as they are.
    What is left out is said on standard error.

    Exit status 0: done. 64: FILE cannot be read, is of another kind, or makes no sense.
    78: the configuration has problems, or cannot be written.
    """
    tables, notes = read(file)
    root_abs = config_root(os.getcwd())
    addition = Addition(gates=tables.get("gates", {}), hooks=tables.get("hooks", {}))
    edit = make_edit(read_files(root_abs), addition)
    for note in notes:
        click.echo(note, err=True)
    for where in edit.kept:
        click.echo(f"{where}: is there already and says something else; left as it is", err=True)
    if edit.problems:
        click.echo(describe(list(edit.problems)), err=True)
    finish(root_abs, edit, dry_run=dry_run)
    if not edit.adds:
        click.echo(f"{edit.file}: nothing to add", err=dry_run)
    elif not dry_run:
        click.echo("next: gitgates check")
    return errors.OK

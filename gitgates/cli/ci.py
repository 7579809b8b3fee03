"""`gitgates ci init`: write the configuration with which a CI host runs the gates."""

from __future__ import annotations

import json
import os
from importlib import resources

import click

from gitgates import __version__
from gitgates.config.edit import Edit, difference
from gitgates.core.errors import OK, ConfigError, StateError
from gitgates.core.types import Config
from gitgates.edit import user_file
from gitgates.git.repo import Repo
from gitgates.verbs.completion import complete_hooks
from gitgates.verbs.output import dump
from gitgates.verbs.repository import configuration, current_repo, edits_files

# host → the file that runs the gates there; setup/ci/HOST.yml is its template.
FILES = {"github": ".github/workflows/gitgates.yml", "gitlab": ".gitlab/gitgates.yml"}
_GITLAB = ".gitlab-ci.yml"  # includes it; a project has one
_HOOKS = ("pre-push", "pre-commit", "manual")  # the first that has gates runs in CI
_INCLUDE = "include:\n  - local: /.gitlab/gitgates.yml\n"
_DEFAULT_BRANCH = "main"


@click.group("ci")
def command() -> None:
    """Run the gates in CI."""


@command.command("init")
@click.argument("host", type=click.Choice([*FILES]))
@click.option(
    "--hook",
    default="",
    help="The hook whose gates run. Default: the first of pre-push, pre-commit and manual that "
    "has gates.",
    shell_complete=complete_hooks,
)
@click.option("--dry-run", is_flag=True, help="Print the change as a diff and write nothing.")
@edits_files
def init(host: str, *, hook: str, dry_run: bool) -> int:
    """Write a workflow that runs the gates on what a branch changes, and verifies its commits.

    \b
    github  .github/workflows/gitgates.yml
    gitlab  .gitlab/gitgates.yml, and .gitlab-ci.yml, which includes it, if there is none

    The workflow installs this version of gitgates. Existing files are never changed. Add the steps
    that install what your gates run.

    Exit status 0: done, or nothing to do. 73: a file exists and differs, or cannot be written. 78:
    the configuration has errors, or no hook has gates.
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    repo = current_repo()
    workflow = _edit(repo, FILES[host], _workflow(host, _hook(configuration(repo), hook), repo))
    edits = [workflow]
    including = _edit(repo, _GITLAB, _INCLUDE)
    if host == "gitlab" and including.before is None:
        edits.append(including)
    if dry_run:
        dump(b"".join(map(difference, edits)))
        return OK
    if workflow.before not in (None, workflow.after):
        raise StateError(
            f"{workflow.file}: exists, and differs; nothing was written",
            f"To compare: gitgates ci init {host} --dry-run\n  To write it again, remove it first.",
        )
    for edit in edits:
        _write(repo, edit)
    if host == "gitlab" and FILES[host].encode() not in (including.before or including.after):
        click.echo(f"{_GITLAB}: exists, and was left unchanged. Add to it:\n{_INCLUDE}", nl=False)
    for file in _others(repo, host):
        click.echo(f"{file}: mentions gitgates as well; make sure that the gates do not run twice")
    if workflow.before is None:
        click.echo(f"next: add to {workflow.file} what installs your gates' tools, and commit it")
    return OK


def _hook(config: Config, name: str) -> str:
    """Return the hook to run. Raises: ConfigError if it has no gates."""
    have_gates = [hook.name for hook in config.hooks if hook.gates]
    for candidate in (name,) if name else _HOOKS:
        if candidate in have_gates:
            return candidate
    message = f"hook `{name}` has no gates" if name else f"none of {', '.join(_HOOKS)} has gates"
    hint = f"Hooks with gates: {', '.join(have_gates)}; name one with --hook." if have_gates else ""
    raise ConfigError(f"{message}; nothing was written", hint or "To propose gates: gitgates init")


def _workflow(host: str, hook: str, repo: Repo) -> str:
    """Return the text of the file that runs the gates."""
    template = resources.files("gitgates") / f"setup/ci/{host}.yml"
    text = template.read_text(encoding="utf-8")
    branch = repo.git.ask("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    name = os.fsdecode(branch.stdout).strip().removeprefix("origin/") or _DEFAULT_BRANCH
    for mark, value in (("@HOOK@", hook), ("@BRANCH@", name), ("@VERSION@", __version__)):
        text = text.replace(mark, json.dumps(value))  # which is a text in YAML, too
    return text


def _others(repo: Repo, host: str) -> list[str]:
    """Return other workflows of GitHub that mention gitgates."""
    folder, workflow = os.path.split(FILES[host])
    folder_abs = os.path.join(repo.root_abs, folder)
    names = sorted({*os.listdir(folder_abs)} - {workflow}) if host == "github" else []
    return [
        f"{folder}/{name}"
        for name in names
        if b"gitgates" in user_file.content(os.path.join(folder_abs, name))
    ]


def _edit(repo: Repo, file: str, text: str) -> Edit:
    before = user_file.read(os.path.join(repo.root_abs, file))
    return Edit(file, None if before is None else before.encode(), text.encode())


def _write(repo: Repo, edit: Edit) -> None:
    if edit.before == edit.after:
        click.echo(f"{edit.file}: already up to date")
        return
    path_abs = os.path.join(repo.root_abs, edit.file)
    user_file.require_inside(repo.root_abs, path_abs)
    user_file.replace(path_abs, None, edit.after.decode())
    click.echo(f"{edit.file}: written")

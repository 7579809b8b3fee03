"""Run proposed gates once, before they are written down."""

from __future__ import annotations

import os
import shutil

import click

from gitgates.cli.output import stdout
from gitgates.cli.repository import here
from gitgates.config.load import FILES, parse_files, read_files
from gitgates.engine.context import World
from gitgates.engine.pipeline import inside
from gitgates.engine.plan import make_plan
from gitgates.engine.runner import run_plan
from gitgates.engine.walk import describe
from gitgates.git.paths import tracked_paths
from gitgates.hosts import manual
from gitgates.report.text import Console, Style
from gitgates.types import Config, Gate, Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.config.edit import Edit


def try_gates(edit: Edit, *, yes: bool, err: bool) -> dict[str, str] | None:
    """Run the new gates of an edit, one after the other; return which cannot pass, and why.

    None: the person did not want that. Raises: GitError outside of a repository.
    """
    repo = here()
    raw = (
        edit.after if name == edit.file else old
        for name, old in zip(FILES, read_files(repo.root_abs), strict=True)
    )
    config = parse_files(tuple(raw))[0] or Config()
    gates = [gate for gate in config.gates if gate.name in edit.gates]
    run = [gate for gate in gates if _only_looks(gate)]
    if run and not yes:
        click.echo(f"to be run now, once each, in {repo.root_abs}:", err=True)
        for gate in run:
            click.echo(
                f"  {gate.command if isinstance(gate.command, str) else gate.name}", err=True
            )
        if not click.confirm("Run them?", err=True):
            return None
    failed: dict[str, str] = {}
    for gate in gates:
        if not _only_looks(gate):
            missing = _missing_program(gate, repo.root_abs)
            click.echo(f"{gate.name}: not tried, because it {_why(gate)}", err=err)
            failed |= {gate.name: f"{missing} is not installed here"} if missing else {}
    hook = Hook(name="manual", gates=tuple(gate.name for gate in run), strategy="collect")
    event = manual.decode(hook.name, tracked_paths(repo.git), (), (repo.root_abs, repo.git_dir_abs))
    plan = make_plan(config, hook, event, {})
    console = Console(stdout(), Style())
    world = World(repo, repo.git, repo.env, console)
    decision = run_plan(plan, config._replace(jobs=1), inside(world, event))
    for visit in decision.visits:
        if visit.result.status not in ("passed", "skipped"):
            failed[visit.result.gate] = describe(visit.result)
    for gate in gates:
        if gate.name in failed:
            command = gate.command if isinstance(gate.command, str) else gate.runner
            failed[gate.name] = " ".join(f"{gate.name}: {command}: {failed[gate.name]}".split())
            click.echo(f"  left out: {failed[gate.name]}", err=err)
    return failed


def _only_looks(gate: Gate) -> bool:
    return not (gate.writes or gate.pre_commit is not None or gate.pass_hook_input)


def _why(gate: Gate) -> str:
    return "wants a commit message" if gate.pass_hook_input else "may rewrite files"


def _missing_program(gate: Gate, root_abs: str) -> str:
    """Return the program of a gate that is not run, where it is not here; empty: it is."""
    line = gate.command if isinstance(gate.command, str) else gate.runner
    program = line.split()[0]
    is_here = shutil.which(program) or os.path.exists(os.path.join(root_abs, program))
    return "" if is_here or not program.replace("-", "").isalnum() else program

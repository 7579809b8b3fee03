"""`gitgates run`: run the gates of a hook now, as its host would."""

from __future__ import annotations

import json
import time

import click

from gitgates import environ, errors
from gitgates.artifacts import Ran, save_run
from gitgates.cli.output import stdout
from gitgates.cli.params import complete_gates, complete_hooks, unknown_hook
from gitgates.cli.paths import PathCommand, Selection, path_options, select_paths
from gitgates.cli.places import configuration, here
from gitgates.config.values import did_you_mean
from gitgates.engine.plan import find_hook, make_plan
from gitgates.hosts import manual
from gitgates.lifecycle import HOOK_POINTS
from gitgates.pipeline import inside, is_running_here, record_skips
from gitgates.record import Record
from gitgates.report.console import Console
from gitgates.report.document import error_document, run_document
from gitgates.report.jsonl import JsonLines
from gitgates.report.text import Style
from gitgates.runner import run_plan
from gitgates.types import Config, Decision, Hook, Plan
from gitgates.world import Silent, World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.system.git import Git
    from gitgates.system.roots import Roots
    from gitgates.system.terminal import Terminal
    from gitgates.world import Listener


class Wish(Record):
    """What the caller asked for, beside the paths."""

    hook: str
    gates: tuple[str, ...]
    fmt: str
    junit: str
    style: Style


@click.command("run", cls=PathCommand)
@click.argument("hook", required=False, default="", shell_complete=complete_hooks)
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="GATE",
    help="Run only this gate; again.",
    shell_complete=complete_gates,
)
@path_options
@click.option("--format", "fmt", type=click.Choice(["text", "json", "jsonl"]), default="text")
@click.option("--junit", metavar="FILE", default="", help="Also write a JUnit XML file.")
@click.option("-q", "--quiet", is_flag=True, help="Say only what did not pass.")
@click.option("-v", "--verbose", is_flag=True, help="Show the output of gates that passed, too.")
def command(**options: Any) -> int:  # noqa: ANN401 - click's
    """Run the gates of HOOK now (default: manual if it is configured, else pre-commit).

    The paths are what has changed against HEAD, staged, unstaged and untracked, unless an option
    says otherwise. Exit status 0: passed. 1: blocked. Others: see the manual.
    """
    terminal = stdout()
    selection = Selection(**{field: options.pop(field) for field in Selection._fields})
    style = Style(
        colour=terminal.colour,
        quiet=bool(options.pop("quiet")),
        verbose=bool(options.pop("verbose")),
    )
    wish = Wish(**options, style=style)
    if wish.fmt == "text":
        return _run(wish, selection, terminal)
    try:
        return _run(wish, selection, terminal)
    except errors.GitgatesError as error:
        document = error_document(error.message, error.hint, error.exit_status)
        if wish.fmt == "jsonl":
            JsonLines(terminal).write("run-failed", document)
        else:
            terminal.write(json.dumps(document, indent=2).encode() + b"\n")
        raise


def _run(wish: Wish, selection: Selection, terminal: Terminal) -> int:
    roots, git = here()
    config = configuration(roots)
    hook = _hook(config, wish)
    paths, gone = select_paths(selection, git, roots)
    event = manual.decode(hook.name, paths, gone, (roots.root_abs, roots.git_dir_abs))
    if is_running_here(git.env, roots.git_dir_abs, event.name):
        click.echo(f"gitgates: {event.name} is running here already; not run again", err=True)
        return errors.OK
    if not hook.gates:
        # A line of CI that checks nothing must not be green.
        named = ", ".join(found.name for found in config.hooks if found.gates) or "none"
        raise errors.ConfigError(
            f"hook `{hook.name}` has no gates; nothing was checked", f"Hooks with gates: {named}."
        )
    plan = make_plan(config, hook, event, environ.skipped_gates(git.env))
    record_skips(plan, World(roots, git, git.env, Silent()))
    decision = _run_plan(plan, config, (wish, terminal), (roots, git))
    return manual.encode(decision)


def _run_plan(
    plan: Plan, config: Config, said: tuple[Wish, Terminal], place: tuple[Roots, Git]
) -> Decision:
    (wish, terminal), (roots, git) = said, place
    listener: Listener = Silent()
    if wish.fmt == "text":
        listener = Console(terminal, wish.style)
    elif wish.fmt == "jsonl":
        listener = JsonLines(terminal)
        listener.planned(plan)
    world = World(roots, git, git.env, listener, wants_ticks=terminal.live and wish.fmt == "text")
    began_s = time.time()
    decision = run_plan(plan, config, inside(world, plan.event))
    ran = Ran(plan.event, config, decision, roots.state_abs, began_s)
    for note in save_run(ran).notes:
        click.echo(f"gitgates: {note}", err=True)
    match listener:
        case Console():
            terminal.write(listener.closing(decision, plan))
        case JsonLines():
            listener.closing(decision, plan)
        case _:
            document = json.dumps(run_document(decision, plan), indent=2)
            terminal.write(document.encode() + b"\n")
    if wish.junit:
        _write_junit(wish.junit, decision, plan)
    return decision


def _hook(config: Config, wish: Wish) -> Hook:
    """Return the hook to run, with only the gates that were asked for."""
    configured = tuple(hook.name for hook in config.hooks)
    name = wish.hook or ("manual" if "manual" in configured or wish.gates else "pre-commit")
    if name not in HOOK_POINTS:
        raise unknown_hook(name, config)
    hook = find_hook(config, name) or Hook(name=name)
    hook = hook._replace(name=name)
    if not wish.gates:
        return hook
    known = tuple(gate.name for gate in config.gates)
    for gate in wish.gates:
        if gate not in known:
            hint = did_you_mean(gate, known) or f"Defined are: {', '.join(known) or 'none'}."
            raise errors.UsageError(f"no gate `{gate}`", hint)
    return hook._replace(gates=tuple(dict.fromkeys(wish.gates)))


def _write_junit(path: str, decision: Decision, plan: Plan) -> None:
    from gitgates.report.junit import junit_xml

    try:
        with open(path, "wb") as file:
            file.write(junit_xml(decision, plan))
    except OSError as error:
        raise errors.UsageError(f"--junit {path}: cannot be written: {error.strerror}") from error

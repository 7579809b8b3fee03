"""`gitgates run`: run the gates of a hook now, as its host would."""

from __future__ import annotations

import json
import time

import click

from gitgates import errors
from gitgates.cli.completion import complete_gates, complete_hooks, unknown_hook
from gitgates.cli.output import stdout
from gitgates.cli.paths import PathCommand, PathSelection, path_options, select_paths
from gitgates.cli.repository import configuration, current_repo, restore_interrupted
from gitgates.config.values import did_you_mean
from gitgates.engine.plan import find_hook
from gitgates.engine.run import InterruptedRun, NullListener
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.hosts import git as githook
from gitgates.hosts import manual
from gitgates.lifecycle import HOOK_POINTS
from gitgates.policies.git_hooks import handle
from gitgates.report.artifacts import save_run
from gitgates.report.documents import (
    JsonLines,
    error_document,
    interrupted_document,
    junit_xml,
    run_document,
)
from gitgates.report.text import Console, Style
from gitgates.types import Config, Decision, Hook, Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.engine.run import Listener
    from gitgates.policies.git_hooks import HookCall
    from gitgates.report.text import Terminal


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
def command(
    *,
    hook: str,
    gates: tuple[str, ...],
    fmt: str,
    junit: str,
    quiet: bool,
    verbose: bool,
    **paths: Any,  # noqa: ANN401 - click's
) -> int:
    """Run the gates of HOOK now (default: manual if it is configured, else pre-commit).

    The paths are what has changed against HEAD, staged, unstaged and untracked, unless an option
    says otherwise. With --staged, the gates see exactly what they would see in a commit now, and
    may do what they may do there: unstaged work is hidden and put back, `restage` stages.

    Exit status 0: passed. 1: blocked. Others: see the manual.
    """
    terminal = stdout()
    style = Style(colour=terminal.colour, quiet=quiet, verbose=verbose)
    listener = _listener(fmt, style, terminal)
    try:
        restore_interrupted("run")
        run = _run_staged if paths["staged"] else _run
        return _report(
            lambda: run(hook, gates, PathSelection(**paths), listener), listener, terminal, junit
        )
    except errors.GitgatesError as error:
        document = error_document(error.message, error.hint, error.exit_status)
        if isinstance(error, InterruptedRun):
            document = interrupted_document(document, error.decision, error.plan)
        match listener:
            case Console():
                pass
            case JsonLines():
                listener.failed(document)
            case _:
                terminal.write(json.dumps(document, indent=2).encode() + b"\n")
        raise


def _report(run: Callable[[], HookCall], listener: Listener, terminal: Terminal, junit: str) -> int:
    """Run, save what came of it, and say it; return the exit status."""
    began_s = time.time()
    try:
        call = run()
    except InterruptedRun as error:
        if junit:
            _write_junit(junit, error.decision, error.plan)
        raise
    if call.plan and call.decision:
        for note in save_run(call.decision, call.plan, call.config, began_s).splitlines():
            click.echo(note, err=True)
        _tell(call.decision, call.plan, listener, terminal)
        if junit:
            _write_junit(junit, call.decision, call.plan)
    elif call.note:
        click.echo(f"gitgates: {call.note}", err=True)
    if call.errors:
        raise call.errors[0]
    return manual.encode(call.decision) if call.decision else errors.OK


def _run(
    hook_name: str, gates: tuple[str, ...], selection: PathSelection, listener: Listener
) -> HookCall:
    """Run the gates on paths of the working tree as it is."""
    repo = current_repo()
    config = configuration(repo)
    hook = _hook(config, hook_name, gates)
    paths, gone = select_paths(selection, repo)
    event = manual.decode(hook.name, paths, gone, (repo.root_abs, repo.git_dir_abs))
    event = event._replace(with_untracked=selection == PathSelection())
    return _checked(handle(event, repo, listener, hook.gates if gates else ()), config)


def _run_staged(
    hook_name: str, gates: tuple[str, ...], selection: PathSelection, listener: Listener
) -> HookCall:
    """Do what git's own hook does before a commit."""
    repo = current_repo()
    config = configuration(repo)
    name = hook_name or "pre-commit"
    hook = _hook(config, name, gates)
    if name not in BEFORE_A_COMMIT:
        hint = "Leave the hook out, or name that one: gitgates run --staged pre-commit"
        raise errors.UsageError(f"--staged is about a commit, and `{name}` is not", hint)
    event = githook.decode(name, (), b"", repo.root_abs)
    staged = select_paths(selection, repo)  # the hook asks for itself
    if not any(staged) and not repo.git.ask("diff", "--cached", "--quiet").exit_status:
        event = event._replace(note="nothing is staged; to stage what you have changed: git add")
    return _checked(handle(event, repo, listener, hook.gates if gates else ()), config)


def _checked(call: HookCall, config: Config) -> HookCall:
    if call.plan is None and not call.note and not call.errors:
        raise _no_gates(call.event.name, config)
    return call


def _no_gates(name: str, config: Config) -> errors.ConfigError:
    # A line of CI that checks nothing must not be green.
    named = ", ".join(found.name for found in config.hooks if found.gates) or "none"
    return errors.ConfigError(
        f"hook `{name}` has no gates; nothing was checked", f"Hooks with gates: {named}."
    )


def _listener(fmt: str, style: Style, terminal: Terminal) -> Listener:
    match fmt:
        case "text":
            return Console(terminal, style)
        case "jsonl":
            return JsonLines(terminal)
        case _:
            return NullListener()


def _tell(decision: Decision, plan: Plan, listener: Listener, terminal: Terminal) -> None:
    match listener:
        case Console():
            terminal.write(listener.closing(decision, plan))
        case JsonLines():
            listener.closing(decision, plan)
        case _:
            document = json.dumps(run_document(decision, plan), indent=2)
            terminal.write(document.encode() + b"\n")


def _hook(config: Config, name: str, gates: tuple[str, ...]) -> Hook:
    """Return the hook to run, with only the gates that were asked for."""
    configured = tuple(hook.name for hook in config.hooks)
    name = name or ("manual" if "manual" in configured or gates else "pre-commit")
    if name not in HOOK_POINTS:
        if any(gate.name == name for gate in config.gates):
            hint = f"Did you mean `--gate {name}`?"
            raise errors.UsageError(f"`{name}` is no hook, but a gate", hint)
        raise unknown_hook(name)
    hook = find_hook(config, name) or Hook(name=name)
    hook = hook._replace(name=name)
    if not gates:
        return hook
    known = tuple(gate.name for gate in config.gates)
    for gate in gates:
        if gate not in known:
            hint = did_you_mean(gate, known) or f"Defined are: {', '.join(known) or 'none'}."
            raise errors.UsageError(f"no gate `{gate}`", hint)
    return hook._replace(gates=tuple(dict.fromkeys(gates)))


def _write_junit(path: str, decision: Decision, plan: Plan) -> None:
    try:
        with open(path, "wb") as file:
            file.write(junit_xml(decision, plan))
    except OSError as error:
        raise errors.UsageError(f"--junit {path}: cannot be written: {error.strerror}") from error

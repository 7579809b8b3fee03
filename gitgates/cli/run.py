"""`gitgates run`: run the gates of a hook now, as its host would."""

from __future__ import annotations

import time
from typing import Any

import click

from gitgates import errors
from gitgates.cli.completion import complete_gates, complete_hooks, unknown_hook
from gitgates.cli.output import stdout
from gitgates.cli.paths import PathCommand, PathSelection, path_options, select_paths
from gitgates.cli.repository import configuration, current_repo, restore_interrupted
from gitgates.config.values import did_you_mean
from gitgates.engine.plan import find_hook
from gitgates.engine.run import InterruptedRun
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.hosts import git as githook
from gitgates.lifecycle import HOOK_POINTS
from gitgates.policies.git_hooks import HookCall, handle
from gitgates.report.artifacts import save_run
from gitgates.report.documents import JsonDocument, JsonLines, junit_xml
from gitgates.report.text import Console
from gitgates.types import Config, Decision, Hook, Plan


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
    listener: Console | JsonDocument
    if fmt == "text":
        listener = Console(terminal, quiet=quiet, verbose=verbose)
    else:
        listener = JsonLines(terminal) if fmt == "jsonl" else JsonDocument(terminal)
    began_s = time.time()
    try:
        restore_interrupted("run")
        call = _run(hook, gates, PathSelection(**paths), listener)
        if call.plan and call.decision:
            notes = save_run(call.decision, call.plan, call.config, began_s)
            click.echo(notes, nl=False, err=True)
            terminal.write(listener.closing(call.decision, call.plan))
            if junit:
                _write_junit(junit, call.decision, call.plan)
        elif call.note:
            click.echo(f"gitgates: {call.note}", err=True)
        if call.errors:
            raise call.errors[0]
    except errors.GitgatesError as error:
        if junit and isinstance(error, InterruptedRun):
            _write_junit(junit, error.decision, error.plan)
        if not isinstance(listener, Console):
            terminal.write(listener.failed(error))
        raise
    return githook.encode(call.decision)


def _run(
    name: str, gates: tuple[str, ...], selection: PathSelection, listener: Console | JsonDocument
) -> HookCall:
    """Run the gates on paths of the working tree as it is; what is staged, as git's hook does."""
    repo = current_repo()
    config = configuration(repo)
    if selection.staged:
        name = name or "pre-commit"
    hook = _hook(config, name, gates)
    if selection.staged and name not in BEFORE_A_COMMIT:
        hint = "Leave the hook out, or name that one: gitgates run --staged pre-commit"
        raise errors.UsageError(f"--staged is about a commit, and `{name}` is not", hint)
    paths, gone = select_paths(selection, repo)
    if selection.staged:  # the hook asks for its paths itself
        event = githook.decode(name, (), b"", repo.root_abs)
        if not (paths or gone) and not repo.git.ask("diff", "--cached", "--quiet").exit_status:
            note = "nothing is staged; to stage what you have changed: git add"
            event = event._replace(note=note)
    else:
        event = githook.decode_by_hand(hook.name, paths, gone, (repo.root_abs, repo.git_dir_abs))
        event = event._replace(with_untracked=selection == PathSelection())
    call = handle(event, repo, listener, hook.gates if gates else ())
    if call.plan is None and not call.note and not call.errors:
        # A line of CI that checks nothing must not be green.
        named = ", ".join(found.name for found in config.hooks if found.gates) or "none"
        raise errors.ConfigError(
            f"hook `{event.name}` has no gates; nothing was checked", f"Hooks with gates: {named}."
        )
    return call


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

"""`gitgates run`: run a hook's gates now, on the paths that are asked for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from shlex import quote
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from gitgates.cli.run_waiting import own_run
from gitgates.config.values import PATTERNS, BadValue
from gitgates.core import environ
from gitgates.core.errors import (
    UNTESTABLE,
    ConfigError,
    GitgatesError,
    Interrupted,
    UsageError,
    unwritable,
)
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.policy import providers
from gitgates.core.types import Config, Decision, GateResult, Hook, Plan
from gitgates.drivers.git import HookCall, handle, judgements_of
from gitgates.drivers.next_steps import next_steps
from gitgates.drivers.shell_commands import OPTION
from gitgates.engine.plan.match import select
from gitgates.engine.plan.plan import AUDIT, REMOTE, REUSE, find_hook
from gitgates.engine.plan.walk import BEFORE_A_COMMIT
from gitgates.engine.reuse.proved import signed_results
from gitgates.engine.run.run import InterruptedRun
from gitgates.git import paths as facts
from gitgates.git.repo import Repo
from gitgates.hosts import git as githook
from gitgates.report.artifacts import save_run
from gitgates.report.documents import JsonDocument, JsonLines
from gitgates.report.text import Console
from gitgates.store.owners import denied
from gitgates.verbs.completion import complete_gates, complete_names, unknown_gate, unknown_hook
from gitgates.verbs.directory import folder_of, gates_below, paths_below
from gitgates.verbs.output import stdout, write_junit, write_report
from gitgates.verbs.repository import configuration, current_repo, restore_interrupted

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _not_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuse an empty value, which a variable of CI may be: it would select other paths."""
    if not value and ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
        raise UsageError(f"{param.opts[0]} is empty", "Give it a value, or use --all-files.")
    return value


_OPTIONS = (
    click.option("--staged", is_flag=True, help="Check the staged files, as a commit would."),
    click.option("--all-files", is_flag=True, help="Check all tracked files."),
    click.option(
        "--files",
        multiple=True,
        metavar="PATH",
        help="Check this file, or the files that git knows in this folder; can be repeated.",
    ),
    click.option(
        "--files0-from",
        metavar="FILE",
        default="",
        callback=_not_empty,
        help="Check the NUL-terminated paths in this file; - for standard input.",
    ),
    click.option(
        "--glob",
        "globs",
        multiple=True,
        metavar="PATTERN",
        help="Check the files that git knows in the current folder and match this pattern, as in "
        "`files`; can be repeated.",
    ),
    click.option(
        "--from-ref",
        metavar="A",
        default="",
        callback=_not_empty,
        help="Check what the branch at B has changed since it left A (`git diff A...B`) …",
    ),
    click.option(
        "--to-ref",
        metavar="B",
        default="",
        callback=_not_empty,
        help="… B is HEAD by default. Gates read the working tree: check out B first.",
    ),
    click.option(
        "--directory",
        metavar="FOLDER",
        default="",
        callback=_not_empty,
        help="Only paths below this folder and, if it has members, only their gates.",
    ),
)


class PathCommand(click.Command):
    """A verb whose `--files` takes every argument up to the next option, as pre-commit's does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat `--files` before each of its paths, which is how click takes several."""
        return super().parse_args(ctx, list(_repeat_files(args)))


def _repeat_files(args: list[str]) -> Iterator[str]:
    taking = False
    for position, arg in enumerate(args):
        if arg == "--":
            yield from args[position:]
            return
        if arg == "--files":
            taking = True
        elif taking and not arg.startswith("-"):
            yield f"--files={arg}"
        else:
            taking = False
            yield arg


def path_options(function: Decorated) -> Decorated:
    """Add the options to a verb."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def select_paths(options: Mapping[str, Any], repo: Repo) -> facts.Paths:
    """Return the selected paths, relative to the root, each once, sorted; and the deleted ones.

    `options` are the values of `path_options`; none: what differs from HEAD.

    Raises: UsageError if options contradict each other or a path does not exist.
    """
    return paths_below(folder_of(options["directory"], repo), _select_all(options, repo))


def _select_all(options: Mapping[str, Any], repo: Repo) -> facts.Paths:
    from_ref, to_ref = options["from_ref"], options["to_ref"]
    selections = {
        "--staged": options["staged"],
        "--all-files": options["all_files"],
        "--files": options["files"],
        "--files0-from": options["files0_from"],
        "--glob": options["globs"],
        "--from-ref": from_ref or to_ref,
    }
    match [name for name, value in selections.items() if value]:
        case []:
            return facts.changed_paths(repo.git)
        case ["--staged"]:
            return facts.staged_paths(repo, merging=False)
        case ["--all-files"]:
            return facts.tracked_paths(repo.git), ()
        case ["--files"]:
            return _expand_folders(options["files"], repo), ()
        case ["--files0-from"]:
            return _expand_folders(_names_from(options["files0_from"]), repo), ()
        case ["--glob"]:
            return _match_globs(options["globs"], repo), ()
        case ["--from-ref"] if from_ref:
            return facts.branch_paths(repo.git, from_ref, to_ref or "HEAD")
        case ["--from-ref"]:
            raise UsageError("--to-ref needs --from-ref", "Specify both: --from-ref A --to-ref B")
        case conflicting:
            raise UsageError(f"{' and '.join(conflicting)} cannot be used together", "Choose one.")


def _not_checked_out(options: Mapping[str, Any], repo: Repo) -> str:
    """Return how the files that gates read differ from the named commit; empty if not."""
    tip = options["to_ref"] or "HEAD"
    if not options["from_ref"]:
        return ""
    if repo.git.resolve(f"{tip}^{{commit}}") != repo.head:
        return f"`{tip}` is not checked out: the gates read the working tree as it is"
    if repo.git.out_of_files("status", "--porcelain", "--untracked-files=no"):
        return "the gates read the working tree, with its uncommitted changes"
    return ""


def _untracked(options: Mapping[str, Any], paths: tuple[str, ...]) -> str:
    is_about_all = options["all_files"] and not options["directory"]
    return "no file is tracked yet; to track yours: git add" if is_about_all and not paths else ""


def _names_from(source: str) -> tuple[str, ...]:
    try:
        if source == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(source, "rb") as file:
                content = file.read()
    except OSError as error:
        raise UsageError(f"--files0-from {source}: cannot be read: {error.strerror}") from error
    if content and b"\0" not in content:
        hint = "Create the list with `git ls-files -z` or `find … -print0`."
        raise UsageError(f"--files0-from {source}: contains no NUL byte between the paths", hint)
    return tuple(os.fsdecode(name) for name in content.split(b"\0") if name)


def _expand_folders(names: tuple[str, ...], repo: Repo) -> tuple[str, ...]:
    paths: set[str] = set()
    for name in names:
        # Without links in its folders; a link at its end stays what it is.
        folder, last = os.path.split(name.rstrip("/") or name)
        path_abs = os.path.realpath(name)
        if last not in ("", ".", ".."):
            path_abs = os.path.join(os.path.realpath(folder or "."), last)
        path = os.path.relpath(path_abs, os.path.realpath(repo.root_abs))
        if path == ".." or path.startswith("../"):
            raise UsageError(f"`{name}` is outside the repository {repo.root_abs}")
        if os.path.isdir(path_abs):
            files_inside = repo.git.names(
                "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", path
            )
            paths |= {
                file for file in files_inside if os.path.isfile(os.path.join(repo.root_abs, file))
            }
        elif os.path.lexists(path_abs):
            paths.add(path)
        else:
            raise UsageError(f"no such file: `{name}`", "Paths are relative to the current folder.")
    return tuple(sorted(paths))


def _match_globs(globs: tuple[str, ...], repo: Repo) -> tuple[str, ...]:
    try:
        PATTERNS.parse([*globs])
    except BadValue as bad:
        text = f"--glob {globs[bad.entry or 0]}: expected {bad.expected}"
        raise UsageError(text, bad.hint) from bad
    folder = repo.relative(".")
    above = "" if folder == "." else f"{folder}/"
    inside = tuple(path.removeprefix(above) for path in _expand_folders((".",), repo))
    if not (matching := select(inside, globs, ())):
        text = f"no file matches --glob {' '.join(globs)}"
        raise UsageError(text, "Patterns are as in .gitignore, relative to the current folder.")
    return tuple(above + path for path in matching)


@click.command("run", cls=PathCommand)
@click.argument("names", metavar="[HOOK] [GATE]...", nargs=-1, shell_complete=complete_names)
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="GATE",
    help="Run only this gate; can be repeated.",
    shell_complete=complete_gates,
)
@click.option(
    "--skip",
    "skips",
    multiple=True,
    metavar="GATE",
    help="Skip this gate, unless it is `required`; can be repeated.",
    shell_complete=complete_gates,
)
@path_options
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["text", "json", "jsonl"]),
    default="text",
    help="For people, one JSON document, or a JSON line for each event.",
)
@click.option("--junit", metavar="FILE", default="", help="Write a JUnit XML report.")
@click.option("--sarif", metavar="FILE", default="", help="Write the failures as SARIF 2.1.0.")
@click.option(
    "--code-quality",
    metavar="FILE",
    default="",
    help="Write the failures as a Code Quality report of GitLab.",
)
@click.option("--no-reuse", "reuse", flag_value="0", help="Run every gate; reuse no pass.")
@click.option(
    "--audit-reuse",
    "reuse",
    flag_value=AUDIT,
    help="Also run what would be reused. Exit status 1 if a gate does not pass again, or "
    "changes files.",
)
@click.option(
    "--believe-proofs",
    is_flag=True,
    help="Do not run gates that a trusted signer has proved to pass on the commit that is "
    "checked out.",
)
@click.option(
    "--remote",
    is_flag=True,
    help="Run gates with `remote` on the server, even if this machine has room.",
)
@click.option(
    "--wait",
    is_flag=True,
    help="For an agent that HOOK, such as Stop, told to wait: wait for its session's turn, run "
    "the gates as HOOK does. If they pass, HOOK need not run them again.",
)
@click.option(OPTION, default="", hidden=True)
@click.option(
    "--bisect",
    is_flag=True,
    help="For `git bisect run`: exit status 125, which skips the commit, if it cannot be judged: "
    "it does not configure the hook, a gate cannot start, or nothing was checked.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show only what did not pass.")
@click.option("-v", "--verbose", is_flag=True, help="Also show the output of gates that passed.")
def command(
    *,
    names: tuple[str, ...],
    gates: tuple[str, ...],
    fmt: str,
    quiet: bool,
    verbose: bool,
    bisect: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> int:
    """Run the gates of HOOK now (default: manual if it is configured, else pre-commit).

    With gate names, only those gates run: `gitgates run lint types`, or `gitgates run pre-push
    lint` as in that hook. If a hook and a gate have the same name, the first name means the hook;
    use --gate for the gate.

    By default, the paths are all changes relative to HEAD: staged, unstaged and untracked. With
    --staged, the gates run exactly as in a commit now: unstaged work is stashed and restored, and
    `restage` stages fixes.

    Exit status 0: passed. 1: blocked. Others: see the manual.
    """
    terminal, began_s = stdout(), time.time()
    listener: Console | JsonDocument
    if fmt == "text":
        listener = Console(terminal, quiet=quiet, verbose=verbose)
    else:
        listener = (JsonLines if fmt == "jsonl" else JsonDocument)(terminal, began_s)
    files = {name: options.pop(name) for name in ("junit", "sarif", "code_quality")}
    try:
        restore_interrupted("run")
        wait, caller = options.pop("wait"), options.pop("caller")
        if wait and (run := own_run(names, caller, is_chosen=any((*gates, *options.values())))):
            return run(listener, terminal)
        call = _run(names, gates, options, listener)
        if call.plan and call.decision:
            notes = save_run(call.decision, call.plan, call.config, began_s)
            click.echo(notes, nl=False, err=True)
            terminal.write(listener.closing(call.decision, call.plan))
            wants_hint = fmt == "text" and not (quiet or _is_annotated())  # CI keeps no runs
            if wants_hint and call.is_refused:
                click.echo(next_steps(call), nl=False, err=True)
            _write_reports(files, call.decision, call.plan, call.config)
        if call.errors:
            raise call.errors[0]
    except (GitgatesError, OSError) as error:
        expected_error = (
            error if isinstance(error, GitgatesError) else denied(error) or unwritable(error)
        )
        if files["junit"] and isinstance(error, InterruptedRun):
            write_junit(files["junit"], error.decision, error.plan.event.name)
        if expected_error and not isinstance(listener, Console):
            terminal.write(listener.failed(expected_error))
        if bisect and expected_error and not isinstance(error, Interrupted):
            click.echo(f"gitgates: {expected_error}", err=True)
            return UNTESTABLE
        raise
    return _bisected(call.decision) if bisect else githook.encode(call.decision)


def _bisected(decision: Decision | None) -> int:
    """Return the exit status for `git bisect run`: good, bad, or cannot be judged."""
    statuses = {visit.result.status for visit in decision.visits} if decision else set()
    has_failed = not statuses.isdisjoint(("failed", "timed-out", "killed"))
    status = githook.encode(decision)
    has_passed = not status and "passed" in statuses and "flaky" not in statuses
    return status if has_failed or has_passed else UNTESTABLE


def _is_annotated() -> bool:
    return environ.read().get("GITHUB_ACTIONS") == "true"


def _write_reports(
    files: Mapping[str, str], decision: Decision, plan: Plan, config: Config
) -> None:
    """Write the reports that were asked for, and in GitHub Actions annotations as well."""
    if files["junit"]:
        write_junit(files["junit"], decision, plan.event.name)
    is_annotated = _is_annotated()
    if not (files["sarif"] or files["code_quality"] or is_annotated):
        return
    from gitgates.report.diagnostics import Diagnostics  # of CI

    diagnostics = Diagnostics(decision, plan, config)
    if files["sarif"]:
        write_report("--sarif", files["sarif"], diagnostics.sarif())
    if files["code_quality"]:
        write_report("--code-quality", files["code_quality"], diagnostics.code_quality())
    if is_annotated:
        # Standard output may be a document.
        click.echo(diagnostics.workflow_commands(), nl=False, err=True)


def configuration_for(repo: Repo, *, staged: bool) -> Config:
    """Return the configuration of the working tree, or the staged one.

    Raises: ConfigError if it has problems, or there is none.
    """
    if not staged:
        return configuration(repo)
    event = githook.decode("pre-commit", (), b"", repo.root_abs)
    if config := judgements_of(event, repo)[0].config:
        return config
    raise ConfigError("no [tool.gitgates] is staged, so nothing was checked", "See: git status")


def _variables(options: dict[str, Any]) -> dict[str, str]:
    """Return the environment variables that options set."""
    chosen = {REUSE: options.pop("reuse"), REMOTE: "1" if options["remote"] else ""}
    return {name: value for name, value in chosen.items() if value}


def _check_server(repo: Repo, config: Config) -> None:
    """Refuse --remote if no gate could go to a server. Raises: UsageError."""
    servers = filter(
        None, (provide(repo, config) for provide in providers(config, "remote_execution"))
    )
    if not any(server.jobs for server in servers):
        hint = "Set `execution`, and `jobs` above 0, in [tool.gitgates.remote]."
        raise UsageError("--remote, but no server for gates is configured", hint)


def _run(
    names: tuple[str, ...],
    gates: tuple[str, ...],
    options: dict[str, Any],
    listener: Console | JsonDocument,
) -> HookCall:
    """Run the gates on the working tree as it is; with --staged, as git's hook does."""
    repo = current_repo()
    repo = repo._replace(env={**repo.env, **_variables(options)})
    skips, believes = options.pop("skips"), options.pop("believe_proofs")  # the others select paths
    config = configuration_for(repo, staged=options["staged"])
    if options.pop("remote"):
        _check_server(repo, config)
    name = names[0] if names and names[0] in HOOK_POINTS else ""
    gates = (*names[1 if name else 0 :], *gates)
    _check_gates(config, (*gates, *skips), () if name else names[:1])
    if options["staged"]:
        name = name or "pre-commit"
    hook = _hook(config, name, gates)
    if directory := folder_of(options["directory"], repo):
        hook = gates_below(directory, config, hook)
    if options["staged"] and name not in BEFORE_A_COMMIT:
        hint = "Omit the hook, or use: gitgates run --staged pre-commit"
        raise UsageError(f"--staged applies to commits, and `{name}` does not run on commits", hint)
    paths, deleted = select_paths(options, repo)
    if options["staged"]:  # the hook asks for its paths itself
        event = githook.decode(name, (), b"", repo.root_abs)
        if not (paths or deleted) and not repo.git.ask("diff", "--cached", "--quiet").exit_status:
            note = "nothing is staged; to stage your changes: git add"
            event = event._replace(note=note)
    else:
        event = githook.decode_by_hand(hook.name, paths, deleted, (repo.root_abs, repo.git_dir_abs))
        event = event._replace(
            base=options["from_ref"],
            note=_untracked(options, paths) or _not_checked_out(options, repo),
            with_untracked=not any(options.values()),
        )
    only = hook.gates if gates or directory else ()
    earlier = _proved(repo, config, hook, options, say=listener.message) if believes else {}
    call = handle(event, repo, listener, only, skips=skips, earlier=earlier)
    if call.note and not call.plan:
        # Else a gate that calls us would pass, and nothing would be checked.
        hint = "In a gate, name the commands to run, or run another hook."
        raise UsageError(f"{call.note}: nothing was checked", hint)
    if call.plan is None and not call.errors:
        # A CI step that checks nothing must not be green.
        message = f"hook `{event.name}` has no gates; nothing was checked"
        hint = f"Hooks with gates: {list_hooks_with_gates(config)}."
        if any(gate.name == event.name for gate in config.gates):
            hint = f"To run the gate of that name: gitgates run --gate {quote(event.name)}"
        raise ConfigError(message, hint)
    return call


def _proved(
    repo: Repo,
    config: Config,
    hook: Hook,
    options: Mapping[str, Any],
    *,
    say: Callable[[str], None],
) -> dict[tuple[str, int], GateResult]:
    """Return the results of gates that are proved for the commit that is checked out."""
    from_ref, tip = options["from_ref"], options["to_ref"] or "HEAD"
    is_here = from_ref and repo.git.resolve(f"{tip}^{{commit}}") == repo.head
    base = facts.branch_base(repo.git, from_ref, tip) if is_here else ""
    return signed_results(repo, config, hook.gates, base, say=say)


def _hook(config: Config, name: str, gates: tuple[str, ...]) -> Hook:
    """Return the hook to run, with only the gates that were asked for."""
    configured = tuple(hook.name for hook in config.hooks)
    name = name or ("manual" if "manual" in configured or gates else "pre-commit")
    hook = find_hook(config, name) or Hook(name=name)
    hook = hook._replace(name=name)
    return hook._replace(gates=tuple(dict.fromkeys(gates))) if gates else hook


def _check_gates(config: Config, gates: tuple[str, ...], hooks: tuple[str, ...]) -> None:
    """Raise UsageError for an undefined gate. `hooks`: names that may also mean a hook."""
    defined = tuple(gate.name for gate in config.gates)
    for gate in gates:
        if gate not in defined:
            raise unknown_hook(gate, defined) if gate in hooks else unknown_gate(gate, defined)


def list_hooks_with_gates(config: Config) -> str:
    """Return the names of the hooks that have gates."""
    return ", ".join(hook.name for hook in config.hooks if hook.gates) or "none"

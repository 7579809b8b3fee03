"""`gitgates headless`: run an agent in a worktree of its own until the gates pass, then commit."""

from __future__ import annotations

import os
import shutil
import signal
import sys

import click

from gitgates.config.load import with_table
from gitgates.core import environ
from gitgates.core.errors import ConfigError, GitgatesError, Interrupted, UsageError
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.limits import parse_json
from gitgates.core.policy import policy_gates
from gitgates.core.types import ALLOW, BLOCK, Config, Gate, GateResult, Hook, Visit, make_gate
from gitgates.features.headless import run_state
from gitgates.features.headless.constraints import settings_of
from gitgates.features.headless.executor import Executor
from gitgates.features.headless.outcomes import HOOK, OUTCOMES, HeadlessOptions
from gitgates.features.headless.recovery import begin, recover
from gitgates.features.headless.resume import find_conversation
from gitgates.features.headless.turn import require_outermost
from gitgates.git.paths import list_changed, list_others
from gitgates.hosts.headless import CLIENTS, any_client, client, refused_option
from gitgates.report.artifacts import PAGE, RESULT
from gitgates.report.documents import error_document
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.verbs.output import format_option, print_json, write_junit, write_report
from gitgates.verbs.repository import configuration, current_repo
from gitgates.worktree.setup import worktree_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.features.headless.outcomes import Ended
    from gitgates.features.headless.resume import Conversation
    from gitgates.git.repo import Repo
    from gitgates.hosts.headless import Client

_LONGEST_TASK = 1 << 20  # bytes
# A file that identifies the language → its gates: name, command, seconds.
_LANGUAGES: tuple[tuple[tuple[str, ...], tuple[tuple[str, str, float], ...]], ...] = (
    (("go.mod",), (("Run tests", "go test ./...", 300.0), ("Build", "go build ./...", 120.0))),
    (("package.json",), (("Run tests", "npm test", 300.0),)),
    (
        ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"),
        (("Run tests", "pytest", 300.0),),
    ),
)


@click.command("headless")
@click.argument("task", default="")
@click.option(
    "--resume",
    metavar="RUN",
    default="",
    help="Continue the conversation of an earlier run: its name, a prefix of it, or `latest`. "
    "Without TASK, continue its task.",
)
@click.option("--agent", type=click.Choice(list(CLIENTS)), help="Default: the key `agent`.")
@click.option(
    "--agent-command",
    metavar="COMMAND",
    help="Run this as the client. It gets the prompt in place of {prompt}, or on standard input.",
)
@click.option(
    "--max-retries",
    metavar="N",
    type=click.IntRange(min=0),
    help="How many times failures are sent back to the agent. Default: the key `max_retries`.",
)
@click.option(
    "--max-cost",
    metavar="USD",
    type=click.FloatRange(min=0),
    help="Start no further turn once the run has cost this much. Default: the key `max_cost`.",
)
@click.option("--message", metavar="TEXT", default="", help="Commit message. Default: TASK.")
@click.option("--branch", metavar="NAME", default="", help="Commit to this new branch.")
@click.option("--include-uncommitted", is_flag=True, help="Begin with your uncommitted changes.")
@click.option(
    "--in-place", is_flag=True, help="For CI: work in your working tree, which must be clean."
)
@click.option(
    "--budget-minutes",
    metavar="M",
    type=click.FloatRange(min=0.1),
    help="Time limit for all turns of the agent. Default: 60.",
)
@click.option("--junit", metavar="FILE", default="", help="Write the last attempt as JUnit XML.")
@click.option(
    "--tasks",
    metavar="FILE",
    default="",
    help="Run all unfinished tasks in a TOML file, each on its own branch.",
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 64),
    help="How many tasks run at once. Default: 1.",
)
@click.option("--retry-failed", is_flag=True, help="Also repeat failed tasks.")
@click.option("--land", is_flag=True, help="Land each task that passes, as `gitgates land` does.")
@click.option("--queued", hidden=True, default="")  # the run, which a queue has named
@click.option("--agent-args", hidden=True, default="")  # of its task, as JSON
@format_option
def command(*, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Run an agent on TASK until the gates of the hook `headless` pass, then commit.

    If TASK is -, it is read from standard input.

    The agent works in a linked worktree of HEAD. A commit that passes is merged into your branch if
    that is a fast-forward and touches none of your changes. Gate failures go back to the agent as
    the next prompt. If no retries are left, its work is kept as a commit under
    refs/gitgates/failed.

    Exit status 0: all gates passed; in a queue, for all tasks. 1: they did not, or nothing could be
    committed. 74: git failed, or the run could not start here. 75: another run is in progress in
    place. 78: configuration error. 130: interrupted.
    """
    try:
        if not options["tasks"]:
            return _run(fmt=fmt, **options)
        from gitgates.features.headless import tasks  # most runs are no queue

        document, status = tasks.do_all(options, fmt)
    except GitgatesError as error:
        if fmt == "json":
            print_json(error_document(error))
        raise
    if fmt == "json":
        print_json(document)
    else:
        click.echo(tasks.as_text(document))
    return status


def _run(*, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Do one task; return the exit status."""
    if options["jobs"] is not None or options["retry_failed"] or options["land"]:
        hint = "Specify a queue: --tasks FILE"
        raise UsageError("--jobs, --retry-failed and --land require --tasks", hint)
    repo = current_repo()
    require_outermost(repo)
    console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
    for line in recover(repo, in_place=False):  # those in place wait for `gitgates recover`
        console.message(line)
    earlier = _earlier(repo, options) if options["resume"] else None
    task = earlier.task if earlier and not options["task"] else _read_task(options["task"])
    config, note = _config(repo, options)
    settings = HeadlessOptions(
        task=task,
        client=_client(earlier.agent if earlier else options["agent"], options, config),
        message=options["message"],
        budget_s=(options["budget_minutes"] or 60.0) * 60,
        branch=options["branch"],
        in_place=earlier.root_abs == repo.root_abs if earlier else options["in_place"],
        uncommitted=options["include_uncommitted"],
        earlier=earlier,
        worktree=worktree_settings(config),
    )
    _require_possible(repo, settings)
    if options["junit"]:
        write_report("--junit", options["junit"], b"")  # reports an error before an hour of work
    if note:
        console.message(note)
    if not (settings.in_place or settings.uncommitted) and (
        list_changed(repo) or list_others(repo)
    ):
        how = "to include them: --include-uncommitted"
        console.message(f"your uncommitted changes are not part of the run; {how}")
    run = options["queued"] or os.path.basename(runs.new_run(""))
    try:
        with run_state.locked(repo, run):
            ground = begin(repo, run, settings, console.message)
            console.message(f"working in {ground.repo.root_abs}, on branch {ground.state.branch}")
            run_abs = f"{repo.state_abs}/runs/{run}"
            executor = Executor(ground, config, settings, run_abs=run_abs, listener=console)
            ended = _execute(executor)
    finally:
        console.phase("")
    if options["junit"]:
        _write_junit(options["junit"], ended, executor)
    return _say(ended, executor, fmt)


def _read_task(task: str) -> str:
    """Return the task: an argument, or standard input. Raises: UsageError."""
    content = os.fsencode(task) if task != "-" else sys.stdin.buffer.read(_LONGEST_TASK + 1)
    text = content.decode("utf-8-sig", "replace").replace("\0", "").strip()
    if not text or len(content) > _LONGEST_TASK:
        what = "is longer than 1 MiB" if text else "is empty"
        raise UsageError(f"TASK {what}", 'Specify what to do: gitgates headless "fix …"')
    return text


def _earlier(repo: Repo, options: dict[str, Any]) -> Conversation:
    """Return the run to continue. Raises: UsageError, also for options that do not fit it."""
    earlier = find_conversation(repo, options["resume"])
    is_other = options["agent_command"] or options["agent"] not in (None, earlier.agent)
    is_elsewhere = options["in_place"] and earlier.root_abs != repo.root_abs
    for is_wrong, why in (
        (is_other, f"is a conversation of {earlier.agent}"),
        (options["include_uncommitted"], "and --include-uncommitted are mutually exclusive"),
        (is_elsewhere, "its conversation belongs to another folder"),
        (earlier.passed and not options["task"], "it has passed: specify what to do next as TASK"),
    ):
        if is_wrong:
            raise UsageError(f"--resume {earlier.run}: {why}")
    return earlier


def _execute(executor: Executor) -> Ended:
    """Do the run; after a signal or an error, keep what there is."""
    ground = executor.ground
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else it may be ignored
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as at Ctrl-C
    try:
        ended = executor.execute()
    except (Interrupted, KeyboardInterrupt):
        ended = executor.give_up("interrupted")
    except GitgatesError:
        executor.listener.phase("")
        try:
            ref, more = ground.leave()
            ground.close()
            notes = [f"the agent's work is kept as {ref}" if ref else "the agent's work is empty"]
            notes += more
        except (GitgatesError, OSError):
            notes = [ground.left_note()]
        click.echo(f"gitgates: {'; '.join(notes)}", err=True)
        raise
    ground.close()
    return ended


def _config(repo: Repo, options: dict[str, Any]) -> tuple[Config, str]:
    """Return the configuration with gates for the hook `headless`, and a note on their origin."""
    try:
        config = configuration(repo)
    except ConfigError as error:
        if "no [tool.gitgates]" not in error.message:
            raise
        config = Config()
    config, note = _with_default_gates(config, repo.root_abs)
    if (max_retries := options["max_retries"]) is not None:
        hooks = (
            hook._replace(max_retries=max_retries) if hook.name == HOOK else hook
            for hook in config.hooks
        )
        config = config._replace(hooks=tuple(hooks))
    settings = settings_of(config)
    if options["max_cost"] is not None:
        settings = settings._replace(max_cost=options["max_cost"])
    if options["agent_args"] or options["agent_command"]:
        arguments = tuple(parse_json(options["agent_args"] or "[]"))
        settings = settings._replace(agent_args=arguments)
    return with_table(config, HOOK, settings), note


def _with_default_gates(config: Config, root_abs: str) -> tuple[Config, str]:
    """Return the configuration with gates for the hook `headless`, and a note on their origin.

    If the hook has none, it gets the gates that run when an agent stops, or else the language's.

    Raises: ConfigError if there are none at all.
    """
    hooks = {hook.name: hook for hook in config.hooks}
    if HOOK in hooks and hooks[HOOK].gates:
        return config, ""
    hook, added = hooks.get(HOOK, Hook(name=HOOK, strategy="collect")), list[Gate]()
    stop = hooks.get(HOOK_OF["turn-end"], hook)
    if turn_gates := tuple(name for name in stop.gates if name not in policy_gates()):
        hook = hook._replace(gates=turn_gates, max_retries=stop.max_retries)
        note = f"the hook {HOOK} has no gates: those of {stop.name} run"
    else:
        for files, gates in _LANGUAGES:
            if not added and any(os.path.isfile(f"{root_abs}/{name}") for name in files):
                added = [make_gate(name=n, command=c, timeout_s=s) for n, c, s in gates]
        hook = hook._replace(gates=tuple(gate.name for gate in added))
        commands = ", ".join(str(gate.program.command) for gate in added)
        note = f"no gates are configured; defaults: {commands}"
    if not hook.gates:
        raise ConfigError(
            f"{root_abs}: no gates are configured, so nothing would be checked",
            f'List some: [tool.gitgates.hooks.{HOOK}] gates = ["…"]; or start with: gitgates init',
        )
    others = [gate for gate in config.gates if gate.name not in {each.name for each in added}]
    hooks[HOOK] = hook
    return config._replace(gates=(*others, *added), hooks=tuple(hooks.values())), note


def _client(agent: str | None, options: dict[str, Any], config: Config) -> Client:
    command, settings = options["agent_command"], settings_of(config)
    if agent and command:
        raise UsageError("--agent and --agent-command are mutually exclusive")
    if command:
        try:
            return any_client(command)
        except ValueError as error:
            raise UsageError(f"--agent-command {command!r}: {error}") from error
    name = agent or settings.agent
    if not shutil.which(name, path=environ.read().get("PATH")):
        hint = "Install it, or specify another client: --agent-command '… {prompt} …'"
        raise UsageError(f"`{name}` was not found in PATH", hint)
    if why := refused_option(name, settings.agent_args):
        raise UsageError(f"agent_args: {why}")
    return client(name)


def _require_possible(repo: Repo, options: HeadlessOptions) -> None:
    """Raise UsageError or GitError if a run could not end as the options want."""
    branch = options.branch
    if options.in_place and options.uncommitted:
        raise UsageError("--in-place and --include-uncommitted are mutually exclusive")
    if branch and repo.git.ask("check-ref-format", "--branch", branch).exit_status:
        raise UsageError(f"--branch {branch}: not a valid branch name")
    if branch and repo.git.resolve(f"refs/heads/{branch}"):
        raise UsageError(f"--branch {branch}: already exists", "Choose a new name.")
    repo.git.out("var", "GIT_COMMITTER_IDENT")  # else it would be missing after an hour of work


def _write_junit(path: str, ended: Ended, executor: Executor) -> None:
    """Write the last attempt's gates, and the run itself as one more test case."""
    decision, (status, words) = executor.decision, OUTCOMES[ended.outcome]
    seconds = sum(turn["seconds"] for turn in executor.turns)
    result = GateResult(
        gate=HOOK, status="failed" if status else "passed", reason=words, duration_s=seconds
    )
    run = Visit(result=result, verdict=BLOCK if status else ALLOW, action="CONTINUE")
    write_junit(path, decision._replace(visits=(*decision.visits, run)), HOOK)


def _say(ended: Ended, executor: Executor, fmt: str) -> int:
    status, words = OUTCOMES[ended.outcome]
    run_abs, run = executor.run_abs, executor.run
    if fmt == "json":
        print_json({**ended._asdict(), "run": run, "result": f"{run_abs}/{RESULT}"})
        return status
    lines = [f"gitgates headless: {words}{ended.why and f': {ended.why}'}"]
    if ended.commit:
        lines.append(f"committed as {ended.commit[:12]} on {ended.branch or 'no branch'}")
    if ended.rolled_back:
        state = "as before" if executor.state.in_place else "as you left it"
        lines.append(f"your working tree is {state}")
    if ended.failed_ref:
        lines.append(f"to create a branch from the agent's work: gitgates runs restore {run}")
    lines += [f"note: {note}" for note in ended.notes]
    click.echo("\n".join([*lines, f"report: {run_abs}/{PAGE}"]))
    return status

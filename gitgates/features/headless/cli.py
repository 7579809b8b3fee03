"""`gitgates headless`: run an agent until the gates pass, then commit; else roll back."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import contextmanager

import click

from gitgates.config.load import with_table
from gitgates.core import environ
from gitgates.core.errors import (
    ConfigError,
    GitError,
    GitgatesError,
    Interrupted,
    LockError,
    StateError,
    UsageError,
)
from gitgates.core.types import ALLOW, BLOCK, Config, Decision, GateResult, Visit
from gitgates.features.headless import defaults
from gitgates.features.headless.cli_task import message_of, read_task
from gitgates.features.headless.constraints import settings_of
from gitgates.features.headless.defaults import HOOK
from gitgates.features.headless.executor import Executor
from gitgates.features.headless.outcomes import OUTCOMES, HeadlessOptions
from gitgates.features.headless.resume import find_conversation, missing_work
from gitgates.features.headless.turn import require_outermost
from gitgates.features.headless.worktree import Location, in_worktree, require_branch
from gitgates.git.listing import list_paths
from gitgates.git.repo import Repo
from gitgates.hosts.headless import CLIENTS, any_client, client, refused_option
from gitgates.report.artifacts import PAGE, RESULT, read_result
from gitgates.report.documents import error_document
from gitgates.report.result import last_decision
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.store.files import lock_file, make_folder
from gitgates.verbs.output import format_option, print_json, write_junit
from gitgates.verbs.repository import configuration, current_repo
from gitgates.worktree import checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gitgates.core.types import Hook
    from gitgates.features.headless.outcomes import Ended
    from gitgates.features.headless.resume import Conversation
    from gitgates.git.repo import Repo
    from gitgates.hosts.headless import Client
    from gitgates.worktree.checkpoint import Checkpoint


@click.command("headless")
@click.argument("task", default="")
@click.option(
    "--resume",
    metavar="RUN",
    default="",
    help="Continue the conversation of an earlier run: its name, a prefix of it, or `latest`. "
    "Without TASK, continue its task.",
)
@click.option("--from-file", metavar="FILE", default="", help="Read TASK from FILE; - is stdin.")
@click.option("--agent", type=click.Choice(list(CLIENTS)), help="Default: the key `agent`.")
@click.option(
    "--agent-command",
    metavar="COMMAND",
    help="Run this command as the client. Without {prompt} in COMMAND, it gets the prompt on "
    "standard input.",
)
@click.option(
    "--max-retries",
    metavar="N",
    type=click.IntRange(min=0),
    help="How many times failures are sent back to the agent. Default: the key `max_retries`.",
)
@click.option(
    "--commit/--no-commit",
    "commits",
    default=True,
    help="Whether to commit when the gates pass (default: yes).",
)
@click.option(
    "--max-cost",
    metavar="USD",
    type=click.FloatRange(min=0),
    help="Start no further turn once the run has cost this much. Default: the key `max_cost`.",
)
@click.option("--message", metavar="TEXT", default="", help="Commit message. Default: TASK.")
@click.option("--branch", metavar="NAME", default="", help="Create this branch, and work on it.")
@click.option("--worktree", "apart", is_flag=True, help="Work in a linked worktree of HEAD.")
@click.option(
    "--budget-minutes",
    metavar="M",
    type=click.FloatRange(min=0.1),
    help="Time limit for all turns of the agent. Default: 60.",
)
@click.option(
    "--turn-minutes",
    metavar="M",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    help="Time limit for each turn. Default: the time left for all turns.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["rollback", "keep"]),
    help="On failure, restore the state before the run (default), or keep the changes. If "
    "given explicitly, also roll back a run that was interrupted by a signal, or whose changes "
    "cannot be separated.",
)
@click.option(
    "--junit",
    metavar="FILE",
    default="",
    help="Write a JUnit XML report of the run and the gates of its last attempt.",
)
@click.option("--force", is_flag=True, help="Run even if not everything could be rolled back.")
@click.option(
    "--tasks",
    metavar="FILE",
    default="",
    help="Run all tasks of a TOML file, each in its own worktree and branch. Finished tasks "
    "are not repeated.",
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, 64), help="Number of parallel tasks. Default: 1."
)
@click.option("--retry-failed", is_flag=True, help="Also repeat failed tasks.")
@click.option("--queued", hidden=True, default="")
@format_option
def command(*, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Run an agent on TASK until the gates of the hook `headless` pass, then commit.

    If TASK is -, it is read from standard input.

    Failures of gates are sent back to the agent as the next prompt. If no retries are left, the
    agent's work is kept as a commit under refs/gitgates/failed, and working tree, index, HEAD and
    branch are rolled back. Ignored files are not touched.

    Exit status 0: all gates passed, in a queue for all tasks. 1: they did not, or nothing could be
    committed. 74: git failed, or the run could not start here. 75: another run is in progress. 78:
    configuration error. 130: interrupted; nothing was rolled back.
    """
    try:
        if options["tasks"] or options["queued"]:
            from gitgates.features.headless import (
                cli_queue as headless_queue,  # which does each task as below
            )

            return headless_queue.start(run_task, fmt=fmt, **options)
        return _start(fmt=fmt, **options)
    except GitgatesError as error:
        if fmt == "json":
            print_json(error_document(error))
        raise


def _start(*, task: str, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    if options["jobs"] is not None or options["retry_failed"]:
        raise UsageError(
            "--jobs and --retry-failed require --tasks", "Specify a queue: --tasks FILE"
        )
    repo = current_repo()
    if options["resume"]:
        return _resume(task, repo, fmt=fmt, **options)
    task = read_task(task, options["from_file"])
    location = Location(branch=options["branch"], apart=options["apart"])
    run_abs = runs.new_run(repo.state_abs)
    return run_task(task, repo, location=location, run_abs=run_abs, fmt=fmt, **options)


def _resume(task: str, repo: Repo, *, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Continue the conversation of an earlier run, in the folder where it worked."""
    earlier = find_conversation(repo, options["resume"])
    if options["agent_command"] or options["agent"] not in (None, earlier.agent):
        raise UsageError(f"--resume {earlier.run}: is a conversation of {earlier.agent}")
    if task or options["from_file"]:
        task = read_task(task, options["from_file"])
    elif earlier.passed:
        raise UsageError(f"--resume {earlier.run}: it has passed", "Specify what to do: TASK.")
    apart = earlier.root_abs != repo.root_abs
    if options["apart"] and not apart:
        hint = "Omit --worktree."
        raise UsageError(f"--resume {earlier.run}: its conversation belongs to this folder", hint)
    location = Location(branch=options["branch"], apart=apart)
    if apart:
        location = location._replace(folder_abs=earlier.root_abs, start=earlier.commit or "HEAD")
    options = {**options, "agent": earlier.agent, "earlier": earlier}
    options["message"] = options["message"] or message_of(task or earlier.task)
    run_abs = runs.new_run(repo.state_abs)
    return run_task(
        task or earlier.task, repo, location=location, run_abs=run_abs, fmt=fmt, **options
    )


def run_task(
    task: str,
    repo: Repo,
    *,
    location: Location,
    run_abs: str,
    fmt: str,
    **options: Any,  # noqa: ANN401 - click's
) -> int:
    """Do one task; return the exit status. `run_abs`: the folder of the run."""
    require_outermost(repo)
    config, note = _config(repo, options["max_retries"])
    if options["max_cost"] is not None:
        limits = settings_of(config)._replace(max_cost=options["max_cost"])
        config = with_table(config, HOOK, limits)
    if options.get("agent_args") is not None:
        arguments = settings_of(config)._replace(agent_args=options["agent_args"])
        config = with_table(config, HOOK, arguments)
    settings = HeadlessOptions(
        task=task,
        client=_client(options["agent"], options["agent_command"], config),
        arguments=() if options["agent_command"] else settings_of(config).agent_args,
        max_retries=_hook(config).max_retries,
        commits=options["commits"],
        message=options["message"] or message_of(task),
        budget_s=(options["budget_minutes"] or 60.0) * 60,
        turn_s=(options["turn_minutes"] or 0) * 60,
        apart=location.apart,
        keeps=options["on_failure"] == "keep",
        rolls_back=options["on_failure"] == "rollback",
    )
    earlier: Conversation | None = options.get("earlier")
    if earlier:
        settings = settings._replace(
            session=earlier.session,
            first_prompt=earlier.prompt(task if task != earlier.task else ""),
            earlier_turns=earlier.turns,
        )
    _require_committer(repo, commits=settings.commits)
    require_branch(repo, location.branch)
    junit_abs = _junit_abs(options["junit"])
    console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
    if note:
        console.message(note)
    if location.apart:
        with in_worktree(repo, location, config.link, console.message) as worktree:
            settings = settings._replace(work=_work(worktree, earlier, run_abs))
            executor = Executor(worktree, config, settings, run_abs=run_abs, listener=console)
            ended = _run(executor, branch="", force=True)
    else:
        settings = settings._replace(work=_work(repo, earlier, run_abs))
        executor = Executor(repo, config, settings, run_abs=run_abs, listener=console)
        ended = _run(executor, branch=location.branch, force=options["force"])
    console.phase("")
    if junit_abs:
        _write_junit(junit_abs, ended, executor)
    return _say(ended, executor, fmt)


def _work(repo: Repo, earlier: Conversation | None, run_abs: str) -> bytes:
    """Return what is to be restored; `run_abs` is beside the folder of the earlier run."""
    if not earlier:
        return b""
    earlier_abs = f"{os.path.dirname(run_abs)}/{earlier.run}"
    return missing_work(repo, earlier.work_ref, run_abs=earlier_abs)


def _run(executor: Executor, *, branch: str, force: bool) -> Ended:
    """Take the checkpoint, and run; drop it, or say how to restore it."""
    repo = executor.repo
    try:
        make_folder(repo.state_abs)
        lock = lock_file(f"{repo.state_abs}/headless.lock")
    except OSError as error:
        raise StateError(f"{repo.state_abs}: cannot be written: {error.strerror}") from error
    if lock < 0:
        raise LockError(
            "another headless run is in progress here", "Use --worktree, or wait for it."
        )
    try:
        _require_clear(repo, force=force)
        point = executor.begin(branch)
        try:
            with _raising(signal.SIGTERM):
                ended = _execute(executor)
        except BaseException as error:
            executor.listener.phase("")
            click.echo(_left(point), err=True)
            if isinstance(error, FileNotFoundError) and not checkpoint.is_there(point):
                raise StateError(f"{error.filename}: was removed during the run") from error
            raise
        if not OUTCOMES[ended.outcome][0] or ended.rolled_back:
            checkpoint.drop(point, repo)
        else:
            click.echo(_left(point), err=True)
        return ended
    finally:
        os.close(lock)


def _execute(executor: Executor) -> Ended:
    try:
        return executor.execute()
    except (Interrupted, KeyboardInterrupt):
        if not executor.settings.rolls_back:
            raise
        return executor.give_up("interrupted")


@contextmanager
def _raising(number: int) -> Iterator[None]:
    """Raise Interrupted at a signal wherever nothing else waits for it, as Ctrl-C does."""

    def interrupt(got: int, _frame: object) -> None:
        raise Interrupted(f"interrupted by signal {got}")

    if signal.getsignal(number) is not signal.SIG_DFL:
        yield  # `nohup`, for one, has it ignored
        return
    signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL)


def _require_clear(repo: Repo, *, force: bool) -> None:
    """Raise GitError if a run could not be rolled back."""
    if under_way := checkpoint.under_way(repo):
        command = under_way.split()[0]
        how = "reset" if command == "bisect" else "--continue, or --abort"
        hint = f"End it first: git {command} {how}"
        raise GitError(f"{repo.root_abs}: a {under_way} is in progress", hint)
    checkpoint.remove_unfinished(repo)
    for point in checkpoint.left_behind(repo.state_abs):
        raise GitError(f"the headless run {point.run} left its checkpoint", _ways(point))
    if (lost := checkpoint.find_unsavable(repo, list_paths(repo))) and not force:
        paths = "\n  ".join(lost)
        raise GitError(
            f"these could not be restored if the run changed them:\n  {paths}",
            "Run again with --force, or with --worktree.",
        )


def _left(point: Checkpoint) -> str:
    what = f"everything is left unchanged in {point.root_abs}"
    if not checkpoint.is_there(point):
        return f"gitgates: {what}; the checkpoint no longer exists: {point.folder_abs}"
    return f"gitgates: {what}; the checkpoint is {point.folder_abs}\n  {_ways(point)}"


def _ways(point: Checkpoint) -> str:
    return (
        f"To restore everything: gitgates recover --roll-back {point.run}\n"
        f"  To keep the current state: gitgates recover --drop {point.run}"
    )


def _config(repo: Repo, max_retries: int | None) -> tuple[Config, str]:
    """Return the configuration with gates for the hook `headless`, and a note on their origin."""
    try:
        config = configuration(repo)
    except ConfigError as error:
        if "no [tool.gitgates]" not in error.message:
            raise
        config = Config()
    config, note = defaults.with_default_gates(config, repo.root_abs)
    if max_retries is not None:
        hook = _hook(config)._replace(max_retries=max_retries)
        others = tuple(other for other in config.hooks if other.name != HOOK)
        config = config._replace(hooks=(*others, hook))
    return config, note


def _hook(config: Config) -> Hook:
    return next(hook for hook in config.hooks if hook.name == HOOK)


def _client(agent: str | None, agent_command: str | None, config: Config) -> Client:
    if agent and agent_command:
        raise UsageError(
            "--agent and --agent-command are mutually exclusive", "Specify one of them."
        )
    if agent_command:
        try:
            return any_client(agent_command)
        except ValueError as error:
            raise UsageError(f"--agent-command {agent_command!r}: {error}") from error
    name = agent or settings_of(config).agent
    if not shutil.which(name, path=environ.read().get("PATH")):
        hint = "Install it, or specify another client: --agent-command '… {prompt} …'"
        raise UsageError(f"`{name}` was not found in PATH", hint)
    if why := refused_option(name, settings_of(config).agent_args):
        raise UsageError(f"agent_args: {why}")
    return client(name)


def _require_committer(repo: Repo, *, commits: bool) -> None:
    if commits and (ident := repo.git.ask("var", "GIT_COMMITTER_IDENT")).exit_status:
        reason = ident.stderr.decode("utf-8", "replace").strip()
        raise GitError(f"git has no committer identity: {reason}")


def _junit_abs(path: str) -> str:
    """Return the path of the JUnit file; an error is reported before an hour of work."""
    folder, name = os.path.split(os.path.abspath(path))
    if path and (not name or os.path.isdir(path) or not os.access(folder, os.W_OK)):
        raise UsageError(f"--junit {path}: cannot be written")
    return os.path.abspath(path) if path else ""


def _write_junit(path_abs: str, ended: Ended, executor: Executor) -> None:
    """Write the gates of the last attempt, which are what the run comes to, and the run itself."""
    document = read_result(executor.run_abs)
    decision = last_decision(document) if document else Decision(BLOCK)
    status, words = OUTCOMES[ended.outcome]
    seconds = sum(turn["seconds"] for turn in executor.turns)
    result = GateResult(
        gate=HOOK, status="failed" if status else "passed", reason=words, duration_s=seconds
    )
    run = Visit(result=result, verdict=BLOCK if status else ALLOW, action="CONTINUE")
    write_junit(path_abs, decision._replace(visits=(*decision.visits, run)), HOOK)


def _say(ended: Ended, executor: Executor, fmt: str) -> int:
    status, words = OUTCOMES[ended.outcome]
    run_abs, run = executor.run_abs, executor.run
    if fmt == "json":
        print_json({**ended._asdict(), "run": run, "result": f"{run_abs}/{RESULT}"})
        return status
    why = f": {ended.why}" if ended.why else ""
    click.echo(f"gitgates headless: {words}{why}")
    if ended.commit:
        click.echo(f"committed as {ended.commit[:12]}")
    if ended.rolled_back:
        click.echo("the state before the run is restored")
    if ended.failed_ref:
        click.echo(f"to create a branch from the agent's work: gitgates runs restore {run}")
    for note in ended.notes:
        click.echo(f"note: {note}")
    if not (executor.settings.commits or status):
        click.echo("nothing was committed, as requested")
    click.echo(f"report: {run_abs}/{PAGE}")
    return status

"""`gitgates headless`: run an agent in a worktree of its own until the gates pass, then commit."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import contextmanager

import click

from gitgates.config.load import with_table
from gitgates.core import environ
from gitgates.core.errors import ConfigError, GitError, GitgatesError, Interrupted, UsageError
from gitgates.core.types import ALLOW, BLOCK, Config, Decision, GateResult, Visit
from gitgates.features.headless import defaults, run_state
from gitgates.features.headless.cli_task import message_of, read_task
from gitgates.features.headless.constraints import settings_of
from gitgates.features.headless.defaults import HOOK
from gitgates.features.headless.executor import Executor
from gitgates.features.headless.ground import Location, begin_apart
from gitgates.features.headless.in_place import begin_in_place
from gitgates.features.headless.leftovers import left_note, settle_all
from gitgates.features.headless.outcomes import OUTCOMES, HeadlessOptions
from gitgates.features.headless.recovery import lines_of
from gitgates.features.headless.resume import find_conversation
from gitgates.features.headless.turn import require_outermost
from gitgates.git.listing import list_changed, list_paths
from gitgates.hosts.headless import CLIENTS, any_client, client, refused_option
from gitgates.report.artifacts import PAGE, RESULT, read_result
from gitgates.report.documents import error_document
from gitgates.report.result import last_decision
from gitgates.report.text import Console, open_terminal
from gitgates.store import runs
from gitgates.verbs.output import format_option, print_json, write_junit
from gitgates.verbs.repository import configuration, current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gitgates.core.types import Hook
    from gitgates.features.headless.ground import Ground
    from gitgates.features.headless.outcomes import Ended
    from gitgates.features.headless.resume import Conversation
    from gitgates.git.repo import Repo
    from gitgates.hosts.headless import Client


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
    help="Whether to commit when the gates pass (default: yes), or to leave the change in your "
    "working tree.",
)
@click.option(
    "--max-cost",
    metavar="USD",
    type=click.FloatRange(min=0),
    help="Start no further turn once the run has cost this much. Default: the key `max_cost`.",
)
@click.option("--message", metavar="TEXT", default="", help="Commit message. Default: TASK.")
@click.option("--branch", metavar="NAME", default="", help="Commit to this new branch.")
@click.option("--worktree", is_flag=True, hidden=True)  # every run has one now
@click.option(
    "--include-uncommitted",
    "uncommitted",
    is_flag=True,
    help="Begin with your uncommitted changes and untracked files, as a first commit.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Work in your working tree, which must be clean, instead of a linked worktree: for CI.",
)
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
    help="On failure, keep the agent's work under a ref only (default), or also its worktree.",
)
@click.option(
    "--junit",
    metavar="FILE",
    default="",
    help="Write a JUnit XML report of the run and the gates of its last attempt.",
)
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

    The agent works in a linked worktree of HEAD. What passes is brought to your branch if that is
    a fast-forward, and touches no changes of yours. Failures of gates are sent back to the agent as
    the next prompt. If no retries are left, its work is kept as a commit under
    refs/gitgates/failed.

    Exit status 0: all gates passed, in a queue for all tasks. 1: they did not, or nothing could be
    committed. 74: git failed, or the run could not start here. 75: another run
    is in progress in place. 78:
    configuration error. 130: interrupted.
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
    location = Location(
        branch=options["branch"], in_place=options["in_place"], uncommitted=options["uncommitted"]
    )
    run_abs = runs.new_run(repo.state_abs)
    return run_task(task, repo, location=location, run_abs=run_abs, fmt=fmt, **options)


def _resume(task: str, repo: Repo, *, fmt: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Continue the conversation of an earlier run, in the folder where it worked."""
    _settle(repo, lambda text: click.echo(f"gitgates: {text}", err=True))
    earlier = find_conversation(repo, options["resume"])
    if options["agent_command"] or options["agent"] not in (None, earlier.agent):
        raise UsageError(f"--resume {earlier.run}: is a conversation of {earlier.agent}")
    if options["uncommitted"]:
        raise UsageError("--resume and --include-uncommitted are mutually exclusive")
    in_place = earlier.root_abs == repo.root_abs
    if options["in_place"] and not in_place:
        raise UsageError(f"--resume {earlier.run}: its conversation belongs to another folder")
    if task or options["from_file"]:
        task = read_task(task, options["from_file"])
    elif earlier.passed:
        raise UsageError(f"--resume {earlier.run}: it has passed", "Specify what to do: TASK.")
    location = Location(
        branch=options["branch"],
        in_place=in_place,
        folder_abs=earlier.root_abs,
        start=earlier.start_in(repo),
        work=earlier.work_ref,
    )
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
        keeps=options["on_failure"] == "keep",
    )
    earlier: Conversation | None = options.get("earlier")
    if earlier:
        settings = settings._replace(
            session=earlier.session,
            first_prompt=earlier.prompt(task if task != earlier.task else ""),
            earlier_turns=earlier.turns,
            work=location.work,
        )
    _require_possible(repo, location, commits=settings.commits)
    junit_abs = _junit_abs(options["junit"])
    console = Console(open_terminal(2 if fmt == "json" else 1, environ.read()))
    _settle(repo, console.message)
    if note:
        console.message(note)
    lock = run_state.lock_new(repo, os.path.basename(run_abs))
    try:
        ground = _begin(repo, run_abs, location, link=config.link, say=console.message)
        executor = Executor(ground, config, settings, run_abs=run_abs, listener=console)
        ended = _run(executor)
    finally:
        run_state.forget_unbegun(repo, os.path.basename(run_abs))
        os.close(lock)
    console.phase("")
    if junit_abs:
        _write_junit(junit_abs, ended, executor)
    return _say(ended, executor, fmt)


def _begin(
    repo: Repo,
    run_abs: str,
    location: Location,
    *,
    link: tuple[str, ...],
    say: Callable[[str], None],
) -> Ground:
    run = os.path.basename(run_abs)
    if location.in_place:
        return begin_in_place(repo, run, location)
    if not location.uncommitted and (list_changed(repo) or list_paths(repo).others):
        say("your uncommitted changes are not part of the run; for that: --include-uncommitted")
    ground = begin_apart(repo, run, location, link)
    say(f"working in {ground.repo.root_abs}, on branch {ground.state.branch}")
    return ground


def _settle(repo: Repo, say: Callable[[str], None]) -> None:
    """Tidy up after runs that were killed; those in place wait for `gitgates recover`."""
    for settled in settle_all(repo):
        for line in lines_of(settled):
            say(line)


def _run(executor: Executor) -> Ended:
    """Do the run; after a signal or an error, keep what there is."""
    ground = executor.ground
    try:
        with _raising(signal.SIGTERM):
            try:
                ended = executor.execute()
            except (Interrupted, KeyboardInterrupt):
                if executor.is_committed:
                    raise  # whoever tidies up knows it
                ended = executor.give_up("interrupted")
    except BaseException as error:
        executor.listener.phase("")
        if isinstance(error, GitgatesError) and not isinstance(error, Interrupted):
            click.echo(f"gitgates: {_after_error(ground)}", err=True)
        raise
    ground.close()
    return ended


def _after_error(ground: Ground) -> str:
    """Keep the work of a run that has met an error; return where it is."""
    try:
        failed_work = ground.leave()
    except (GitgatesError, OSError):
        return left_note(ground.state.root_abs)
    ground.close()
    ref = failed_work.ref
    where = f"the agent's work is kept as {ref}" if ref else "the agent's work is empty"
    return left_note(failed_work.left_abs) if failed_work.left_abs else where


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


def _require_possible(repo: Repo, location: Location, *, commits: bool) -> None:
    """Raise UsageError or GitError if a run could not end as it is asked for."""
    branch = location.branch
    if location.in_place and location.uncommitted:
        raise UsageError("--in-place and --include-uncommitted are mutually exclusive")
    if branch and not commits:
        raise UsageError("--branch and --no-commit are mutually exclusive")
    if branch and repo.git.ask("check-ref-format", "--branch", branch).exit_status:
        raise UsageError(f"--branch {branch}: not a valid branch name")
    if branch and repo.git.resolve(f"refs/heads/{branch}"):
        raise UsageError(f"--branch {branch}: already exists", "Choose a new name.")
    if (ident := repo.git.ask("var", "GIT_COMMITTER_IDENT")).exit_status:
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
        click.echo(f"committed as {ended.commit[:12]} on {ended.branch or 'no branch'}")
    if ended.rolled_back:
        in_place = executor.state.in_place
        click.echo(f"your working tree is as {'before' if in_place else 'you left it'}")
    if ended.failed_ref:
        click.echo(f"to create a branch from the agent's work: gitgates runs restore {run}")
    for note in ended.notes:
        click.echo(f"note: {note}")
    if not (executor.settings.commits or status):
        click.echo("nothing was committed, as requested")
    click.echo(f"report: {run_abs}/{PAGE}")
    return status

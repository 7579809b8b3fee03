"""`gitgates explain`: what a hook would run now, on which paths and why; what policies answer."""

from __future__ import annotations

from typing import Any

import click

from gitgates.cli.run import (
    PathCommand,
    configuration_for,
    list_hooks_with_gates,
    path_options,
    select_paths,
)
from gitgates.core import environ
from gitgates.core.clean import utf8, visible_line
from gitgates.core.errors import OK, UsageError
from gitgates.core.lifecycle import AGENT_KINDS, HOOK_POINTS, TOOL_EVENTS, kind_of
from gitgates.core.policy import functions_of, providers
from gitgates.core.record import Record
from gitgates.core.types import VERDICTS, Config, Event, Gate, Hook, Plan
from gitgates.drivers.caller import find_caller
from gitgates.drivers.dry_call import PolicyAnswer, ask_agent_hook, ask_git_hook, dry_call
from gitgates.drivers.needs import asked_besides
from gitgates.engine.plan.plan import find_hook, framework_gate, joined_plan, make_plan
from gitgates.engine.run.reuse_preview import preview_reuse
from gitgates.git.repo import Repo
from gitgates.hosts import git as githook
from gitgates.report.documents import PLAN_VERSION, plan_document, plan_text
from gitgates.store.log import sessions
from gitgates.verbs.completion import complete_gates, complete_hooks, unknown_gate, unknown_hook
from gitgates.verbs.directory import folder_of, gates_below
from gitgates.verbs.output import format_option, print_json, stdout
from gitgates.verbs.repository import current_repo

# The answers at these depend on the tool, the prompt or the sub-agent.
_DEPEND_ON_EVENT = (
    *(*TOOL_EVENTS, "after-batch", "prompt", "prompt-expansion"),
    *("subagent-start", "subagent-end"),
)
_COMMIT_HOOK = "pre-commit"


class _Answers(Record):
    """What policies say of a hook now."""

    session: str = ""
    why_not: str = ""  # why they are not asked
    policies: tuple[PolicyAnswer, ...] = ()
    plan: Plan | None = None  # of the gates that the hook would run
    others: tuple[Plan, ...] = ()  # of what policies also run


@click.command("explain", cls=PathCommand)
@click.argument("hook", required=False, shell_complete=complete_hooks)
@click.option(
    "--for-agent",
    is_flag=True,
    help="Print the rules that a coding agent receives at session start.",
)
@click.option(
    "--session",
    metavar="ID",
    default="",
    help="For an agent's hook: which session. Default: the calling one, or the only one.",
)
@click.option(
    "--remote",
    metavar="GATE",
    default="",
    shell_complete=complete_gates,
    help="List the files that the gate would send to another machine, and what is refused.",
)
@click.option(
    "--reads",
    metavar="GATE",
    default="",
    shell_complete=complete_gates,
    help="Run the gate once under strace, and list what it reads, by folder.",
)
@path_options
@format_option
def command(
    *,
    hook: str | None,
    for_agent: bool,
    session: str,
    remote: str,
    reads: str,
    fmt: str,
    **options: Any,  # noqa: ANN401 - click's
) -> int:
    """Show what HOOK would run now: each gate, why or why not, and on which paths.

    Without HOOK: what a commit would run.

    Nothing is run, except by --reads. As in `gitgates run`, the paths are by default all changes
    relative to HEAD: staged, unstaged and untracked; for a stopping agent's hooks, its session's
    changes. Also shows which passes would be reused, or why none would be, and what the policies
    answer now: the hook's output if the gates pass.
    """
    _refuse_misuse(hook, for_agent=for_agent, gates={"--remote": remote, "--reads": reads})
    repo = current_repo()
    config = configuration_for(repo, staged=options["staged"])
    if remote:
        return _show_sent(repo, config, remote, fmt)
    if reads:
        return _show_reads(repo, config, reads, fmt)
    if for_agent:
        _print_rules(config)
        return OK
    hook = hook or _COMMIT_HOOK
    configured = find_hook(config, hook) or Hook(name=hook)
    besides = asked_besides(config, kind_of(hook))
    if not (configured.gates or besides):
        if fmt == "json":
            print_json({"version": PLAN_VERSION, "hook": hook, "configured_as": None, "gates": []})
        else:
            other_hooks = list_hooks_with_gates(config)
            click.echo(f"{hook} has no gates, so nothing runs. Hooks with gates: {other_hooks}.")
        return OK  # a hook without gates is a choice, not a mistake
    configured = gates_below(folder_of(options["directory"], repo), config, configured)
    paths, deleted = select_paths(options, repo)
    event = githook.decode_by_hand(hook, paths, deleted, (repo.root_abs, repo.git_dir_abs))
    event = event._replace(base=options["from_ref"], with_untracked=not any(options.values()))
    answers = _ask(repo, config, event, session)
    plan = None if any(options.values()) else answers.plan
    plan = plan or make_plan(config, configured, event, environ.skipped_gates(environ.read()))
    for other in answers.others:
        plan = joined_plan(plan, other)
    if note := _note(repo, config, hook, besides):
        plan = plan._replace(event=plan.event._replace(note=note))
    reuse = preview_reuse(plan, config, repo)
    if fmt == "json":
        print_json({**plan_document(plan, reuse), **_fields(answers)})
    else:
        terminal = stdout()
        text = plan_text(plan, reuse, colour=terminal.colour) + _text(hook, answers)
        terminal.write(text.encode("utf-8", "surrogateescape"))
    return OK


def _refuse_misuse(hook: str | None, *, for_agent: bool, gates: dict[str, str]) -> None:
    """Refuse arguments that do not go together. Raises: UsageError."""
    if for_agent and hook:
        raise UsageError("--for-agent covers all hooks", "Omit the name of the hook.")
    named = [option for option, gate in gates.items() if gate]
    if named and (hook or for_agent or len(named) > 1):
        raise UsageError(f"{named[0]} is about one gate", "Omit the other arguments.")
    if hook and hook not in HOOK_POINTS:
        raise unknown_hook(hook)


def _show_sent(repo: Repo, config: Config, name: str, fmt: str) -> int:
    """Show what a gate would send to another machine."""
    gate = _gate_of(config, name)
    provided = providers(config, "sent_inputs")
    if not provided:
        raise UsageError(
            "the configuration names no other machine", "Add a table [tool.gitgates.remote]."
        )
    document, text = provided[0](repo, config, gate)
    if fmt == "json":
        print_json(document)
    else:
        stdout().write(text.encode("utf-8", "surrogateescape"))
    return OK


def _show_reads(repo: Repo, config: Config, name: str, fmt: str) -> int:
    """Show what a gate reads, by running it."""
    from gitgates.cli.explain_reads import reads_document, reads_of, reads_text  # seldom needed

    reads = reads_of(repo, config, _gate_of(config, name))
    if fmt == "json":
        print_json(reads_document(reads))
    else:
        stdout().write(reads_text(reads).encode("utf-8", "surrogateescape"))
    return OK


def _gate_of(config: Config, name: str) -> Gate:
    gate = next((gate for gate in config.gates if gate.name == name), None)
    if not gate:
        raise unknown_gate(name, tuple(each.name for each in config.gates))
    return gate


def _note(repo: Repo, config: Config, hook: str, besides: tuple[str, ...]) -> str:
    also_evaluated = ", ".join(besides)
    texts = (
        _of_framework(repo, config, hook),
        also_evaluated and f"also evaluated: {also_evaluated}",
    )
    return "; ".join(filter(None, texts))


def _of_framework(repo: Repo, config: Config, hook: str) -> str:
    """Return how a gate relates to the hook that the pre-commit framework installed."""
    if not framework_gate(config, hook) or HOOK_POINTS[hook].host != "git":
        return ""
    from gitgates.setup.install.framework import gate_in_place
    from gitgates.setup.install.hookspath import hooks_folder

    return gate_in_place(f"{hooks_folder(repo).path_abs}/{hook}", repo.root_abs, config)


def _ask(repo: Repo, config: Config, event: Event, session: str) -> _Answers:
    """Ask the policies that need an event, or return why they are not asked.

    Raises: UsageError if a named session is unknown here; GitError, StateError if the current
    state cannot be determined.
    """
    kind = kind_of(event.name)
    if kind not in AGENT_KINDS:
        plan_functions = functions_of(config, "plan_of", kind)
        others = tuple(plan for plan_of in plan_functions if (plan := plan_of(event, repo, config)))
        return _Answers(policies=tuple(ask_git_hook(event, repo, config)), others=others)
    if kind in _DEPEND_ON_EVENT:
        return _Answers(why_not="the answer depends on the tool, the prompt or the sub-agent")
    try:
        caller = find_caller(repo, environ.read(), session=session)
    except UsageError as error:
        if session:
            raise
        hint, _newline, _sessions = error.hint.partition("\n")
        why_not = f"{error.message}. {hint}"
        if not any(sessions(state_abs) for state_abs in repo.states_abs):
            why_not = "no session has begun yet in this worktree"
        return _Answers(why_not=f"the answer depends on the session: {why_not}")
    call = dry_call(repo, config, kind, caller)
    policies = tuple(ask_agent_hook(call))
    plans = {name: plan for name, plan in call.explanations.items() if isinstance(plan, Plan)}
    plan = plans.pop("gates", None)
    return _Answers(caller.session, policies=policies, plan=plan, others=tuple(plans.values()))


def _text(hook: str, answers: _Answers) -> str:
    """Return the policies' answers as text, without empty ones."""
    lines = []
    for answer in answers.policies:
        word = VERDICTS[answer.level] if answer.level != answer.before else ""
        text = "\n".join(filter(None, (answer.note, answer.to_person, answer.to_agent)))
        if word or text:
            first, *more = ": ".join(filter(None, (answer.policy, word, text))).split("\n")
            lines += [f"  {first}", *(f"    {line}".rstrip() for line in more)]
    if answers.session:
        lines = [f"{hook} in session {answers.session}, now:", *(lines or ["  no output"])]
    elif lines:
        lines = [f"{hook}, now:", *lines]
    elif answers.why_not:
        lines = [answers.why_not]
    return "".join(f"{visible_line(line)}\n" for line in ["", *lines]) if lines else ""


def _fields(answers: _Answers) -> dict[str, Any]:
    return {
        "session": answers.session or None,
        "not_asked": answers.why_not,
        "policies": [
            {
                "name": answer.policy,
                "verdict": VERDICTS[answer.level],
                "to_agent": utf8(answer.to_agent),
                "to_person": utf8(answer.to_person),
                "note": answer.note,
            }
            for answer in answers.policies
        ],
    }


def _print_rules(config: Config) -> None:
    from gitgates.features.gates.rules import rules_text  # seldom needed

    if text := rules_text(config):
        click.echo(text)
    else:
        click.echo("No hook has gates, so agents receive no rules.", err=True)

"""`gitgates cannot-fix`: report that a gate's failure cannot be fixed, which ends its retries."""

from __future__ import annotations

import click

from gitgates.config.values import did_you_mean
from gitgates.core import environ
from gitgates.core.errors import OK, StateError, UsageError
from gitgates.core.lifecycle import RETRY_HOOKS
from gitgates.core.policy import policy_gates
from gitgates.core.types import Config
from gitgates.drivers.caller import Caller, identify, name_of
from gitgates.drivers.shell_commands import OPTION
from gitgates.git.repo import Repo
from gitgates.journal.entries import ANY, CannotFixEntry, fold
from gitgates.journal.journal import fact_of
from gitgates.store.log import Journal, session_journal, sessions, write_ledger
from gitgates.verbs.completion import complete_gates
from gitgates.verbs.repository import configuration, current_repo

_LONGEST = 2000


@click.command("cannot-fix")
@click.argument("gate", required=False, default="", shell_complete=complete_gates)
@click.option("--reason", default="", help="Why it cannot be fixed here, for the person to read.")
@click.option("--question", default="", help="What the person must answer before you go on.")
@click.option(
    "--wait", is_flag=True, help="A command that you started is running in the background."
)
@click.option("--session", metavar="ID", help="The agent's session. Default: the calling session.")
@click.option(OPTION, default="", hidden=True)
def command(
    *, gate: str, reason: str, question: str, wait: bool, session: str | None, caller: str
) -> int:
    """Report that the failure of GATE cannot be fixed in this session, and why.

    For an agent that a gate keeps from stopping. This is not a pass: it ends that gate's retries
    for the current prompt, and is reported to the person.

    Without GATE, the turn may end although gates fail: with --question, in the current prompt, and
    the person sees the question; with --wait, as long as one of the agent's commands runs.

    Exit status 0: recorded. 64: unknown gate, no reason, or no matching session.
    """
    repo = current_repo()
    _check_report(gate, reason, question, wait=wait)
    config = configuration(repo)
    if gate:
        _check_gate(gate, config)
    env = environ.read()
    if run := env.get("GITGATES_HEADLESS"):  # it waits for the gate, not the agent's own session
        # Its gates run at the end of each turn: a report in the first one is not too early.
        path_abs = session_journal(repo.state_abs, f"headless-{run}").path_abs
        waiting = {path_abs: _waiting_prompts(path_abs, gate) or ("",)}
    else:
        identity = identify(repo, env, session=session or "", nonce=caller)
        waiting = _find_waiting(repo, gate, identity)
    excerpt = " ".join((reason or question).split())[:_LONGEST]
    fields: dict[str, object] = {"gate": gate, "reason": excerpt}
    for path_abs, prompts in waiting.items():
        entries = (fact_of(CannotFixEntry(prompt, gate, excerpt)) for prompt in prompts)
        try:
            Journal(path_abs).append(*entries)
            write_ledger(repo.shared_state_abs, "cannot-fix", {**fields, "root": repo.root_abs})
        except OSError as error:
            raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error
    noted = f"`{gate}` cannot be fixed; the reason" if gate else "your turn may end; this"
    click.echo(f"gitgates: noted that {noted} is reported to the person")
    return OK


def _check_report(gate: str, reason: str, question: str, *, wait: bool) -> None:
    if sum(map(bool, (gate or reason, question, wait))) != 1 or bool(gate) < bool(reason):
        raise UsageError(
            "give one report", 'Either GATE --reason "…", or --question "…", or --wait.'
        )
    if not (reason or question).strip() and not wait:
        what, example = ("reason", "needs a newer libc") if gate else ("question", "Which one?")
        hint = f'Give a {what}, for example: --{what} "{example}"'
        raise UsageError(f"--{what} is empty", hint)


def _check_gate(gate: str, config: Config) -> None:
    names = tuple(defined.name for defined in config.gates)
    if gate in policy_gates():
        hint = f'If no review is needed, say why: gitgates {gate} skip --reason "…"'
        raise UsageError(f"`{gate}` is a built-in gate, and cannot be fixed", hint)
    if gate not in names:
        hint = did_you_mean(gate, names) or f"Known: {', '.join(names)}"
        raise UsageError(f"no gate `{gate}` is configured", hint)


def _find_waiting(repo: Repo, gate: str, caller: Caller | None) -> dict[str, tuple[str, ...]]:
    """Return the session's journals, and the prompts that the reason is for.

    There is a journal in each worktree that the session has entered. If nothing shows whose
    command this is, it is for the session that waits for the gate, if it is the only one; never
    simply for the latest.
    """
    if caller:
        readable = zip(caller.journals, caller.facts, strict=True)  # all are readable
        paths = [journal.path_abs for journal, _facts in readable]
    else:
        paths = [path for state_abs in repo.states_abs for path in sessions(state_abs)]
    any_time = bool(caller) and gate == ANY
    waiting = {
        path: prompts
        for path in paths
        if (prompts := _waiting_prompts(path, gate, any_time=any_time))
    }
    names = list(dict.fromkeys(map(name_of, waiting)))
    if caller and not names:
        hint = "Run this for a gate that has kept you from stopping."
        raise UsageError(f"`{gate}` does not keep session `{caller.session}` from stopping", hint)
    by = f"`{gate}`" if gate else "a gate"
    if not names:
        hint = "Run this when a gate keeps you from stopping, or specify the session: --session ID"
        raise UsageError(f"no session is kept from stopping by {by}", hint)
    if len(names) > 1:
        hint = f"Specify one: --session {' or --session '.join(names)}"
        raise UsageError(f"more than one session is kept from stopping by {by}", hint)
    return waiting


def _waiting_prompts(path_abs: str, gate: str, *, any_time: bool = False) -> tuple[str, ...]:
    """Return a session's prompt, and those of its agents that a gate keeps from stopping; or none.

    They differ if a sub-agent of an earlier prompt is still working, or if a host did not report
    a prompt. Gates that ran between two stops, such as after an edit, do not matter. `any_time`:
    return the session's prompt even if no gate keeps anybody from stopping.
    """
    try:
        session = fold(Journal(path_abs).read())
    except OSError:
        return ()  # not the caller's journal, which was readable
    # A built-in gate has its own rounds.
    last = {
        (round_.hook, round_.agent): round_
        for round_ in session.rounds
        if round_.hook in RETRY_HOOKS and round_.gates not in policy_gates()
    }
    prompts = [
        round_.prompt
        for round_ in last.values()
        if round_.outcome == "blocked" and (gate == ANY or gate in dict(round_.statuses))
    ]
    return tuple(dict.fromkeys((session.prompt, *prompts))) if prompts or any_time else ()

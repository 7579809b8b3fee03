"""`gitgates cannot-fix`: say that a gate's failure cannot be fixed, so that its retries end."""

from __future__ import annotations

import click

from gitgates import environ
from gitgates.caller import Caller, identify, name_of
from gitgates.cli.completion import complete_gates
from gitgates.cli.repository import configuration, current_repo
from gitgates.config.values import did_you_mean
from gitgates.errors import OK, StateError, UsageError
from gitgates.git.repo import Repo
from gitgates.lifecycle import ENDING_HOOKS
from gitgates.policies.session import Round, Session, fold
from gitgates.policies.tokens import OPTION
from gitgates.policy import policy_gates
from gitgates.store.log import Journal, sessions, write_ledger
from gitgates.types import Config

_LONGEST = 2000


@click.command("cannot-fix")
@click.argument("gate", shell_complete=complete_gates)
@click.option("--reason", required=True, help="Why it cannot be fixed here; the person reads it.")
@click.option("--session", metavar="ID", help="The agent's session. Default: the one that asks.")
@click.option(OPTION, default="", hidden=True)
def command(gate: str, reason: str, session: str | None, caller: str) -> int:
    """Say that the failure of GATE cannot be fixed in this session, and why.

    This is for an agent that a gate keeps from stopping. It is no pass: the retries of that gate
    end for the current prompt, the person is told, and the report says so.

    Exit status 0: it is noted. 64: no such gate, no reason, or no session that could be meant.
    """
    repo = current_repo()
    _check_gate(gate, configuration(repo))
    if not reason.strip():
        raise UsageError("--reason is empty", 'Say why, for example: --reason "needs a newer libc"')
    told = identify(repo, environ.read(), session=session or "", nonce=caller)
    journals = _find_journals(repo, gate, told)
    said = " ".join(reason.split())[:_LONGEST]
    fields: dict[str, object] = {"gate": gate, "reason": said}
    for journal in journals:
        prompts = _prompts(_read(journal), gate)
        try:
            journal.append(*({"what": "cannot-fix", "prompt": one, **fields} for one in prompts))
            write_ledger(repo.shared_state_abs, "cannot-fix", {**fields, "root": repo.root_abs})
        except OSError as error:
            raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error
    click.echo(f"gitgates: noted that `{gate}` cannot be fixed; the person will be told why")
    return OK


def _check_gate(gate: str, config: Config) -> None:
    names = tuple(one.name for one in config.gates)
    if gate in policy_gates():
        hint = f'Where no review is needed, say why: gitgates {gate} skip --reason "…"'
        raise UsageError(f"`{gate}` is a built-in gate, and nothing to be fixed", hint)
    if gate not in names:
        hint = did_you_mean(gate, names) or f"There are: {', '.join(names)}"
        raise UsageError(f"no gate `{gate}` is configured", hint)


def _find_journals(repo: Repo, gate: str, caller: Caller | None) -> list[Journal]:
    """Return the journals of the session that is meant; never simply the latest.

    There is one in each worktree that the session has come to. Where nothing tells whose command
    this is, the session is meant that waits for the gate, if it is the only one.
    """
    if caller:
        waiting = [one.path_abs for one in caller.journals if _is_waiting(one.path_abs, gate)]
        if not waiting:
            hint = "Say this after a gate has kept you from stopping, about that gate."
            raise UsageError(
                f"`{gate}` does not keep session `{caller.session}` from stopping", hint
            )
        return [Journal(path) for path in waiting]
    there = [path for state_abs in repo.states_abs for path in sessions(state_abs)]
    waiting = [path for path in there if _is_waiting(path, gate)]
    if len({name_of(path) for path in waiting}) != 1:
        what = "no session here waits for" if not waiting else "more than one session waits for"
        raise UsageError(f"{what} `{gate}`", _hint(waiting))
    return [Journal(path) for path in waiting]


def _read(journal: Journal) -> Session:
    try:
        return fold(journal.read())
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be read: {error.strerror}") from error


def _is_waiting(path_abs: str, gate: str) -> bool:
    try:
        return bool(_rounds_of(_read(Journal(path_abs)), gate))
    except StateError:
        return False  # whoever's it is, it is not the one that asks


def _hint(waiting: list[str]) -> str:
    names = list(dict.fromkeys(name_of(path_abs) for path_abs in waiting))
    if not names:
        return "Say this where a gate keeps you from stopping, or name the session: --session ID"
    return f"Name one of them: --session {' or --session '.join(names)}"


def _rounds_of(session: Session, gate: str) -> list[Round]:
    """Return the rounds in which a gate keeps an agent of a session from stopping now.

    What was checked between two stops, such as each edit, says nothing of that.
    """
    # A built-in gate has rounds of its own, beside those of the others.
    ends = [
        one
        for one in session.rounds
        if one.hook in ENDING_HOOKS and one.gates not in policy_gates()
    ]
    last = {(one.hook, one.agent): one for one in ends}
    return [r for r in last.values() if r.outcome == "blocked" and gate in dict(r.statuses)]


def _prompts(session: Session, gate: str) -> tuple[str, ...]:
    """Return the prompts that it is said for: the current one, and those of who waits.

    They differ where a sub-agent of an earlier prompt is still at work, and where a prompt came of
    which we did not hear.
    """
    waiting = [one.prompt for one in _rounds_of(session, gate)]
    return tuple(dict.fromkeys((session.prompt, *waiting)))

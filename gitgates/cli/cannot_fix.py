"""`gitgates cannot-fix`: say that a gate's failure cannot be fixed, so that its retries end."""

from __future__ import annotations

import click

from gitgates import environ
from gitgates.cli.params import GateName
from gitgates.cli.places import configuration, here
from gitgates.config.values import did_you_mean
from gitgates.errors import OK, StateError, UsageError
from gitgates.policies.session import fold
from gitgates.system.journal import Journal, session_journal, sessions
from gitgates.system.ledger import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.session import Session
    from gitgates.system.roots import Roots
    from gitgates.types import Config

_SESSION = "CLAUDE_CODE_SESSION_ID"
_LONGEST = 2000


@click.command("cannot-fix")
@click.argument("gate", type=GateName())
@click.option("--reason", required=True, help="Why it cannot be fixed here; the person reads it.")
@click.option("--session", metavar="ID", help="The agent's session. Default: the one that asks.")
def command(gate: str, reason: str, session: str | None) -> int:
    """Say that the failure of GATE cannot be fixed in this session, and why.

    This is for an agent that a gate keeps from stopping. It is no pass: the retries of that gate
    end for the current prompt, the person is told, and the report says so.

    Exit status 0: it is noted. 64: no such gate, no reason, or no session that could be meant.
    """
    roots, _git = here()
    _check_gate(gate, configuration(roots))
    if not reason.strip():
        raise UsageError("--reason is empty", 'Say why, for example: --reason "needs a newer libc"')
    journal = _find_session(roots, gate, session or environ.read().get(_SESSION, ""))
    known = fold(journal.read())
    said = " ".join(reason.split())[:_LONGEST]
    fields: dict[str, object] = {"gate": gate, "reason": said}
    try:
        journal.append({"what": "cannot-fix", "prompt": _prompt(known), **fields})
        record(roots.shared_state_abs, "cannot-fix", {**fields, "root": roots.root_abs})
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error
    click.echo(f"gitgates: noted that `{gate}` cannot be fixed; the person will be told why")
    return OK


def _check_gate(gate: str, config: Config) -> None:
    names = tuple(one.name for one in config.gates)
    if gate not in names:
        hint = did_you_mean(gate, names) or f"There are: {', '.join(names)}"
        raise UsageError(f"no gate `{gate}` is configured", hint)


def _find_session(roots: Roots, gate: str, named: str) -> Journal:
    """Return the journal of the session that is meant; never simply the latest."""
    waiting = [
        path_abs
        for path_abs in sessions(roots.state_abs)
        if _waits_for(fold(Journal(path_abs).read()), gate)
    ]
    if named:
        journal = session_journal(roots.state_abs, named)
        if not journal.read():
            raise UsageError(f"session `{named}` has no journal here", _hint(waiting))
        return journal
    if len(waiting) != 1:
        what = "no session here waits for" if not waiting else "more than one session waits for"
        raise UsageError(f"{what} `{gate}`", _hint(waiting))
    return Journal(waiting[0])


def _hint(waiting: list[str]) -> str:
    names = [path_abs.rpartition("/")[2].removesuffix(".jsonl") for path_abs in waiting]
    if not names:
        return "Say this where a gate keeps you from stopping, or name the session: --session ID"
    return f"Name one of them: --session {' or --session '.join(names)}"


def _waits_for(session: Session, gate: str) -> bool:
    """Tell whether a session is being kept from stopping by a gate now."""
    last = session.rounds[-1] if session.rounds else None
    return bool(last and last.outcome == "blocked" and gate in dict(last.statuses))


def _prompt(session: Session) -> str:
    """Return the prompt that the last round belongs to, as an agent that was blocked is in it."""
    return session.rounds[-1].prompt if session.rounds else session.prompt

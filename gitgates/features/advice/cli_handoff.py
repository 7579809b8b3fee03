"""`gitgates handoff`: leave the work to the next session."""

from __future__ import annotations

import click

from gitgates.core import environ
from gitgates.core.clean import plain_line
from gitgates.core.errors import OK, UsageError
from gitgates.core.lifecycle import RETRY_HOOKS
from gitgates.core.policy import policy_gates
from gitgates.features.advice.cli import run_hooks
from gitgates.features.advice.handoff import TOPIC
from gitgates.features.advice.items import identify
from gitgates.features.intents.lease import held_by, holder_of, read_leases
from gitgates.session.caller import Caller, find_caller
from gitgates.session.dry_call import ask_agent_hook, dry_call
from gitgates.store.messages import Message
from gitgates.verbs.repository import configuration, current_repo, post_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.git.repo import Repo
    from gitgates.session.call import Call

_LONGEST = 300
_NOTHING_SAID = "(no message)"


@click.command("handoff")
@click.option("--to", metavar="NAME", default="", help="A rig, a role or an agent.")
@click.option("-m", "--message", metavar="TEXT", default="", help="What is done, and what is next.")
@click.option("--session", metavar="ID", default="", help="The session, where it is not told.")
def command(to: str, message: str, session: str) -> int:
    """Run the hooks of before-handoff, and hand the work over to the next session.

    The next session that begins in this worktree, or the first that has the name, is told the
    message, the intent, the content, open failures and the state of the review.

    Exit status 0: it is written down. 1: a hook that blocks has failed, and it is not.
    """
    repo, env = current_repo(), environ.read()
    config = configuration(repo)
    caller = _caller(repo, session)
    status = run_hooks(repo, config, "before-handoff", identify(env))
    if status:
        click.echo("gitgates: nothing was handed over", err=True)
        return status
    data = {"to": to, "root": repo.root_abs, **_state(repo, config, caller)}
    draft = Message(TOPIC, message.strip() or _NOTHING_SAID, data=data)
    if caller:
        draft = draft._replace(session=caller.session, agent=caller.agent)
    name = post_message(repo, draft)
    whom = f"the first session of {to}" if to else "the next session here"
    click.echo(f"gitgates: handed over as {name}; {plain_line(whom)} is told")
    return OK


def _caller(repo: Repo, session: str) -> Caller | None:
    """Return whose work it is; None where no session is known. Raises: as `find_caller`."""
    try:
        return find_caller(repo, environ.read(), session=session)
    except UsageError:
        if session:
            raise
        return None


def _state(repo: Repo, config: Config, caller: Caller | None) -> dict[str, object]:
    """Return what is known of the work.

    Raises: GitError, StateError if what is there now cannot be told.
    """
    if caller is None:
        from gitgates.git.snapshot import take

        return {"snapshot": take(repo).tree}
    call = dry_call(repo, config, "turn-end", caller)
    return {
        "snapshot": call.snapshot.tree,
        "intent": _intent(repo, config, caller),
        "failures": _failures(call),
        "review": _review(call),
    }


def _intent(repo: Repo, config: Config, caller: Caller) -> str:
    if config.intents is None:
        return ""
    leases = read_leases(repo.shared_state_abs)
    own = held_by(leases, holder_of(caller.session, caller.agent))
    return own.intent if own else ""


def _failures(call: Call) -> list[str]:
    """Return the gates that did not pass when the session stopped last."""
    last = {
        (one.hook, one.agent, one.gates): one
        for one in call.session.rounds
        if one.hook in RETRY_HOOKS and one.gates not in policy_gates()
    }
    found = [f"{gate} ({status})" for one in last.values() for gate, status in one.statuses]
    return list(dict.fromkeys(found))


def _review(call: Call) -> str:
    """Return what the policy of reviews would say to a stop now."""
    for answer in ask_agent_hook(call):
        if answer.policy == "review":
            said = answer.to_agent or answer.to_person or "nothing is missing"
            return plain_line(said, _LONGEST)
    return ""

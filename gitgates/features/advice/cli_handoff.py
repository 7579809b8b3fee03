"""`gitgates handoff`: hand the work over to the next session."""

from __future__ import annotations

import click

from gitgates.core import environ
from gitgates.core.clean import plain_line
from gitgates.core.errors import OK, UsageError
from gitgates.core.lifecycle import RETRY_HOOKS
from gitgates.core.parts import feature_parts
from gitgates.core.policy import policy_gates
from gitgates.drivers.caller import Caller, find_caller
from gitgates.drivers.dry_call import dry_call
from gitgates.features.advice.cli import run_hooks
from gitgates.features.advice.items import identify
from gitgates.features.advice.received import TOPIC
from gitgates.store.messages import Message
from gitgates.verbs.repository import configuration, current_repo, post_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.git.repo import Repo

_LONGEST = 300
_NO_MESSAGE = "(no message)"


@click.command("handoff")
@click.option("--to", metavar="NAME", default="", help="Recipient: a rig, a role or an agent.")
@click.option(
    "-m", "--message", metavar="TEXT", default="", help="What was done, and what is next."
)
@click.option("--session", metavar="ID", default="", help="The session, if it is not detected.")
def command(to: str, message: str, session: str) -> int:
    """Run the before-handoff hooks, and hand the work over to the next session.

    The next session in this worktree, or the first one with the given name, receives the message,
    the intent, the content's snapshot, open failures and the state of the review.

    Exit status 0: the work was handed over. 1: it was not, because a blocking hook failed.
    """
    repo, env = current_repo(), environ.read()
    config = configuration(repo)
    caller = _caller(repo, session)
    status = run_hooks(repo, config, "before-handoff", identify(env))
    if status:
        click.echo("gitgates: nothing was handed over", err=True)
        return status
    data = {"to": to, "root": repo.root_abs, **_state(repo, config, caller)}
    draft = Message(TOPIC, message.strip() or _NO_MESSAGE, data=data)
    if caller:
        draft = draft._replace(session=caller.session, agent=caller.agent)
    name = post_message(repo, draft)
    whom = f"the first session of {to}" if to else "the next session here"
    click.echo(f"gitgates: handed over as {name}; {plain_line(whom)} receives it")
    return OK


def _caller(repo: Repo, session: str) -> Caller | None:
    """Return the session that hands over; None if it is unknown. Raises: as `find_caller`."""
    try:
        return find_caller(repo, environ.read(), session=session)
    except UsageError:
        if session:
            raise
        return None


def _state(repo: Repo, config: Config, caller: Caller | None) -> dict[str, object]:
    """Return the state of the work, for the message.

    Raises: GitError, StateError if the working tree cannot be read.
    """
    if caller is None:
        from gitgates.files.stored import look_as_stored

        return {"snapshot": look_as_stored(repo).tree}
    call = dry_call(repo, config, "turn-end", caller)
    state: dict[str, object] = {"snapshot": call.snapshot.tree, "failures": _failures(call)}
    for module in feature_parts("handoff"):
        texts = module.state(call, caller)
        state |= {name: plain_line(text, _LONGEST) for name, text in texts.items()}
    return state


def _failures(call: Call) -> list[str]:
    """Return the gates that did not pass when the session last stopped."""
    last = {
        (entry.hook, entry.agent, entry.gates): entry
        for entry in call.session.rounds
        if entry.hook in RETRY_HOOKS and entry.gates not in policy_gates()
    }
    failures = [f"{gate} ({status})" for entry in last.values() for gate, status in entry.statuses]
    return list(dict.fromkeys(failures))

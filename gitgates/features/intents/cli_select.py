"""`gitgates intent select` and `release`: which intent an agent works on."""

from __future__ import annotations

import click

from gitgates.core import environ, errors
from gitgates.features.intents import selection as intent_select
from gitgates.features.intents.lease import Holder
from gitgates.session.caller import find_caller
from gitgates.session.shell_commands import OPTION
from gitgates.verbs.repository import configuration, current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.session.caller import Caller

_session_option = click.option(
    "--session", default="", metavar="ID", help="The agent's session. Default: the calling session."
)
_agent_option = click.option(
    "--agent", default="", metavar="ID", help="A sub-agent of that session."
)
_caller_option = click.option(OPTION, default="", hidden=True)


@click.command("select")
@click.argument("name", metavar="ID")
@_session_option
@_agent_option
@_caller_option
def select(name: str, *, session: str, agent: str, caller: str) -> int:
    """Select the intent to work on, and print its context.

    The agent holds it until it releases it, selects another one, or is inactive for the time `ttl`.
    A sub-agent selects its own. Exit status 75: another agent holds it.
    """
    repo, resolved_caller = _caller(session, agent, caller)
    click.echo(
        intent_select.select(
            *(repo, configuration(repo), name),
            holder=Holder(resolved_caller.session, resolved_caller.agent),
            journal=resolved_caller.journals[0],
        ),
        nl=False,
    )
    return errors.OK


@click.command("release")
@_session_option
@_agent_option
@_caller_option
def release(session: str, agent: str, caller: str) -> int:
    """Release the intent that is held, so others can select it."""
    repo, resolved_caller = _caller(session, agent, caller)
    holder = Holder(resolved_caller.session, resolved_caller.agent)
    click.echo(f"released: {intent_select.release(repo, holder)}")
    return errors.OK


def _caller(session: str, agent: str, nonce: str) -> tuple[Repo, Caller]:
    repo = current_repo()
    return repo, find_caller(repo, environ.read(), session=session, agent=agent, nonce=nonce)

"""`gitgates review request`: what the person asked for, and nothing of what others say of it."""

from __future__ import annotations

import click

from gitgates.cli.reviewing import call_of, for_session, open_desk
from gitgates.errors import OK
from gitgates.review.status_text import requests_text


@click.command("request")
@for_session
@click.pass_context
def command(context: click.Context, session: str | None, agent: str | None) -> int:
    """Show the person's prompts of this session, word for word."""
    desk = open_desk(call_of(context, session, agent)._replace(any_agent=True))
    requests = desk.caller.whole.requests
    if not requests:
        click.echo("gitgates: no prompt of this session was heard of", err=True)
    click.echo(requests_text(requests), nl=False)
    return OK

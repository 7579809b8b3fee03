"""`gitgates review done`: note that a review ran on what is there now."""

from __future__ import annotations

import click

from gitgates.cli.reviewing import (
    bound_to,
    call_of,
    checked_text,
    for_session,
    note_fact,
    open_desk,
    post_message,
    warn_of_nothing,
)
from gitgates.errors import OK


@click.command("done")
@click.option("--summary", help="What you looked at, and what you found.")
@for_session
@click.pass_context
def command(
    context: click.Context, summary: str | None, session: str | None, agent: str | None
) -> int:
    """Say that you have reviewed the change as it is now.

    It holds until the change is significantly another one. Where an independent review is asked
    for, only the reviewer's COMPLETE counts; this is recorded all the same.
    """
    said = None if summary is None else checked_text("--summary", summary)
    desk = open_desk(call_of(context, session, agent))
    found = desk.survey()
    message = post_message(desk, said or "reviewed", {"how": "done", "summary": said or ""})
    fact = {
        "what": "marker",
        "how": "done",
        "agent": desk.caller.agent,
        "message": message,
        "by_person": not desk.caller.by_agent,
        **bound_to(found, found.scene.now),
    }
    note_fact(desk, fact)
    click.echo(f"gitgates: noted that this change was reviewed (message {message})")
    warn_of_nothing(found)
    if found.strict:
        reviewer = desk.config.review.reviewer
        click.echo(
            f"  An independent review is asked for: only COMPLETE of `{reviewer}` counts for that."
        )
    return OK

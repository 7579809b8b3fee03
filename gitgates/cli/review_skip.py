"""`gitgates review skip`: say, with a reason, that a change needs no review."""

from __future__ import annotations

import click

from gitgates.cli.reviewing import (
    Desk,
    bound_to,
    call_of,
    checked_text,
    for_session,
    note_fact,
    open_desk,
    post_message,
    warn_of_nothing,
)
from gitgates.errors import OK, StateError, UsageError
from gitgates.policies.evidence import SKIP, fold, is_strict
from gitgates.store.log import write_ledger


@click.command("skip")
@click.option("--reason", required=True, help="Why no review is needed; the person reads it.")
@for_session
@click.pass_context
def command(context: click.Context, reason: str, session: str | None, agent: str | None) -> int:
    """Say that the change as it is now needs no review, and why.

    It is recorded, and holds until the change is significantly another one. Where an independent
    review is asked for, only a person may say so.

    Exit status 0: it is noted. 64: no reason, no session that could be meant, or not yours to say.
    """
    said = checked_text("--reason", reason)
    desk = open_desk(call_of(context, session, agent))
    strict = is_strict(desk.config.review, map(fold, desk.caller.facts))
    if strict and desk.caller.by_agent:
        raise _not_yours(desk)
    found = desk.survey()
    message = post_message(desk, said, {"how": SKIP, "reason": said})
    by_person = not desk.caller.by_agent
    fact = {
        "what": "marker",
        "how": SKIP,
        "agent": desk.caller.agent,
        "message": message,
        "by_person": by_person,
        **bound_to(found, found.scene.now),
    }
    note_fact(desk, fact)
    _record(desk, {"reason": said, "by_person": by_person, "strict": strict})
    click.echo(f"gitgates: noted that this change needs no review (message {message})")
    warn_of_nothing(found)
    return OK


def _not_yours(desk: Desk) -> UsageError:
    review = desk.config.review
    prompt = f", or begin a prompt with {review.prefix}:stop" if review.prefix else ""
    prompt = "" if review.mode == "require" else prompt
    return UsageError(
        "an independent review is asked for: an agent cannot say that none is needed",
        f"Have `{review.reviewer}` review the change. The person may run this in a terminal "
        f"outside of the agent, with --session {desk.caller.session}{prompt}.",
    )


def _record(desk: Desk, fields: dict[str, object]) -> None:
    known: dict[str, object] = {"session": desk.caller.session, "root": desk.repo.root_abs}
    try:
        write_ledger(desk.repo.shared_state_abs, "review-skip", {**known, **fields})
    except OSError as error:
        path_abs = f"{desk.repo.shared_state_abs}/ledger.jsonl"
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error

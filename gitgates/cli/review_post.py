"""`gitgates review post`: a reviewer posts its decision."""

from __future__ import annotations

from contextlib import contextmanager

import click

from gitgates import environ
from gitgates.agent.tampering import is_another_reviewer, reviewers
from gitgates.agent_types import Point
from gitgates.cli.reviewing import (
    Desk,
    bound_to,
    call_of,
    checked_text,
    for_session,
    note_fact,
    open_desk,
    post_message,
)
from gitgates.errors import BLOCKED, OK, LockError, StateError, UsageError
from gitgates.policies.evidence import COMPLETE, ISSUES, Token, last_seen
from gitgates.policies.tokens import digest_of
from gitgates.record import Record
from gitgates.review.sessions import said_of
from gitgates.store.log import EventLock, session_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT_S = 30.0  # another post with the same token takes a snapshot meanwhile
_UNSEEN = (
    "no command of the agent that was handed the token was seen to post it. Run `gitgates review "
    "post` as a plain command of its own, not from within a script"
)
_ANOTHER = (
    "the reviewer's file has changed since this session began: only ISSUES counts in it. Tell the "
    "person, who can start a session anew, or say `gitgates review skip`"
)


class Said(Record):
    """What is posted."""

    decision: str
    summary: str
    reasoning: str
    message_to_agent: str
    second_opinions: tuple[tuple[str, str], ...]
    token: str

    def fields(self) -> dict[str, object]:
        """Return what others may read of it."""
        return {
            "decision": self.decision,
            "summary": self.summary,
            "reasoning": self.reasoning,
            "message_to_agent": self.message_to_agent,
            "second_opinions": dict(self.second_opinions),
        }


@click.command("post")
@click.option(
    "--decision", required=True, type=click.Choice([COMPLETE, ISSUES], case_sensitive=False)
)
@click.option("--summary", required=True, help="What came of it.")
@click.option("--reasoning", default="", help="How you came to it.")
@click.option("--message-to-agent", default="", help="What has to be fixed. Default: the summary.")
@click.option("--second-opinion", metavar="NAME=TEXT", multiple=True, help="What another one said.")
@click.option("--token", default="", help="That you were handed when you started.")
@for_session
@click.pass_context
def command(
    context: click.Context,
    /,
    session: str | None,
    agent: str | None,
    **said: str | tuple[str, ...],
) -> int:
    """Post your decision on the change: COMPLETE, or ISSUES.

    It counts for the agent that was handed the token, where its own shell command posts it:
    COMPLETE once, and ISSUES again, which takes COMPLETE back. Anybody else's is recorded as a
    claim, also a person's.
    It is of what was there when the reviewer was started, or sent back: what has changed since, it
    may not have seen.

    Exit status 0: it counts. 1: it is recorded, and does not count. 64: nothing is recorded.
    """
    posted = _said(said)
    desk = open_desk(call_of(context, session, agent)._replace(token=posted.token))
    with _turn(desk, posted.token):
        return _post(desk._replace(caller=desk.caller.again()), posted)


@contextmanager
def _turn(desk: Desk, token: str) -> Iterator[None]:
    """Let nobody else post with a token meanwhile, in none of the worktrees.

    Raises: LockError where somebody else takes too long; StateError where there can be no lock.
    """
    journal = session_journal(desk.repo.shared_state_abs, desk.caller.session)
    lock = EventLock(journal, f"post {digest_of(token)}")
    try:
        if token and not lock.acquire(_WAIT_S):
            hint = "Nothing was recorded. Post again when that one has ended."
            raise LockError("another post with this token is under way", hint)
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be locked: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def _post(desk: Desk, posted: Said) -> int:
    """Record what is posted; return the exit status."""
    token, why_not = _weigh_token(desk, posted)
    found = desk.survey()
    now = found.scene.now
    point = (_point_of(desk, token, now) or now) if token else now
    text = f"{posted.decision}: {posted.summary}"
    message = post_message(desk, text, {**posted.fields(), "counts": token is not None})
    fact = {
        "what": "decision",
        "decision": posted.decision,
        "agent": desk.caller.agent,
        "counts": token is not None,
        "digest": token.digest if token else "",
        "message": message,
        **bound_to(found, point),
    }
    note_fact(desk, fact)
    if token is None:
        click.echo(
            f"gitgates: recorded as your own claim (message {message}); it does not count, "
            f"because {why_not}"
        )
        return BLOCKED
    click.echo(f"gitgates: recorded {posted.decision} of the reviewer (message {message})")
    if point.tree != now.tree:
        click.echo(
            "  The change is another one than when you were started: the decision is of that one."
        )
    return OK


def _said(given: dict[str, str | tuple[str, ...]]) -> Said:
    texts = {name: text for name, text in given.items() if isinstance(text, str)}
    decision = texts["decision"].upper()
    summary = checked_text("--summary", texts["summary"])
    to_agent = _optional("--message-to-agent", texts["message_to_agent"])
    return Said(
        decision=decision,
        summary=summary,
        reasoning=_optional("--reasoning", texts["reasoning"]),
        message_to_agent=to_agent or (summary if decision == ISSUES else ""),
        second_opinions=tuple(_opinion(one) for one in given["second_opinion"]),
        token=texts["token"].strip(),
    )


def _optional(option: str, text: str) -> str:
    return checked_text(option, text) if text.strip() else ""


def _opinion(given: str) -> tuple[str, str]:
    name, is_named, text = given.partition("=")
    if not (is_named and name.strip()):
        hint = "For example: --second-opinion codex='nothing found'"
        raise UsageError(f"--second-opinion {given[:40]!r}: expected NAME=TEXT", hint)
    option = "--second-opinion"
    return checked_text(option, name), checked_text(f"{option} {name.strip()[:40]}", text)


def _weigh_token(desk: Desk, posted: Said) -> tuple[Token | None, str]:
    """Return the token that makes a decision count; None, and why, where it does not."""
    caller = desk.caller
    if not posted.token:
        return None, "only the reviewer's own does: it was handed a token for it (--token)"
    digest = digest_of(posted.token)
    found = next((one for one in caller.whole.tokens if one.digest == digest), None)
    if found is None:
        return None, "the token is none of this session"
    if caller.seen_id and caller.agent != found.agent:
        return None, f"it came from the {said_of(caller.agent)}, and the token is another agent's"
    if not caller.is_certain:
        return None, _UNSEEN
    now = reviewers(desk.config.review, desk.repo.root_abs, environ.read())
    if posted.decision == COMPLETE and is_another_reviewer(caller.facts[0], now):
        return None, _ANOTHER
    if found.used and posted.decision == COMPLETE:
        return None, "a decision was posted with this token before: only ISSUES may follow it"
    return found, ""


def _point_of(desk: Desk, token: Token, now: Point) -> Point | None:
    """Return what the reviewer has seen; what has the same content is what is there now."""
    seen = last_seen(desk.caller.facts, token.agent)
    return now if seen and seen.tree == now.tree else seen

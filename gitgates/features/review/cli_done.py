"""`gitgates review done` and `skip`: record reviews, and the reviewer's decisions."""

from __future__ import annotations

import click

from gitgates.core.clean import plain_line, utf8
from gitgates.core.errors import BLOCKED, OK, StateError, UsageError
from gitgates.drivers.shell_commands import digest_of
from gitgates.features.review.cli_session import ReviewSession, verb
from gitgates.features.review.config import settings_of
from gitgates.features.review.facts import (
    COMPLETE,
    ISSUES,
    SKIP,
    DecisionEntry,
    MarkerEntry,
    is_strict,
)
from gitgates.features.review.reviewer import is_another_reviewer, reviewer_files
from gitgates.store.log import write_ledger
from gitgates.verbs.approval import require_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.features.review.config import Review

_LONGEST_BYTES = 64 * 1024  # of one text
_NOT_VISIBLE = (
    "it was not posted by a visible command of the agent that received the token. Run "
    "`gitgates review done` as a separate, plain command, not from a script"
)
_REVIEWER_CHANGED = (
    "the reviewer's definition has changed since this session began, so only ISSUES counts. "
    "Tell the person, who can start a new session or run `gitgates review skip`"
)


@verb("done", "Record a review, or the reviewer's decision.")
@click.option("--summary", help="What you reviewed, and what you found.")
@click.option(
    "--decision",
    type=click.Choice([COMPLETE, ISSUES], case_sensitive=False),
    help="The reviewer's decision, if an independent review is required.",
)
@click.option("--token", default="", help="The token that the reviewer got when it started.")
@click.option("--reasoning", default="", help="The reasoning of a decision.")
@click.option("--message-to-agent", default="", help="What to fix. Default: the summary.")
@click.option("--second-opinion", metavar="NAME=TEXT", multiple=True, help="A second opinion.")
def done(
    session: ReviewSession,
    summary: str | None,
    decision: str | None,
    token: str,
    **more: Any,  # noqa: ANN401 - texts, and a tuple of them
) -> int:
    """Record that you have reviewed the current change.

    The review is valid until there are further significant changes. If an independent review is
    required, only the reviewer's COMPLETE counts; this review is still recorded.

    With --decision, the reviewer posts its decision: COMPLETE, or ISSUES. It counts if it comes
    with the token, in a shell command of the agent that received it. COMPLETE can be posted once; a
    later ISSUES revokes it. Any other decision, including a person's, is recorded as a claim. It
    applies to the content when the reviewer started, or was last blocked from stopping without a
    decision, because it may not have seen later changes.

    Exit status 0: it counts. 1: a decision is recorded, but does not count. 64: nothing is
    recorded.
    """
    text = "" if summary is None and not decision else _checked_text("--summary", summary or "")
    if decision:
        return _post(session, _decision(decision.upper(), text, **more), token.strip())
    if token or any(more.values()):
        raise UsageError("a reviewer must decide", f"Add --decision {COMPLETE} or {ISSUES}.")
    message = _mark(session, text or "reviewed", how="done", summary=text)
    _confirm(session, f"was reviewed (message {message})")
    if session.change.is_strict:
        reviewer = settings_of(session.config).reviewer
        click.echo(f"  An independent review is required: only COMPLETE from `{reviewer}` counts.")
    return OK


def _decision(
    decision: str,
    summary: str,
    *,
    reasoning: str,
    message_to_agent: str,
    second_opinion: tuple[str, ...],
) -> dict[str, Any]:
    to_agent = _checked_text("--message-to-agent", message_to_agent, may_be_empty=True)
    return {
        "decision": decision,
        "summary": summary,
        "reasoning": _checked_text("--reasoning", reasoning, may_be_empty=True),
        "message_to_agent": to_agent or (summary if decision == ISSUES else ""),
        "second_opinions": dict(map(_opinion, second_opinion)),
    }


def _opinion(assignment: str) -> tuple[str, str]:
    option = "--second-opinion"
    name, _equals, text = assignment.partition("=")
    if not (name.strip() and text.strip()):
        hint = f"For example: {option} codex='nothing found'"
        raise UsageError(f"{option} {assignment[:40]!r}: expected NAME=TEXT", hint)
    return _checked_text(option, name), _checked_text(option, text)


@verb("skip", "Record that the change needs no review.")
@click.option("--reason", required=True, help="Why no review is needed, for the person to read.")
@click.option("--token", default="", help="Token from a person: gitgates approve review skip.")
def skip(session: ReviewSession, reason: str, token: str) -> int:
    """Record that the current change needs no review, and why.

    This is valid until there are further significant changes. If an independent review is required,
    only a person may skip it, in a terminal or with a token.

    Exit status 0: recorded. 64: no reason, no matching session, or not allowed.
    """
    text, caller = _checked_text("--reason", reason), session.caller
    strict = is_strict(session.call)
    if strict:
        arguments = f", with --session {caller.session}"
        otherwise = _strict_hint(settings_of(session.config))
        require_person(session.repo, "review skip", token, arguments=arguments, otherwise=otherwise)
    message = _mark(session, text, how=SKIP, reason=text, by_person=strict)
    shared_abs = session.repo.shared_state_abs
    fields: dict[str, object] = {"session": caller.session, "root": session.repo.root_abs}
    fields |= {"reason": text, "by_person": strict or not caller.by_agent, "strict": strict}
    try:
        write_ledger(shared_abs, "review-skip", fields)
    except OSError as error:
        ledger_abs = f"{shared_abs}/ledger.jsonl"
        raise StateError(f"{ledger_abs}: cannot be written: {error.strerror}") from error
    _confirm(session, f"needs no review (message {message})")
    return OK


def _mark(
    session: ReviewSession, text: str, *, how: str, by_person: bool = False, **data: str
) -> str:
    """Record that the change was reviewed, or needs no review; return the message's id."""
    now = session.change.now
    message = session.post(text, {"how": how, **data})
    by_person = by_person or not session.caller.by_agent
    session.note(now, MarkerEntry, how=how, message=message, by_person=by_person)
    return message


def _strict_hint(review: Review) -> str:
    """Return the hint for the case that an independent review is required."""
    prompt = f", or start a prompt with {review.prefix}:stop" if review.prefix else ""
    prompt = "" if review.mode == "require" else prompt
    return f"An independent review is required: have `{review.reviewer}` do it{prompt}. "


def _confirm(session: ReviewSession, what: str) -> None:
    """Print what was recorded; if nothing has changed, that the change may be elsewhere."""
    click.echo(f"gitgates: noted that this change {what}")
    if not session.change.weight.counts:
        root_abs = plain_line(session.repo.root_abs)
        click.echo(
            f"gitgates: nothing relevant has changed in {root_abs} since the session began\n"
            "  If the change is in another worktree, run this there.",
            err=True,
        )


def _checked_text(option: str, text: str, *, may_be_empty: bool = False) -> str:
    """Return a text from the command line, checked for the message log.

    Raises: UsageError if it is empty, or too long.
    """
    cleaned = utf8(text).strip()
    size = len(cleaned.encode())
    if not (cleaned or may_be_empty):
        raise UsageError(f"{option} is empty", "Pass a short text.")
    if size > _LONGEST_BYTES:
        raise UsageError(
            f"{option} has {size} bytes; the maximum is {_LONGEST_BYTES}", "Shorten it."
        )
    return cleaned


def _post(session: ReviewSession, posted: Mapping[str, Any], token: str) -> int:
    """Record a posted decision; return the exit status."""
    decision = posted["decision"]
    why_not = _why_not(session, decision, token)
    point = now = session.change.now
    starting_point = session.evidence.starting_points.get(session.caller.agent)
    # A point with the same content counts as the present.
    if not why_not and starting_point and starting_point.tree not in ("", now.tree):
        point = starting_point
    message = session.post(f"{decision}: {posted['summary']}", {**posted, "counts": not why_not})
    session.note(
        point,
        DecisionEntry,
        decision=decision,
        counts=not why_not,
        digest="" if why_not else digest_of(token),
        message=message,
    )
    if why_not:
        click.echo(
            f"gitgates: recorded as an unverified claim (message {message}); it does not "
            "count, because"
            f" {why_not}"
        )
        return BLOCKED
    click.echo(f"gitgates: recorded the reviewer's {decision} (message {message})")
    if point is not now:
        click.echo(
            "  The change differs from when you were started; the decision applies to the "
            "earlier one."
        )
    return OK


def _why_not(session: ReviewSession, decision: str, token: str) -> str:
    """Return why a decision does not count; empty if it does."""
    caller, evidence, digest = session.caller, session.evidence, digest_of(token)
    if not token:
        return "only the reviewer's own decision counts, with its token (--token)"
    if digest not in evidence.tokens:
        return "the token does not belong to this session"
    if not caller.is_certain:
        return _NOT_VISIBLE
    if caller.agent != evidence.tokens[digest]:
        who = f"agent {caller.agent}" if caller.agent else "main agent"
        return f"it came from the {who}, but the token belongs to another agent"
    if decision == COMPLETE:
        repo = session.repo
        files = reviewer_files(session.config, repo.root_abs, repo.env, caller.host)
        if is_another_reviewer(caller.facts[0], files):
            return _REVIEWER_CHANGED
        if digest in evidence.used:
            return "a decision was already posted with this token; only ISSUES may follow"
    return ""

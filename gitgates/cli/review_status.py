"""`gitgates review status`: what there is to review, and whether it was."""

from __future__ import annotations

import json

import click

from gitgates import environ
from gitgates.cli.reviewing import Desk, call_of, for_session, open_desk
from gitgates.environ import skipped_gates
from gitgates.errors import OK, GitError
from gitgates.lifecycle import ENDING_HOOKS
from gitgates.policies.asking import Standing
from gitgates.policies.change import StopRequest, decide, still_holds
from gitgates.policies.evidence import GATE
from gitgates.policies.session import fold
from gitgates.review.status_text import Status, status_document, status_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.change import Survey
    from gitgates.policies.evidence import Evidence, Marker

_MOST_SHOWN = 3  # markers, as many as are looked at when the agent stops


@click.command("status")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@for_session
@click.pass_context
def command(context: click.Context, fmt: str, session: str | None, agent: str | None) -> int:
    """Show what there is to review, whether it was, and what becomes of a stop now.

    Each file of the change has its weight and the reason for it; each review, whether it still
    holds. A decision that does not come from the reviewer is a claim.
    """
    status = _look(open_desk(call_of(context, session, agent)._replace(any_agent=True)))
    if fmt == "json":
        click.echo(json.dumps(status_document(status), indent=2))
    else:
        click.echo(status_text(status), nl=False)
    return OK


def _look(desk: Desk) -> Status:
    found = desk.survey()
    scene, review, evidence = found.scene, desk.config.review, desk.caller.evidence
    decided = decide(scene, evidence, _request(desk, strict=found.strict))
    newest = tuple(reversed(evidence.markers))
    standings = tuple(_standing(found, one) for one in newest[:_MOST_SHOWN])
    return Status(
        session=desk.caller.session,
        root_abs=desk.repo.root_abs,
        mode=review.mode,
        strict=found.strict,
        by_prompt=desk.caller.whole.strict,
        reviewer=review.reviewer,
        base=scene.base,
        base_is_known=found.base_is_known,
        now=scene.now,
        change=decided.found.change,
        ruling=decided.ruling,
        not_asked=_not_asked(desk, strict=found.strict),
        standings=standings,
        older=max(0, len(newest) - _MOST_SHOWN),
        decisions=tuple(reversed(evidence.decisions)),
        decision_holds=_last_holds(found, evidence),
        notes=found.notes,
    )


def _standing(found: Survey, marker: Marker) -> Standing:
    try:
        holds, why = still_holds(found.scene, marker.point, marker.patch, strict=found.strict)
    except GitError as error:
        holds, why = False, f"it cannot be compared: {error.message}"
    return Standing(marker, holds, why)


def _last_holds(found: Survey, evidence: Evidence) -> bool:
    """Tell whether the reviewer's last decision is of what is there now."""
    counted = [one for one in evidence.decisions if one.counts]
    if not counted:
        return False
    try:
        return still_holds(found.scene, counted[-1].point, counted[-1].patch, strict=True)[0]
    except GitError:
        return False


def _request(desk: Desk, *, strict: bool) -> StopRequest:
    """Return what the agent would ask if it stopped now."""
    here, *others = map(fold, desk.caller.facts)
    in_prompt = here.blocks(here.prompt) + sum(one.blocks(one.prompt) for one in others)
    return StopRequest(
        strict=strict,
        session=desk.caller.session,
        prompt=here.prompt,
        blocks=(in_prompt, here.blocks() + sum(one.blocks() for one in others)),
        limits=desk.config.breaker,
        transcript_abs=desk.caller.whole.transcript_abs,
    )


def _not_asked(desk: Desk, *, strict: bool) -> str:
    """Return why nobody asks for a review; empty where the gate does."""
    asked = any(GATE in hook.gates for hook in desk.config.hooks if hook.name in ENDING_HOOKS)
    if not asked:
        return "no hook lists the gate `review`"
    skips = skipped_gates(environ.read())
    if GATE in skips and not desk.config.review.required:
        return f"{skips[GATE]} skips it here"
    return "the mode is off" if desk.config.review.mode == "off" and not strict else ""

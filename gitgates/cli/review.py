"""`gitgates review`: what is to be reviewed, and what was said of it."""

from __future__ import annotations

import json

import click

from gitgates import environ
from gitgates.clean import visible_line
from gitgates.cli.output import dump
from gitgates.cli.review_post import done, post, skip
from gitgates.cli.review_session import ReviewGroup, ReviewSession, verb
from gitgates.errors import OK, GitError, UsageError
from gitgates.git.changes import changes, diff_text
from gitgates.lifecycle import ENDING_HOOKS
from gitgates.policies.asking import Standing
from gitgates.policies.change import Scene, StopRequest, Survey, assess, decide, still_holds
from gitgates.policies.evidence import GATE, Evidence, Marker
from gitgates.policies.session import fold
from gitgates.review.status_text import (
    Status,
    left_out_text,
    requests_text,
    status_document,
    status_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config
    from gitgates.weakening.finding import Weakening

_MOST_SHOWN = 3  # markers, as many as are looked at when the agent stops
_NOT_WEAKENED = "nothing that weakens the checks was found"
_format = click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")


@verb("status", "Show what there is to review, and whether it was.", reads=True)
@_format
def status(session: ReviewSession, fmt: str) -> int:
    """Show what there is to review, whether it was, and what becomes of a stop now.

    Each file of the change has its weight and the reason for it; each review, whether it still
    holds. A decision that does not come from the reviewer is a claim.
    """
    found = _status(session)
    if fmt == "json":
        click.echo(json.dumps(status_document(found), indent=2))
    else:
        click.echo(status_text(found), nl=False)
    return OK


def _status(session: ReviewSession) -> Status:
    found = session.survey()
    scene, review, evidence = found.scene, session.config.review, session.caller.evidence
    decided = decide(scene, evidence, _request(session, strict=found.strict))
    newest = tuple(reversed(evidence.markers))
    return Status(
        session=session.caller.session,
        root_abs=session.repo.root_abs,
        mode=review.mode,
        strict=found.strict,
        by_prompt=session.caller.whole.strict,
        reviewer=review.reviewer,
        base=scene.base,
        base_is_known=found.base_is_known,
        now=scene.now,
        change=decided.found.change,
        ruling=decided.ruling,
        not_asked=_not_asked(session.config, strict=found.strict),
        standings=tuple(_standing(found, one) for one in newest[:_MOST_SHOWN]),
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


def _request(session: ReviewSession, *, strict: bool) -> StopRequest:
    """Return what the agent would ask if it stopped now."""
    here_, *others = map(fold, session.caller.facts)
    in_prompt = here_.blocks(here_.prompt) + sum(one.blocks(one.prompt) for one in others)
    return StopRequest(
        strict=strict,
        session=session.caller.session,
        prompt=here_.prompt,
        blocks=(in_prompt, here_.blocks() + sum(one.blocks() for one in others)),
        limits=session.config.breaker,
        transcript_abs=session.caller.whole.transcript_abs,
    )


def _not_asked(config: Config, *, strict: bool) -> str:
    """Return why nobody asks for a review; empty where the gate does."""
    if not any(GATE in hook.gates for hook in config.hooks if hook.name in ENDING_HOOKS):
        return "no hook lists the gate `review`"
    skips = environ.skipped_gates(environ.read())
    if GATE in skips and not config.review.required:
        return f"{skips[GATE]} skips it here"
    return "the mode is off" if config.review.mode == "off" and not strict else ""


@verb("diff", "Show the change that is to be reviewed.", reads=True)
@click.option("--all", "everything", is_flag=True, help="Also what does not count.")
def diff(session: ReviewSession, *, everything: bool) -> int:
    """Show what the session has changed and somebody has to read, as a diff.

    Left out, and said on standard error: generated files, renames, white space, what came from
    others by a merge or a pull, and what others are known to have changed meanwhile.
    """
    found = session.survey()
    paths, left_out = _paths(found.scene, everything=everything)
    dump(diff_text(found.scene.since(found.scene.base), paths) if paths else b"")
    notes = (*found.notes, left_out) if left_out else found.notes
    for note in notes or (() if paths else ("nothing has changed",)):
        click.echo(f"gitgates: {note}", err=True)
    return OK


def _paths(scene: Scene, *, everything: bool) -> tuple[tuple[str, ...], str]:
    """Return the files to show, and what is to be said of the others."""
    changed = tuple(one.path for one in changes(scene.since(scene.base)))
    if everything:
        return changed, ""
    weighed = assess(scene, Evidence(), strict=False).change.files
    counted = {one.path for one in weighed if one.counts}
    whys = tuple((one.path, one.why) for one in weighed if not one.counts)
    return tuple(path for path in changed if path in counted), left_out_text(whys)


@verb("request", "Show what the person asked for, word for word.", reads=True)
def request(session: ReviewSession) -> int:
    """Show the person's prompts of this session, word for word."""
    requests = session.caller.whole.requests
    if not requests:
        click.echo("gitgates: no prompt of this session was heard of", err=True)
    click.echo(requests_text(requests), nl=False)
    return OK


@verb("weakened", "Show what weakens the checks.")
@_format
def weakened(session: ReviewSession, fmt: str) -> int:
    """Show what in the change weakens the checks.

    Tests that are gone or skipped, assertions that are, warnings suppressed, rules and gates
    relaxed, CI that lets more pass, hooks that are bypassed. Each may have its reason; a reviewer
    should ask for it. An agent that is not the configured reviewer is refused.
    """
    from gitgates.engine.hooks import matches_agent
    from gitgates.weakening.session import weakened as find

    reviewer, caller = session.config.review.reviewer, session.caller
    if caller.by_agent and not matches_agent((reviewer,), caller.agent_type):
        # The worker is not to learn what is looked for.
        raise UsageError(
            "this is for the reviewer, who is to look at a change without having made it",
            f"A sub-agent of the type `{reviewer}` may run it, or a person in another terminal.",
        )
    found = session.survey()
    findings = find(found.scene.since(found.scene.base), session.config)
    if fmt == "json":
        listed = [one._asdict() for one in findings]
        click.echo(json.dumps({"version": 1, "findings": listed}, indent=2))
        return OK
    click.echo(_weakened_text(findings), nl=False)
    for note in found.notes:
        click.echo(f"gitgates: {note}", err=True)
    return OK


def _weakened_text(findings: tuple[Weakening, ...]) -> str:
    if not findings:
        return f"{_NOT_WEAKENED}\n"
    by_path: dict[str, list[str]] = {}
    for one in findings:
        where = f"{one.line}: " if one.line else ""
        line = f"  {where}{one.what}: {visible_line(one.detail)}"
        by_path.setdefault(one.path, []).append(line)
    lines = [line for path, own in by_path.items() for line in (visible_line(path), *own)]
    total = f"{_count(len(findings), 'finding')} in {_count(len(by_path), 'file')}"
    return "\n".join([*lines, "", total]) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@verb("opinions", "Ask others for a second opinion.")
@_format
def opinions(session: ReviewSession, fmt: str) -> int:
    """Ask each command of `second_opinions` what it thinks of the change, all at once.

    Each gets, on its standard input and in the file GITGATES_REVIEW_FILE, what the person asked for
    and the change as a diff. This may take as long as `opinion_timeout` says. Each answer is shown
    and kept in the message log as soon as it has come.

    Exit status 0: at least one has answered, or there is nothing to ask. 1: none has.
    """
    from gitgates.cli.review_opinions import ask_all

    return ask_all(session, fmt)


@click.group("review", cls=ReviewGroup)
def command() -> None:
    """Show what is to be reviewed, and note what was said of it (without a command: status).

    A command means the session whose agent runs it; in a terminal of your own, the only session
    that has been in this worktree, or the one that --session names.
    """


for _one in (status, diff, request, weakened, opinions, done, skip, post):
    command.add_command(_one)

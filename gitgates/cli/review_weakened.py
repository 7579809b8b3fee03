"""`gitgates review weakened`: what weakens the checks, for the reviewer and for people."""

from __future__ import annotations

import json

import click

from gitgates.clean import visible_line
from gitgates.cli.reviewing import call_of, for_session, open_desk
from gitgates.engine.hooks import names_agent
from gitgates.errors import OK, UsageError
from gitgates.weakening.session import weakened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.cli.reviewing import Desk
    from gitgates.weakening.finding import Finding

_VERSION = 1
_NONE = "nothing that weakens the checks was found"


@click.command("weakened")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@for_session
@click.pass_context
def command(context: click.Context, fmt: str, session: str | None, agent: str | None) -> int:
    """Show what in the change weakens the checks.

    Tests that are gone or skipped, assertions that are, warnings suppressed, rules and gates
    relaxed, CI that lets more pass, hooks that are bypassed. Each may have its reason; a reviewer
    should ask for it. An agent that is not the configured reviewer is refused.
    """
    desk = open_desk(call_of(context, session, agent)._replace(any_of_type=True))
    _refuse_others(desk)
    found = desk.survey()
    scene = found.scene
    findings = weakened(scene.since(scene.base), desk.config)
    if fmt == "json":
        listed = [one._asdict() for one in findings]
        click.echo(json.dumps({"version": _VERSION, "findings": listed}, indent=2))
    else:
        click.echo(_text(findings), nl=False)
        for note in found.notes:
            click.echo(f"gitgates: {note}", err=True)
    return OK


def _refuse_others(desk: Desk) -> None:
    """Let a worker not learn what is looked for.

    Raises: UsageError where an agent runs this that is not of the reviewer's type.
    """
    reviewer = desk.config.review.reviewer
    if desk.caller.by_agent and not names_agent((reviewer,), desk.caller.agent_type):
        raise UsageError(
            "this is for the reviewer, who is to look at a change without having made it",
            f"A sub-agent of the type `{reviewer}` may run it, or a person in another terminal.",
        )


def _text(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return f"{_NONE}\n"
    lines: list[str] = []
    path = None
    for one in findings:
        if one.path != path:
            path = one.path
            lines.append(visible_line(path))
        where = f"{one.line}: " if one.line else ""
        lines.append(f"  {where}{one.what}: {visible_line(one.detail)}")
    files = len({one.path for one in findings})
    lines += ["", f"{_count(len(findings), 'finding')} in {_count(files, 'file')}"]
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""`gitgates review diff`: the change that is to be reviewed, and nothing else."""

from __future__ import annotations

import click

from gitgates.cli.output import dump
from gitgates.cli.reviewing import call_of, for_session, open_desk
from gitgates.errors import OK
from gitgates.git.changes import changes, diff_text
from gitgates.policies.change import assess
from gitgates.review.status_text import left_out_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.change import Scene


@click.command("diff")
@click.option("--all", "everything", is_flag=True, help="Also what does not count.")
@for_session
@click.pass_context
def command(
    context: click.Context,
    everything: bool,  # noqa: FBT001 - click's
    session: str | None,
    agent: str | None,
) -> int:
    """Show what the session has changed and somebody has to read, as a diff.

    Left out, and said on standard error: generated files, renames, white space, what came from
    others by a merge or a pull, and what others are known to have changed meanwhile.
    """
    desk = open_desk(call_of(context, session, agent)._replace(any_agent=True))
    found = desk.survey()
    paths, left_out = _choose(found.scene, everything=everything)
    diff = diff_text(found.scene.since(found.scene.base), paths) if paths else b""
    dump(diff)
    notes = (*found.notes, left_out) if left_out else found.notes
    for note in notes or (() if paths else ("nothing has changed",)):
        click.echo(f"gitgates: {note}", err=True)
    return OK


def _choose(scene: Scene, *, everything: bool) -> tuple[tuple[str, ...], str]:
    """Return the files to show, and what is to be said of the others."""
    span = scene.since(scene.base)
    changed = tuple(one.path for one in changes(span))
    if everything:
        return changed, ""
    from gitgates.policies.evidence import Evidence

    weighed = assess(scene, Evidence(), strict=False).change.files
    counted = {one.path for one in weighed if one.counts}
    whys = tuple((one.path, one.why) for one in weighed if not one.counts)
    return tuple(path for path in changed if path in counted), left_out_text(whys)

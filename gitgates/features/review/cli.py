"""`gitgates review`: the change to review, and its reviews."""

from __future__ import annotations

import click

from gitgates.core.clean import first_few, plain_line, visible
from gitgates.core.errors import OK
from gitgates.features.review.cli_done import done, skip
from gitgates.features.review.cli_session import ReviewGroup, ReviewSession, verb
from gitgates.features.review.cli_status import status
from gitgates.features.review.weakened import weakened_lines
from gitgates.git.diff import diff_text
from gitgates.verbs.output import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.review.significance import Weighed
    from gitgates.features.review.weakened import Weakening

_NAMED = 4  # omitted files per reason
_LONGEST_PATH = 300


@verb("diff", "Show the change to review, and what was asked for.", reads=True)
@click.option("--all", "everything", is_flag=True, help="Include files that do not count.")
@click.option("--opinions", is_flag=True, help="Ask the commands of `second_opinions` about it.")
def diff(session: ReviewSession, *, everything: bool, opinions: bool) -> int:
    """Show what to review: the person's prompts, what weakens the checks, and the change.

    The prompts are shown word for word, this session's change as a diff. Generated files,
    renames, white space, and changes by others are left out, and listed on standard error.

    With --opinions, each command of `second_opinions` gets all of this on standard input, and in
    the file GITGATES_REVIEW_FILE; its answer is shown, and stored in the message log, as it
    arrives. They run in parallel, each for at most `opinion_timeout`.

    Exit status 0. 1: opinions were asked for, but nobody answered.
    """
    change = session.change
    files, notes = change.weight.files, [*change.notes]
    paths = [file.path for file in files if everything or file.counts]
    patch = diff_text(change.whole, paths) if paths else b""
    text = change_text(session.requests, change.weakened)
    if opinions:
        from gitgates.features.review.cli_opinions import ask_all  # rarely needed

        return ask_all(session, text, patch)
    if paths:
        dump(text.encode("utf-8", "replace") + patch)
    if left_out := [file for file in files if not (everything or file.counts)]:
        notes.append(_left_out(left_out))
    for note in notes or (() if paths else ("nothing has changed",)):
        click.echo(f"gitgates: {note}", err=True)
    return OK


def change_text(requests: tuple[str, ...], weakened: tuple[Weakening, ...]) -> str:
    """Return the text before a change's diff. Prompts are indented, so none becomes a heading."""
    parts = ["# What the person asked for, word for word", ""]
    for number, request in enumerate(requests, start=1):
        lines = visible(request).splitlines() or [""]
        parts += [f"{number}.", *(f"    {line}".rstrip() for line in lines), ""]
    if not requests:
        parts += ["Their prompts are not recorded. Judge the change by itself.", ""]
    if weakened:
        parts += ["# What weakens the checks", "", *weakened_lines(weakened), ""]
    return "\n".join([*parts, "# The change", "", ""])


def _left_out(files: list[Weighed]) -> str:
    """Return the files left out of a diff, with the reasons, on one line."""
    by_why: dict[str, list[str]] = {}
    for file in files:
        paths = by_why.setdefault(file.why.removeprefix("left out: "), [])
        paths.append(plain_line(file.path, _LONGEST_PATH))
    parts = [f"{first_few(paths, _NAMED)} ({plain_line(why)})" for why, paths in by_why.items()]
    return f"left out: {'; '.join(parts)}. To show them: --all"


@click.group("review", cls=ReviewGroup)
def command() -> None:
    """Show what to review, and record reviews (without a command: status).

    A command applies to the session of the agent that runs it; in your own terminal, to the only
    session in this worktree, or to the one given by --session.
    """


for _verb in (status, diff, done, skip):
    command.add_command(_verb)

"""`gitgates review`: the change to review, and its reviews."""

from __future__ import annotations

import click

from gitgates.core.clean import first_few, plain_line, visible, visible_line
from gitgates.core.errors import OK, UsageError
from gitgates.features.review.cli_post import done, post, skip
from gitgates.features.review.cli_session import ReviewGroup, ReviewSession, verb
from gitgates.features.review.cli_status import status
from gitgates.features.review.config import settings_of
from gitgates.git.diff import diff_text
from gitgates.verbs.output import dump, format_option, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.review.significance import Weighed
    from gitgates.features.review.weakening.finding import Weakening

_NAMED = 4  # files that are left out, of each kind
_LONGEST_PATH = 300
_NOT_WEAKENED = "nothing found that weakens the checks"


@verb("diff", "Show the change to review.", reads=True)
@click.option("--all", "everything", is_flag=True, help="Include files that do not count.")
def diff(session: ReviewSession, *, everything: bool) -> int:
    """Show the changes of the session that must be reviewed, as a diff.

    Generated files, renames, white space, changes by others from a merge or a pull, and concurrent
    changes that are known to be by others are left out, and listed on standard error.
    """
    change = session.change
    files, notes = change.weight.files, [*change.notes]
    paths = tuple(file.path for file in files if everything or file.counts)
    dump(diff_text(change.whole, paths) if paths else b"")
    if left_out := [file for file in files if not (everything or file.counts)]:
        notes.append(_left_out(left_out))
    for note in notes or (() if paths else ("nothing has changed",)):
        click.echo(f"gitgates: {note}", err=True)
    return OK


@verb("request", "Show the person's prompts verbatim.", reads=True)
def request(session: ReviewSession) -> int:
    """Show the person's prompts of this session, word for word."""
    requests = session.requests
    if not requests:
        click.echo("gitgates: no prompt of this session is recorded", err=True)
    click.echo(requests_text(requests), nl=False)
    return OK


def requests_text(requests: tuple[str, ...]) -> str:
    """Return numbered prompts, verbatim, each line indented, so none looks like a heading."""
    parts = []
    for number, text in enumerate(requests, 1):
        lines = visible(text).splitlines() or [""]
        body = "".join(f"    {line}".rstrip() + "\n" for line in lines)
        parts.append(f"Request {number} of {len(requests)}:\n{body}")
    return "\n".join(parts)


def _left_out(files: list[Weighed]) -> str:
    """Return which files are left out of a diff, and why, on one line."""
    by_why: dict[str, list[str]] = {}
    for file in files:
        paths = by_why.setdefault(file.why.removeprefix("left out: "), [])
        paths.append(plain_line(file.path, _LONGEST_PATH))
    parts = []
    for why, paths in by_why.items():
        parts.append(f"{first_few(paths, _NAMED)} ({plain_line(why)})")
    return f"left out: {'; '.join(parts)}. To show them: --all"


@verb("weakened", "Show changes that weaken the checks.")
@format_option
def weakened(session: ReviewSession, fmt: str) -> int:
    """Show what in the change weakens the checks.

    This includes removed or skipped tests, removed assertions, suppressed warnings, relaxed rules
    and gates, a less strict CI, and bypassed hooks. There may be a good reason for each; a reviewer
    should ask for it. Only a person and the configured reviewer may run this command.
    """
    from gitgates.engine.hooks import matches_agent
    from gitgates.features.review.weakening.session import weakened as find

    reviewer, caller = settings_of(session.config).reviewer, session.caller
    if caller.by_agent and not matches_agent((reviewer,), caller.agent_type):
        # The agent that did the work must not learn what to hide.
        raise UsageError(
            "this is only for the reviewer, who must not have made the change",
            f"A sub-agent of type `{reviewer}` can run it, or a person in another terminal.",
        )
    findings = find(session.change.whole, session.config)
    if fmt == "json":
        documents = [finding._asdict() for finding in findings]
        print_json({"version": 1, "findings": documents})
        return OK
    click.echo(_weakened_text(findings), nl=False)
    for note in session.change.notes:
        click.echo(f"gitgates: {note}", err=True)
    return OK


def _weakened_text(findings: tuple[Weakening, ...]) -> str:
    if not findings:
        return f"{_NOT_WEAKENED}\n"
    by_path: dict[str, list[str]] = {}
    for finding in findings:
        location = f"{finding.line}: " if finding.line else ""
        line = f"  {location}{finding.what}: {visible_line(finding.detail)}"
        by_path.setdefault(finding.path, []).append(line)
    lines = [line for path, details in by_path.items() for line in (visible_line(path), *details)]
    total = f"{_count(len(findings), 'finding')} in {_count(len(by_path), 'file')}"
    return "\n".join([*lines, "", total]) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@verb("opinions", "Ask configured commands for a second opinion.")
@format_option
def opinions(session: ReviewSession, fmt: str) -> int:
    """Ask all commands of `second_opinions` for their opinion of the change, in parallel.

    Each gets the person's prompts and the change as a diff, on standard input and in the file
    GITGATES_REVIEW_FILE. The time limit is `opinion_timeout`. Each answer is shown and stored in
    the message log as soon as it arrives.

    Exit status 0: at least one answered, or nothing to ask. 1: none answered.
    """
    from gitgates.features.review.cli_opinions import ask_all

    return ask_all(session, fmt)


@click.group("review", cls=ReviewGroup)
def command() -> None:
    """Show what to review, and record reviews (without a command: status).

    A command applies to the session of the agent that runs it; in your own terminal, to the only
    session in this worktree, or to the one given by --session.
    """


for _verb in (status, diff, request, weakened, opinions, done, skip, post):
    command.add_command(_verb)

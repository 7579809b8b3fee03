"""`gitgates review opinions`: ask the configured commands what they think of the change."""

from __future__ import annotations

import json

import click

from gitgates import environ
from gitgates.clean import visible_line
from gitgates.cli.repository import post_message
from gitgates.cli.reviewing import call_of, for_session, open_desk
from gitgates.errors import BLOCKED, OK, GitgatesError, Interrupted
from gitgates.git.changes import diff_text
from gitgates.policies.change import assess
from gitgates.policies.evidence import Evidence
from gitgates.review import opinions
from gitgates.store.messages import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.cli.reviewing import Desk
    from gitgates.policies.change import Survey
    from gitgates.review.opinions import Opinion

_VERSION = 1
_NONE = (
    "no second opinions are configured\n"
    '  Name commands in [tool.gitgates.review]: second_opinions = ["codex exec -"]'
)
_TAIL = 10  # lines of what failed


@click.command("opinions")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@for_session
@click.pass_context
def command(context: click.Context, fmt: str, session: str | None, agent: str | None) -> int:
    """Ask each command of `second_opinions` what it thinks of the change, all at once.

    Each gets, on its standard input and in the file GITGATES_REVIEW_FILE, what the person asked for
    and the change as a diff. This may take as long as `opinion_timeout` says. Each answer is shown
    and kept in the message log as soon as it has come.

    Exit status 0: at least one has answered, or there is nothing to ask. 1: none has.
    """
    desk = open_desk(call_of(context, session, agent)._replace(any_of_type=True))
    commands = desk.config.review.second_opinions
    found = desk.survey() if commands else None
    diff = _diff(found) if found else b""
    if not diff:
        return _nothing(fmt, "nothing has changed that counts" if commands else _NONE)
    names = ", ".join(opinions.names_of(commands))
    topic = _topic(desk)
    click.echo(
        f"gitgates: asking {names}, for at most "
        f"{desk.config.review.opinion_timeout_s:g} s\n"
        f"  Each answer is kept at once, and shown by: gitgates journal read {topic}",
        err=True,
    )
    place = opinions.Place(desk.repo, desk.git, environ.read(), desk.config)
    told = _Told(desk, fmt)
    question = opinions.prompt(desk.caller.whole.requests, diff)
    try:
        opinions.ask(place, commands, question, told.hear)
    except Interrupted as error:
        told.show()
        raise error.with_notes([f"What has come is kept: gitgates journal read {topic}"]) from error
    return told.finish()


def _topic(desk: Desk) -> str:
    return f"review/{desk.caller.session}/opinions"


def _diff(found: Survey) -> bytes:
    """Return the change that is to be reviewed."""
    change = assess(found.scene, Evidence(), strict=False).change
    paths = tuple(one.path for one in change.files if one.counts)
    return diff_text(found.scene.since(found.scene.base), paths) if paths else b""


def _nothing(fmt: str, why: str) -> int:
    if fmt == "json":
        click.echo(json.dumps({"version": _VERSION, "opinions": []}, indent=2))
        click.echo(f"gitgates: {why}", err=True)
    else:
        click.echo(why)
    return OK


class _Told:
    """What has been said so far: kept and shown, each as it comes."""

    def __init__(self, desk: Desk, fmt: str) -> None:
        self._desk, self._fmt = desk, fmt
        self._told: list[tuple[Opinion, str]] = []
        self._trouble: GitgatesError | None = None

    def hear(self, one: Opinion) -> None:
        """Keep an opinion, and show it."""
        message = ""
        try:
            message = _post(self._desk, one)
        except GitgatesError as error:
            self._trouble = error  # what was said is not to be lost for that
        if self._fmt == "text":
            click.echo(("\n" if self._told else "") + _text(one, message), nl=False)
        self._told.append((one, message))

    def show(self) -> None:
        """Show all of it as a document, in the order of the configuration."""
        if self._fmt == "json":
            names = opinions.names_of(self._desk.config.review.second_opinions)
            told = sorted(self._told, key=lambda each: names.index(each[0].name))
            listed = [{**_fields(one), "message": message} for one, message in told]
            click.echo(json.dumps({"version": _VERSION, "opinions": listed}, indent=2))

    def finish(self) -> int:
        """Show it, and return the exit status.

        Raises: GitgatesError where something could not be kept.
        """
        self.show()
        if self._trouble:
            raise self._trouble
        return OK if any(one.answered for one, _ in self._told) else BLOCKED


def _text(one: Opinion, message: str = "") -> str:
    decision = f": {one.decision}" if one.decision else ""
    kept = f" (message {message})" if message else ""
    if one.answered:
        return f"== {visible_line(one.name)}{decision}{kept} ==\n{one.text}\n"
    tail = "".join(f"  {line}\n" for line in one.text.splitlines()[-_TAIL:])
    log = f"  all of its output: {one.log_abs}\n" if one.log_abs else ""
    return f"== {visible_line(one.name)}: no opinion, {one.reason}{kept} ==\n{tail}{log}"


def _fields(one: Opinion) -> dict[str, Any]:
    return {**one._asdict(), "duration_s": round(one.duration_s, 3)}


def _post(desk: Desk, one: Opinion) -> str:
    caller = desk.caller
    draft = Message(
        topic=_topic(desk),
        text=_text(one),
        session=caller.session,
        agent=caller.agent,
        data=_fields(one),
    )
    return post_message(desk.repo, draft)

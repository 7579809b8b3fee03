"""`gitgates review opinions`: what the configured commands think of the change, as it comes."""

from __future__ import annotations

import json

import click

from gitgates import environ
from gitgates.clean import visible_line
from gitgates.errors import BLOCKED, OK, GitgatesError, Interrupted
from gitgates.git.changes import diff_text
from gitgates.policies.change import assess
from gitgates.policies.evidence import Evidence
from gitgates.review import opinions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.cli.review_session import ReviewSession
    from gitgates.policies.change import Survey
    from gitgates.review.opinions import Opinion

_VERSION = 1
_NONE = (
    "no second opinions are configured\n"
    '  Name commands in [tool.gitgates.review]: second_opinions = ["codex exec -"]'
)
_TOPIC = "/opinions"
_TAIL = 10  # lines of what failed


def ask_all(session: ReviewSession, fmt: str) -> int:
    """Ask each command of `second_opinions`; return the exit status."""
    review = session.config.review
    commands = review.second_opinions
    found = session.survey() if commands else None
    diff = _diff(found) if found else b""
    if not diff:
        return _nothing(fmt, "nothing has changed that counts" if commands else _NONE)
    topic = f"review/{session.caller.session}{_TOPIC}"
    click.echo(
        f"gitgates: asking {', '.join(opinions.names_of(commands))}, for at most "
        f"{review.opinion_timeout_s:g} s\n"
        f"  Each answer is kept at once, and shown by: gitgates journal read {topic}",
        err=True,
    )
    told = _Told(session, fmt)
    question = opinions.prompt(session.caller.whole.requests, diff)
    try:
        opinions.ask(session.repo, session.config, environ.read(), question, hear=told.hear)
    except Interrupted as error:
        told.show()
        raise error.with_notes([f"What has come is kept: gitgates journal read {topic}"]) from error
    return told.finish()


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

    def __init__(self, session: ReviewSession, fmt: str) -> None:
        self._session, self._fmt = session, fmt
        self._told: list[tuple[Opinion, str]] = []
        self._trouble: GitgatesError | None = None

    def hear(self, one: Opinion) -> None:
        """Keep an opinion, and show it."""
        message = ""
        try:
            message = self._session.post(_text(one), _fields(one), topic=_TOPIC)
        except GitgatesError as error:
            self._trouble = error  # what was said is not to be lost for that
        if self._fmt == "text":
            click.echo(("\n" if self._told else "") + _text(one, message), nl=False)
        self._told.append((one, message))

    def show(self) -> None:
        """Show all of it as a document, in the order of the configuration."""
        if self._fmt == "json":
            names = opinions.names_of(self._session.config.review.second_opinions)
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

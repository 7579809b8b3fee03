"""What the verbs of `gitgates review` begin with: where they are, and whom they speak for."""

from __future__ import annotations

import click

from gitgates import environ
from gitgates.clean import plain_line, utf8
from gitgates.cli import ARGUMENTS, repository
from gitgates.cli.repository import configuration, current_repo
from gitgates.errors import GitError, StateError, UsageError
from gitgates.git.changes import patch_id
from gitgates.policies.change import Survey, assess, survey
from gitgates.policies.evidence import Evidence
from gitgates.record import Record
from gitgates.review.caller import Call, Caller, find_caller
from gitgates.review.opinions import is_asking
from gitgates.store.log import git_dir_of
from gitgates.store.messages import Message
from gitgates.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from gitgates.agent_types import Point
    from gitgates.git.repo import Git, Repo
    from gitgates.policies.evidence import Fact

    _Verb = TypeVar("_Verb", bound=Callable[..., Any])
else:
    from gitgates.git.repo import Git, Repo

LONGEST_BYTES = 64 * 1024


class Desk(Record):
    """Where a verb works, and for whom."""

    repo: Repo
    git: Git
    config: Config
    caller: Caller

    def survey(self) -> Survey:
        """Look at the change as it is now."""
        caller = self.caller
        others = zip(caller.journals[1:], caller.facts[1:], strict=True)
        return survey(
            self.repo,
            self.config,
            caller.facts,
            elsewhere={git_dir_of(one.path_abs): facts for one, facts in others},
            evidence=caller.evidence,
            transcript_abs=caller.whole.transcript_abs,
        )


def for_session(verb: _Verb) -> _Verb:
    """Add the options that name whom a verb speaks for."""
    session = click.option(
        "--session", metavar="ID", help="The agent's session. Default: the one that runs this."
    )
    agent = click.option("--agent", metavar="ID", help="A sub-agent of it.")
    return session(agent(verb))


def open_desk(call: Call) -> Desk:
    """Return where a verb works, and for whom.

    Raises: ConfigError, GitError; UsageError where nobody, or more than one, could be meant, and
    where a second opinion is about to do more than read what all agents may.
    """
    repo = current_repo()
    env = environ.read()
    if not call.any_agent and is_asking(repo, env):
        raise UsageError(
            "opinions are being asked for, and this is one of them: it may only read",
            "Say what you think of the change yourself, on your standard output.",
        )
    config = configuration(repo)
    return Desk(repo, repo.git, config, find_caller(repo, env, call))


def call_of(context: click.Context, session: str | None = None, agent: str | None = None) -> Call:
    """Return how we were called, word for word, and whom that names."""
    argv = ("gitgates", *context.meta[ARGUMENTS])
    return Call(argv=argv, session=session or "", agent=agent or "")


def checked_text(option: str, text: str) -> str:
    """Return a text of the command line as it can be kept.

    Raises: UsageError where it is empty, or too long.
    """
    kept = utf8(text).strip()
    size = len(kept.encode())
    if not kept:
        raise UsageError(f"{option} is empty", "Say something, in a few words.")
    if size > LONGEST_BYTES:
        raise UsageError(f"{option} has {size} bytes, and may have {LONGEST_BYTES}", "Shorten it.")
    return kept


def post_message(desk: Desk, text: str, data: Mapping[str, object]) -> str:
    """Write into the message log what is said of a review; return the message's id."""
    caller = desk.caller
    draft = Message(
        topic=f"review/{caller.session}",
        text=text,
        session=caller.session,
        agent=caller.agent,
        data=data,
    )
    return repository.post_message(desk.repo, draft)


def note_fact(desk: Desk, fact: Fact) -> None:
    """Write into the session's journal of this worktree.

    Raises: StateError where that is not possible.
    """
    journal = desk.caller.journals[0]
    try:
        journal.append(fact)
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error


def bound_to(found: Survey, point: Point) -> dict[str, object]:
    """Return the fields of a fact that say what a review is of."""
    span = found.scene.since(found.scene.base)._replace(now=point)
    try:
        patch = patch_id(span)
    except GitError:
        patch = ""  # the beginning is gone: it holds for the content alone
    return {"tree": point.tree, "head": point.head, "patch": patch}


def warn_of_nothing(found: Survey) -> None:
    """Say where nothing has changed that could be reviewed: the change may be elsewhere."""
    change = assess(found.scene, Evidence(), strict=True).change
    if not change.counts:
        root_abs = plain_line(found.scene.repo.root_abs)
        click.echo(
            f"gitgates: nothing that counts has changed in {root_abs} since the session began\n"
            "  If the change is in another worktree, run this there.",
            err=True,
        )

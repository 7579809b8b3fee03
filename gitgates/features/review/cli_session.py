"""What the verbs of `gitgates review` share: their group, and the caller's session."""

from __future__ import annotations

import functools

import click

from gitgates.core import environ
from gitgates.core.agent_types import WorktreeState
from gitgates.core.errors import GitError, StateError, UsageError
from gitgates.core.record import lazy
from gitgates.drivers.caller import Caller, find_caller
from gitgates.drivers.dry_call import dry_call
from gitgates.drivers.shell_commands import OPTION
from gitgates.drivers.start import record_base
from gitgates.engine.plan.command import is_running_here
from gitgates.features.review.change import change_of
from gitgates.features.review.facts import session_evidence
from gitgates.git.diff import patch_id
from gitgates.journal.entries import TIMELINE
from gitgates.journal.journal import fact_of
from gitgates.store.messages import Message
from gitgates.verbs.group import VerbGroup
from gitgates.verbs.repository import configuration, current_repo, post_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.features.review.change import SessionChange
    from gitgates.features.review.facts import Evidence
    from gitgates.git.repo import Repo

ASKING = "review-opinions"  # marks a run that asks for opinions; no host has such a hook
_HELP = ("-h", "--help")


class ReviewGroup(VerbGroup):
    """The verbs of `gitgates review`; `status` if none is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Run `status` if no verb is given."""
        if not ctx.resilient_parsing and not (args and (args[0] in _HELP or args[0][:1] != "-")):
            args = ["status", *args]
        return super().parse_args(ctx, args)


class ReviewSession:
    """The session of a verb's caller, in its repository."""

    def __init__(self, repo: Repo, config: Config, caller: Caller) -> None:
        self.repo, self.config, self.caller = repo, config, caller

    @lazy
    def call(self) -> Call:
        """Return the context as if the session's agent stopped now; nothing is written.

        Raises: GitError, StateError if the current content cannot be read.
        """
        return dry_call(self.repo, self.config, "turn-end", self.caller)

    @property
    def evidence(self) -> Evidence:
        """The evidence in all the session's journals."""
        return session_evidence(self.call)

    @property
    def requests(self) -> tuple[str, ...]:
        """The person's prompts in all the session's journals, word for word."""
        return self.call.state_everywhere(TIMELINE).requests

    @lazy
    def change(self) -> SessionChange:
        """Return the current change.

        Raises: GitError, StateError if the current content cannot be read.
        """
        record_base(self.call)
        return change_of(self.call)

    def post(self, text: str, data: Mapping[str, object], *, topic: str = "") -> str:
        """Append a text about the review to the message log; return the message's id."""
        caller = self.caller
        draft = Message(
            topic=f"review/{caller.session}{topic}",
            text=text,
            session=caller.session,
            agent=caller.agent,
            data=data,
        )
        return post_message(self.repo, draft)

    def note(self, point: WorktreeState, kind: type[Any], **fields: object) -> None:
        """Append an entry about a point's content to the session's journal for this worktree.

        Raises: StateError if it cannot be written.
        """
        try:
            patch = patch_id(self.change.at(point))
        except GitError:
            patch = ""  # the base is gone: the entry holds for this content only
        bound = {"tree": point.tree, "head": point.head, "patch": patch, "seen": point.stamp}
        journal = self.caller.journals[0]
        try:
            journal.append(fact_of(kind(agent=self.caller.agent, **bound, **fields)))
        except OSError as error:
            raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error


def verb(
    name: str, short_help: str, *, reads: bool = False
) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator for verbs: the function gets the session, then its own options.

    `reads`: a second opinion may also run it.
    """

    def register(function: Callable[..., int]) -> click.Command:
        @functools.wraps(function)
        def run(session: str | None, agent: str | None, caller: str, **options: Any) -> int:  # noqa: ANN401 - of any type
            return function(_open(session or "", agent or "", caller, reads=reads), **options)

        command = click.command(name, short_help=short_help)(run)
        command.params += [
            click.Option(
                ["--session"],
                metavar="ID",
                help="The agent's session. Default: the calling session.",
            ),
            click.Option(["--agent"], metavar="ID", help="A sub-agent of that session."),
            click.Option([OPTION], default="", hidden=True),
        ]
        return command

    return register


def _open(session: str, agent: str, nonce: str, *, reads: bool) -> ReviewSession:
    """Return the session of a verb's caller.

    Raises: ConfigError, GitError; UsageError if no session, or more than one, matches, or if a
    second opinion would do more than read.
    """
    repo, env = current_repo(), environ.read()
    # A process below one that asks for opinions is an opinion, no matter in which worktree.
    folders = (state_abs.rpartition("/")[0] for state_abs in repo.states_abs)
    if not reads and any(is_running_here(env, folder, ASKING) for folder in folders):
        raise UsageError(
            "this is a second opinion, which may only read",
            "Print your own opinion of the change to standard output.",
        )
    config = configuration(repo)
    caller = find_caller(repo, env, session=session, agent=agent, nonce=nonce)
    return ReviewSession(repo, config, caller)

"""`gitgates review`: what is to be reviewed, and what was said of it. One verb a file."""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping

import click

from gitgates.config.values import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# verb → the line that the list of verbs shows. The verb's file is review_VERB.py.
VERBS = {
    "status": "Show what there is to review, and whether it was.",
    "diff": "Show the change that is to be reviewed.",
    "request": "Show what the person asked for, word for word.",
    "weakened": "Show what weakens the checks.",
    "opinions": "Ask others for a second opinion.",
    "done": "Say that you have reviewed the change.",
    "skip": "Say that the change needs no review.",
    "post": "Post a reviewer's decision.",
}


_HELP = ("-h", "--help")


class _Loaded(MutableMapping[str, click.Command]):
    """The verbs, each loaded when it is looked at."""

    def __getitem__(self, verb: str) -> click.Command:
        if verb not in VERBS:
            raise KeyError(verb)
        command: click.Command = importlib.import_module(f"gitgates.cli.review_{verb}").command
        return command

    def __contains__(self, verb: object) -> bool:
        return verb in VERBS

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)

    def __setitem__(self, verb: str, command: click.Command) -> None:
        raise TypeError(verb)

    def __delitem__(self, verb: str) -> None:
        raise TypeError(verb)


class ReviewGroup(click.Group):
    """The verbs of a review, each loaded when it is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take it for `status` where no verb is named."""
        if not ctx.resilient_parsing and not (args and (args[0] in _HELP or args[0][:1] != "-")):
            args = ["status", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the verbs in the order of their use."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without loading any of their files."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb]) for verb in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; for one that is not there, name the nearest."""
        known = tuple(self.commands)
        unknown = args and args[0] not in known and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], known) or "See: gitgates review --help"
            raise click.UsageError(f"no such command: {args[0]}. {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group("review", cls=ReviewGroup, commands=_Loaded())
def command() -> None:
    """Show what is to be reviewed, and note what was said of it (without a command: status).

    A command means the session whose agent runs it; in a terminal of your own, the only session
    that has been in this worktree, or the one that --session names.
    """

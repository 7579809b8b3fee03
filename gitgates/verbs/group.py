"""A group of verbs, as `gitgates` is one, and `gitgates review`."""

from __future__ import annotations

import click


class VerbGroup(click.Group):
    """A group that lists its verbs in the order of their use, and suggests the nearest name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the verbs in their order."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; suggest the nearest name for an unknown one."""
        from gitgates.config.values import did_you_mean

        verbs = tuple(self.list_commands(ctx))
        # A shell that completes (resilient) has no place for the message.
        unknown = args and args[0] not in verbs and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], verbs) or f"See: {ctx.command_path} --help"
            raise click.UsageError(f"no such command: {args[0]}. {hint}", ctx)
        return super().resolve_command(ctx, args)

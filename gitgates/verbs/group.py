"""A group of verbs, such as `gitgates` itself or `gitgates review`."""

from __future__ import annotations

import click


class VerbGroup(click.Group):
    """A group that lists its verbs in order of use, and suggests the nearest name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the verbs in order of use."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; suggest the nearest name for an unknown one."""
        from gitgates.config.values import did_you_mean

        verbs = tuple(self.list_commands(ctx))
        # During completion (resilient parsing) there is no place for the message.
        unknown = args and args[0] not in verbs and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], verbs) or f"See: {ctx.command_path} --help"
            raise click.UsageError(f"no such command: {args[0]}. {hint}", ctx)
        return super().resolve_command(ctx, args)

"""The verbs that people and scripts type. One file a verb, loaded when it is called.

Usage errors exit 64, never click's own 2: to a coding agent, 2 means "block".
"""

from __future__ import annotations

import importlib

import click

from gitgates import __version__, errors
from gitgates.cli import output

# verb → the line that the list of verbs shows. Its file has the verb's name, and `command` in it.
VERBS = {
    "init": "Propose gates from what the project says about itself.",
    "run": "Run the gates of a hook now.",
    "headless": "Run an agent until its gates pass, then commit.",
    "runs": "Show what came of earlier runs.",
    "explain": "Tell what a hook would run, and why.",
    "check": "Check the configuration.",
    "verify": "Tell which commits went round the gates.",
    "install-hooks": "Let git, or an agent, run the gates.",
    "uninstall-hooks": "Take the hooks out again.",
    "doctor": "Find out why gates do not run.",
    "convert": "Take over the gates of another tool.",
    "schema": "Print the JSON Schema of the configuration.",
    "completion": "Print the completion script of a shell.",
    "review": "Show what is to be reviewed, and say what came of it.",
    "intent": "Show what agents may work on, and where.",
    "advice": "Tell agents what to know, and run commands at moments of their work.",
    "handoff": "Leave the work to the next session.",
    "journal": "Post to the repository's message log, read it, search it.",
    "approve": "Let an agent run a person's command once.",
    "mcp": "Serve some verbs as tools of an agent.",
    "trace": "Tell which agent wrote what.",
    "cannot-fix": "Say that a gate's failure cannot be fixed here.",
    "recover": "Put back what a killed run had hidden.",
    "gc": "Clear away what has grown old.",
}

# Verbs that stand in another verb's file, under their own name.
_BESIDE = {"schema": "check", "gc": "recover"}

# `recover` looks before it acts; `run` says even then what went wrong in the format asked for.
_HEAL_THEMSELVES = ("recover", "run")


def load_verb(verb: str) -> click.Command:
    """Load the file of a verb, and return the verb."""
    file = _BESIDE.get(verb, verb).replace("-", "_")
    module = importlib.import_module(f"gitgates.cli.{file}")
    command: click.Command = getattr(module, verb if verb in _BESIDE else "command")
    return command


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

        known = tuple(self.list_commands(ctx))
        # A shell that completes (resilient) has no place for the message.
        unknown = args and args[0] not in known and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], known) or f"See: {ctx.command_path} --help"
            raise click.UsageError(f"no such command: {args[0]}. {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(VerbGroup):
    """A group that loads a verb's file only when the verb is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help on stderr if there are no arguments."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(errors.UsageError.exit_status)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the verbs in the order of their importance."""
        return list(VERBS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the verbs without loading any of their files."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's
        cmd_name: str,
    ) -> click.Command | None:
        """Return a verb."""
        return load_verb(cmd_name) if cmd_name in VERBS else None


@click.group(
    cls=LazyGroup, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="gitgates")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Quality gates declared once, run wherever code changes hands."""
    verb = ctx.invoked_subcommand or ""
    if verb not in _HEAL_THEMSELVES:
        # Not where only a list of verbs is wanted.
        from gitgates.cli.repository import restore_interrupted

        restore_interrupted(verb)


def run_cli() -> int:
    """Run the verb that the arguments name; return the exit status."""
    output.replace_streams()
    return output.flush_streams(_run())


def _run() -> int:
    try:
        status = main(prog_name="gitgates", standalone_mode=False)
    except click.exceptions.Exit as done:
        status = done.exit_code
    except click.Abort:
        click.echo("gitgates: interrupted", err=True)
        status = errors.Interrupted.exit_status
    except click.ClickException as error:
        _show_usage(error)
        status = errors.UsageError.exit_status
    except errors.GitgatesError as error:
        click.echo(f"gitgates: {error}", err=True)
        status = error.exit_status
    except Exception as error:  # noqa: BLE001 - the last door: what comes here is our bug
        if full := errors.full_disk(error):
            click.echo(f"gitgates: {full}", err=True)
            return full.exit_status
        import traceback

        click.echo(traceback.format_exc() + "gitgates: a bug of ours, please report it", err=True)
        status = errors.GitgatesError.exit_status
    return int(status or 0)


def _show_usage(error: click.ClickException) -> None:
    click.echo(f"gitgates: {error.format_message()}", err=True)
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(f"  {context.get_usage()}", err=True)

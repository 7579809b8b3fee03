"""The commands of the CLI. One file per command, loaded when it is called.

Usage errors exit 64, never click's own 2: to a coding agent, 2 means "block".
"""

from __future__ import annotations

import importlib

import click

from gitgates import __version__
from gitgates.core import errors
from gitgates.verbs import output
from gitgates.verbs.group import VerbGroup

# Help section → verb → its line. The verb's module has its name, and defines `command`.
SECTIONS = {
    "Start": {
        "init": "Propose gates from the project's existing checks.",
        "check": "Check the configuration.",
        "install-hooks": "Install hooks into git, a hook manager or a coding agent.",
        "ci": "Write a workflow that runs the gates in CI.",
        "run": "Run a hook's gates now.",
        "explain": "Show which gates a hook would run, and why.",
        "list": "List the hooks and their gates.",
        "test": "Prove on examples that gates can fail.",
    },
    "Agents": {
        "headless": "Run an agent until the gates pass, then commit.",
        "intent": "Show and select what agents may work on.",
        "advice": "Manage guidance for agents, and hooks around their work.",
        "handoff": "Hand work over to the next session.",
        "journal": "Post, read and search the repository's messages.",
        "cannot-fix": "Report that a gate's failure cannot be fixed here.",
        "approve": "Approve one agent command that needs a person.",
        "mcp": "Serve verbs as tools of a Model Context Protocol server.",
    },
    "Review and evidence": {
        "review": "Show what to review, and record reviews.",
        "undo": "List what agents have changed, and undo it.",
        "redo": "Undo the last undo.",
        "land": "Merge branches into the target once their gates pass on the result.",
        "verify": "List commits that bypassed their gates.",
        "proof": "Sign, show and transfer proofs of passed gates.",
        "trace": "Show which agent wrote what.",
        "runs": "Show past runs.",
        "baseline": "Accept the failures that gates have now.",
    },
    "Maintenance": {
        "doctor": "Diagnose why gates do not run.",
        "remote": "Show whether the remote cache and server work.",
        "recover": "Restore files that an interrupted run stashed.",
        "gc": "Remove old state.",
        "uninstall-hooks": "Uninstall hooks.",
        "convert": "Convert another tool's gates.",
        "schema": "Print the configuration's JSON Schema.",
        "completion": "Print a completion script for a shell.",
    },
}
VERBS = {verb: line for verbs in SECTIONS.values() for verb, line in verbs.items()}
# What `gitgates --help` shows without `--all`.
EVERY_DAY = (
    *("init", "install-hooks", "run", "explain", "check", "runs", "undo", "review", "doctor"),
    "uninstall-hooks",
)

ALL = "all"  # the verbs that the help shows

# Verb → the module of another verb that defines it, under its own name.
_SHARED_FILES = {"schema": "check", "gc": "recover"}
# A module `list` would hide the function of that name here.
_FILES = {**_SHARED_FILES, "list": "list_gates"}

# Verbs of features → their modules in gitgates.features; all others are beside this one.
_FEATURE_MODULES = {
    "advice": "advice.cli",
    "baseline": "gates.cli_baseline",
    "cannot-fix": "gates.cli_cannot_fix",
    "handoff": "advice.cli_handoff",
    "headless": "headless.cli",
    "intent": "intents.cli",
    "journal": "messages.cli",
    "land": "land.cli",
    "mcp": "mcp.cli",
    "proof": "proof.cli",
    "review": "review.cli",
    "redo": "undo.cli_redo",
    "remote": "remote.cli",
    "test": "examples.cli",
    "trace": "trace.cli",
    "undo": "undo.cli",
    "verify": "evidence.cli",
}

# `recover` lists before it acts; `run` reports a failed restore in the requested format.
_HEAL_THEMSELVES = ("recover", "run")


def load_verb(verb: str) -> click.Command:
    """Load the file of a verb, and return the verb."""
    file = _FILES.get(verb, verb).replace("-", "_")
    name = f"features.{feature}" if (feature := _FEATURE_MODULES.get(verb)) else f"cli.{file}"
    module = importlib.import_module(f"gitgates.{name}")
    command: click.Command = getattr(module, verb if verb in _SHARED_FILES else "command")
    return command


class LazyGroup(VerbGroup):
    """A group that loads a verb's file only when the verb is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help on stderr if there are no arguments; take `help VERB` for `VERB --help`."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if {*args} in ({"--all"}, {"--all", "--help"}, {"--all", "-h"}):
            ctx.obj, args = ALL, ["--help"]
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(errors.UsageError.exit_status)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the verbs in the order of the help."""
        return list(VERBS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without loading any of their files."""
        column = max(map(len, VERBS))
        sections = SECTIONS
        if ctx.obj != ALL:
            sections = {"Every day": {verb: VERBS[verb] for verb in EVERY_DAY}}
        for title, verbs in sections.items():
            with formatter.section(title):
                formatter.write_dl([(verb.ljust(column), line) for verb, line in verbs.items()])
        if ctx.obj != ALL:
            formatter.write_paragraph()
            formatter.write_text("For all commands: gitgates --help --all")

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
        # Not if only a list of verbs is wanted.
        from gitgates.verbs.repository import restore_interrupted

        restore_interrupted(verb)


def run_cli() -> int:
    """Run the verb that the arguments name; return the exit status."""
    output.replace_streams()
    return output.flush_streams(_run())


def _run() -> int:
    try:
        status = main(prog_name="gitgates", standalone_mode=False)
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.Abort:
        click.echo("gitgates: interrupted", err=True)
        status = errors.Interrupted.exit_status
    except click.ClickException as error:
        _show_usage(error)
        status = errors.UsageError.exit_status
    except errors.GitgatesError as error:
        click.echo(f"gitgates: {error}", err=True)
        status = error.exit_status
    except Exception as error:  # noqa: BLE001 - the last resort: this is our bug
        from gitgates.store.owners import denied  # seldom needed

        if full := denied(error) or errors.unwritable(error):
            click.echo(f"gitgates: {full}", err=True)
            return full.exit_status
        import traceback

        click.echo(
            traceback.format_exc() + "gitgates: internal error; please report this bug", err=True
        )
        status = errors.GitgatesError.exit_status
    return int(status or 0)


def _show_usage(error: click.ClickException) -> None:
    click.echo(f"gitgates: {error.format_message()}", err=True)
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(f"  {context.get_usage()}", err=True)

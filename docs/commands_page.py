"""The pages about commands: one for each verb, made from its help when the site is built."""

from __future__ import annotations

import copy

import click
from markdown_page import page

from gitgates.cli import VERBS, load_verb
from gitgates.cli import main as gitgates

_SOURCE = "the help texts in `gitgates/cli/` and the features"
_WIDTH = 80


def commands_pages() -> dict[str, str]:
    """Return file name → text of the page of each verb, and of the list of them."""
    verbs = {verb: load_verb(verb) for verb in VERBS}
    listed = "\n".join(
        f"- [`gitgates {verb}`]({verb}.md): {command.get_short_help_str(limit=200)}"
        for verb, command in verbs.items()
    )
    overview = page(
        "Commands",
        _SOURCE,
        listed,
        "Hosts call three more commands: `gitgates git-hook` (from the shim that "
        "`gitgates install-hooks` writes), `gitgates pre-commit-hook` (from "
        "`.pre-commit-hooks.yaml`) and `gitgates agent-hook` (from an agent's settings).",
        "## `gitgates --help`",
        _help(gitgates, "gitgates"),
    )
    pages = {f"commands/{verb}.md": _page(verb, command) for verb, command in verbs.items()}
    return {"commands/index.md": overview, **pages}


def _page(verb: str, command: click.Command) -> str:
    name = f"gitgates {verb}"
    parts = [_help(command, name)]
    if isinstance(command, click.Group):
        for below, inner in command.commands.items():
            parts += [f"## `{name} {below}`", _help(inner, f"{name} {below}")]
    return page(name, _SOURCE, *parts)


def _help(command: click.Command, name: str) -> str:
    settings = {**command.context_settings, "help_option_names": ["-h", "--help"]}
    settings |= {"terminal_width": _WIDTH, "max_content_width": _WIDTH}
    command = copy.copy(command)
    command._help_option = None  # noqa: SLF001 - click keeps the one of its first context
    with click.Context(command, info_name=name, **settings) as context:
        return f"```text\n{command.get_help(context)}\n```"

"""`gitgates advice`: guidance for agents, and commands that run as hooks of their work."""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections.abc import Callable, Container, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any, TypeVar

import click
import tomlkit
from tomlkit.exceptions import TOMLKitError

from gitgates.config import FILES, LOCAL_FILE, PREFIXES, edit
from gitgates.config.keys import defaults
from gitgates.config.load import describe as describe_problems
from gitgates.config.load import load, read_files
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.config.weaker import weaker_entry
from gitgates.core import environ
from gitgates.core.clean import visible_line
from gitgates.core.errors import OK, ConfigError, UsageError
from gitgates.core.limits import parse_toml
from gitgates.core.types import Problem
from gitgates.drivers.rules import approve_entry
from gitgates.features.advice.items import (
    LIVE,
    TABLE,
    TRIGGERS,
    Advice,
    Identity,
    advice_of,
    content_hash,
    describe,
    hooks_at,
    identify,
    target_of,
)
from gitgates.features.advice.keys import id_of, slug
from gitgates.hosts import git as githook
from gitgates.report.artifacts import save_run
from gitgates.report.text import Console
from gitgates.store.files import replace_unchanged
from gitgates.store.log import utc
from gitgates.verbs.approval import require_person
from gitgates.verbs.output import format_option, print_json, stdout
from gitgates.verbs.repository import (
    configuration,
    current_repo,
    edits_files,
    ignore_local_settings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.config.edit import Edit
    from gitgates.config.sources import Raw
    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

VERSION = 1
_TARGETS = ("rig", "role", "agent")
_FIELDS = (
    click.option("--description", help="Details."),
    *(click.option(f"--{name}", help=f"Limit it to this {name}.") for name in _TARGETS),
    click.option("--priority", type=int, help="From 0 (highest) to 4; default 2."),
    click.option("--hook-command", metavar="COMMAND", help="Shell command to run."),
    click.option("--hook-trigger", metavar="TRIGGER", help=f"When: {', '.join(TRIGGERS)}."),
    click.option(
        "--hook-timeout",
        type=int,
        metavar="SECONDS",
        help="Seconds, 1 to 300; default 30.",
    ),
    click.option("--hook-on-failure", metavar="HOW", help="block, warn (default) or ignore."),
)
_IDENTITY_OPTIONS = tuple(
    click.option(f"--{name}", default="", help=f"Act as this {name}.") for name in _TARGETS
)
_ID_ARGUMENT = click.argument("name", metavar="ID")


def _with(options: tuple[Any, ...]) -> Callable[[Decorated], Decorated]:
    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _token(verb: str) -> Callable[[Decorated], Decorated]:
    return click.option(
        "--token", default="", help=f"Token from a person: gitgates approve {verb}."
    )


@click.group("advice")
def command() -> None:
    """Manage guidance for agents, and commands that run as hooks of their work.

    Advice is stored in [[tool.gitgates.advice]]. The caller is identified by --rig, --role and
    --agent, or by GITGATES_RIG, GITGATES_ROLE and GITGATES_AGENT.
    """


@command.command("add")
@click.argument("title")
@_with(_FIELDS)
@click.option("--local", is_flag=True, help="Write to gitgates.local.toml, which is not committed.")
@edits_files
def add_advice(title: str, *, local: bool, **fields: Any) -> int:  # noqa: ANN401 - click's
    """Add an advice entry. Without --hook-command, it is guidance shown to agents."""
    repo = current_repo()
    raw = read_files(repo.root_abs)
    config = load(repo.root_abs)
    ids = {advice.id for advice in advice_of(config)} if config else set()
    created_at = utc(time.time())
    table = {"id": new_id(title, ids), "title": title, "created_at": created_at}
    table |= _without_none(fields)
    advice, problems = parse_advice(table, "advice")
    if problems:
        raise UsageError(describe_problems([*problems]), "Nothing was written.")
    _save(repo, add(raw, table, local=local))
    ignore_local_settings(repo)
    click.echo(visible_line(describe(advice)))
    return OK


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _save(repo: Repo, edit: Edit) -> None:
    replace_unchanged(repo.root_abs, edit.file, edit.before, edit.after)
    click.echo(f"gitgates: wrote {edit.file}", err=True)


@command.command("list")
@click.option("--all", "every", is_flag=True, help="Include closed ones.")
@format_option
def list_advice(*, every: bool, fmt: str) -> int:
    """List all advice, with hooks and targets."""
    advice = advice_of(configuration(current_repo()))
    _print(tuple(entry for entry in advice if every or entry.status in LIVE), fmt)
    return OK


def _print(advice: tuple[Advice, ...], fmt: str) -> None:
    if fmt == "json":
        print_json({"version": VERSION, "advice": [_document(entry) for entry in advice]})
        return
    for entry in advice:
        closed = "" if entry.status in LIVE else f" {entry.status}"
        click.echo(f"  {visible_line(describe(entry))}{closed}")
        if target := target_of(entry):
            click.echo(f"  Target: {visible_line(target)}")
    if not advice:
        click.echo("gitgates: no advice", err=True)


def _document(advice: Advice) -> dict[str, Any]:
    fields = advice._asdict()
    timeout = fields.pop("hook_timeout_s")
    return {**fields, "hook_timeout": timeout, "hash": content_hash(advice)}


@command.command("show")
@_ID_ARGUMENT
@format_option
def show(name: str, fmt: str) -> int:
    """Show one advice entry in full."""
    advice = _find(current_repo(), name)
    if fmt == "json":
        print_json({"version": VERSION, "advice": [_document(advice)]})
        return OK
    for key, value in _document(advice).items():
        text = f"{value:g}" if isinstance(value, float) else str(value)
        if text:
            click.echo(f"{key + ':':<16} {visible_line(text)}")
    return OK


def _find(repo: Repo, name: str) -> Advice:
    for advice in advice_of(configuration(repo)):
        if advice.id == name:
            return advice
    raise UsageError(f"no advice entry `{name}`", "To list all: gitgates advice list --all")


@command.command("edit")
@_ID_ARGUMENT
@click.option("--title", help="A line that names it.")
@click.option("--status", help="open, pinned, closed or tombstone.")
@_with(_FIELDS)
@_token("advice edit")
@edits_files
def edit_advice(name: str, *, token: str, **fields: Any) -> int:  # noqa: ANN401 - click's
    """Change an advice entry; an empty value removes the key.

    Weakening an advice entry that blocks needs a person: a terminal, or a token.
    """
    values = {key: None if value == "" else value for key, value in _without_none(fields).items()}
    if not values:
        raise UsageError("nothing to change", "Specify a change, such as --hook-timeout 60")
    _change(name, values, "advice edit", token)
    return OK


@command.command("close")
@_ID_ARGUMENT
@_token("advice close")
@edits_files
def close(name: str, *, token: str) -> int:
    """Close an advice entry: it is no longer shown or run.

    Closing an advice entry that blocks needs a person: a terminal, or a token.
    """
    _change(name, {"status": "closed"}, "advice close", token)
    return OK


def _change(name: str, values: dict[str, Any], action: str, token: str) -> None:
    repo = current_repo()
    old = _find(repo, name)
    keys = _document(old)
    keys.pop("hash")
    unset = _document(Advice(**defaults(TABLE)))
    table = {key: value for key, value in keys.items() if value != unset[key]}
    table |= {"id": old.id, **values}
    new, problems = parse_advice({k: v for k, v in table.items() if v is not None}, "advice")
    if problems:
        raise UsageError(describe_problems(list(problems)), "Nothing was written.")
    edit = change(read_files(repo.root_abs), name, values)
    if weaker_entry(TABLE, old._asdict(), new._asdict()):
        require_person(repo, action, token)
    _save(repo, edit)
    approve_entry(repo, TABLE, old.id, new._asdict())
    click.echo(visible_line(describe(new)))


@command.command("remove")
@_ID_ARGUMENT
@_token("advice remove")
@edits_files
def remove_advice(name: str, *, token: str) -> int:
    """Remove an advice entry from the settings.

    Removing an advice entry that blocks needs a person: a terminal, or a token.
    """
    repo = current_repo()
    edit = remove(read_files(repo.root_abs), name)
    if weaker_entry(TABLE, _find(repo, name)._asdict(), None):
        require_person(repo, "advice remove", token)
    _save(repo, edit)
    approve_entry(repo, TABLE, name, None)
    return OK


@command.command("hooks")
@click.option("--trigger", type=click.Choice(TRIGGERS), help="Only hooks with this trigger.")
@_with(_IDENTITY_OPTIONS)
@click.option("--dry-run", is_flag=True, help="Show what would run, and where, without running it.")
@format_option
def hooks(trigger: str | None, *, dry_run: bool, fmt: str, **who: str) -> int:
    """List the hooks that apply to the caller, in the order in which they run."""
    repo = current_repo()
    config = configuration(repo)
    matching = hooks_at(advice_of(config), _who(who), (trigger,) if trigger else TRIGGERS)
    if dry_run and fmt == "text":
        for advice in matching:
            click.echo(
                f"would run at {advice.hook_trigger}: {visible_line(advice.hook_command)} "
                f"({advice.id}, in {os.getcwd()}, at most {advice.hook_timeout_s:g} s; "
                f"{advice.hook_on_failure})"
            )
        return OK
    _print(tuple(matching), fmt)
    return OK


def _who(options: Mapping[str, str]) -> Identity:
    return identify(environ.read(), **options)


@command.command("run")
@click.option("--trigger", type=click.Choice(TRIGGERS), required=True, help="The trigger.")
@_with(_IDENTITY_OPTIONS)
def run(trigger: str, **who: str) -> int:
    """Run a trigger's hooks now, in the current folder.

    Exit status 0: no blocking hook failed. 1: one failed.
    """
    repo = current_repo()
    config, asking = configuration(repo), _who(who)
    if not hooks_at(advice_of(config), asking, (trigger,)):
        click.echo(f"gitgates: no advice runs at {trigger} for you", err=True)
    return run_hooks(repo, config, trigger, asking)


def run_hooks(repo: Repo, config: Config, trigger: str, who: Identity) -> int:
    """Run a trigger's hooks, and show them; return the exit status.

    Raises: GitgatesError if they cannot be run.
    """
    from gitgates.features.advice.git_hooks import run_by_hand  # slow to load

    terminal, began_s = stdout(), time.time()
    console = Console(terminal)
    folder = os.path.relpath(os.path.realpath(os.getcwd()), os.path.realpath(repo.root_abs))
    call = run_by_hand(repo, config, console, trigger=trigger, who=who, folder=folder)
    if call.decision and call.plan:
        terminal.write(console.closing(call.decision, call.plan))
        if call.has_results:
            click.echo(save_run(call.decision, call.plan, call.config, began_s), nl=False, err=True)
    return githook.encode(call.decision)


# Matches before each header, or before the comments directly above it.
_PART = re.compile(r"^(?=(?:[ \t]*#.*\n)*[ \t]*\[)", re.MULTILINE)
# Matches from an empty line on: comments that belong to no table.
_REST = re.compile(r"^[ \t\r]*\n(?:[ \t\r]*(?:#.*)?\n)*(?:#.*)?\Z", re.MULTILINE)


def parse_advice(table: dict[str, Any], source: str) -> tuple[Advice, tuple[Problem, ...]]:
    """Return an entry from a table of another source, checked like one in the settings files."""
    config, problems = parse((Document(source, (), {TABLE: [table]}),))
    return advice_of(config)[0], problems


def new_id(title: str, existing_ids: Container[str]) -> str:
    """Return an unused id for a title."""
    name = slug(title) or TABLE
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(candidate for candidate in names if candidate not in existing_ids)


def add(raw: Raw, table: dict[str, Any], *, local: bool) -> edit.Edit:
    """Return the edit that appends an entry to the shared or the local settings.

    Raises: ConfigError if there are problems, or would be.
    """
    file = LOCAL_FILE if local else edit.shared_file(raw)
    path = (*PREFIXES[file], TABLE)
    text = edit.text_of(raw, file)
    expected = parse_toml(text)
    edit.at(expected, path[:-1]).setdefault(TABLE, []).append(table)
    text = edit.append(text, edit.to_toml(path, [table]))
    refusal = _by_hand(file, TABLE, [table])
    return _checked(raw, file, text, expected=expected, refusal=refusal)


def change(raw: Raw, name: str, values: Mapping[str, Any]) -> edit.Edit:
    """Return the edit that sets keys of an advice entry; None removes a key.

    Raises: ConfigError as above; UsageError if there is no such advice.
    """
    file, place, expected, tables = _located(raw, name)
    if "title" in values and "id" not in tables[place]:
        values = {"id": name, **values}  # which was derived from the title
    merged = {**tables[place], **values}
    tables[place] = {key: value for key, value in merged.items() if value is not None}
    refusal = _by_hand(file, name, [tables[place]])
    before, block, after = _cut(edit.text_of(raw, file), file, place, refusal)
    try:
        document = tomlkit.parse(block)
        table: Any = edit.at(document, PREFIXES[file])[TABLE][0]
        for key, value in values.items():
            if value is None:
                table.pop(key, None)
            else:
                table[key] = tomlkit.parse(edit.to_toml((key,), value))[key]
        block = document.as_string()
    except (TOMLKitError, ValueError, LookupError, TypeError) as error:
        raise refusal from error
    return _checked(raw, file, before + block + after, expected=expected, refusal=refusal)


def remove(raw: Raw, name: str) -> edit.Edit:
    """Return the edit that removes an advice entry.

    Raises: ConfigError as above; UsageError if there is no such advice.
    """
    file, place, expected, tables = _located(raw, name)
    refusal = _by_hand(file, name, [])
    before, _block, after = _cut(edit.text_of(raw, file), file, place, refusal)
    del tables[place]
    if not tables:
        del edit.at(expected, PREFIXES[file])[TABLE]
    end = len(before.rstrip("\n")) + 1  # including its line end
    return _checked(raw, file, before[:end] + after, expected=expected, refusal=refusal)


def _located(raw: Raw, name: str) -> tuple[str, int, Any, list[dict[str, Any]]]:
    """Return an entry's location: file, index, the parsed file, and all advice in it."""
    for file in FILES:
        parsed: Any = parse_toml(edit.text_of(raw, file))
        try:
            tables = edit.at(parsed, PREFIXES[file]).get(TABLE, [])
        except AttributeError:
            continue  # `tool` is not a table
        for place, table in enumerate(tables):
            if id_of(table) == name:
                return file, place, parsed, tables
    raise UsageError(f"no advice entry `{name}`", "To list all: gitgates advice list --all")


def _cut(text: str, file: str, place: int, refusal: ConfigError) -> tuple[str, str, str]:
    """Return the text before a table in the array, the table's text, and the text after it."""
    parts = _PART.split(text)
    header = "[[" + ".".join((*PREFIXES[file], TABLE))
    starts = [re.sub(r"[\s'\"]", "", part.partition("]")[0]) for part in parts]
    numbers = [number for number, start in enumerate(starts) if start == header]
    if place >= len(numbers):
        raise refusal
    before, (part, *after) = parts[: numbers[place]], parts[numbers[place] :]
    rest = _REST.search(part)
    end = rest.start() if rest else len(part)
    return "".join(before), part[:end], part[end:] + "".join(after)


def _checked(
    raw: Raw, file: str, text: str, *, expected: object, refusal: ConfigError
) -> edit.Edit:
    """Return the edit that gives a file a new text, which must parse to the expected tables."""
    try:
        parsed = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise refusal from error
    if edit.as_json(_unempty(parsed)) != edit.as_json(_unempty(expected)):
        raise refusal
    return edit.with_text(edit.Edit(file=file), raw, text)


def _unempty(tables: Any) -> Any:  # noqa: ANN401 - as tomllib has them
    """Return tables without empty ones, such as those of a header that is only a prefix."""
    if not isinstance(tables, dict):
        return tables
    return {k: nested for k, v in tables.items() if (nested := _unempty(v)) != {}}


def _by_hand(file: str, name: str, tables: list[dict[str, Any]]) -> ConfigError:
    lines = edit.to_toml((*PREFIXES[file], TABLE), tables) if tables else ""
    return ConfigError(
        f"{file}: `{name}` cannot be changed without rewriting other parts of the file",
        f"Write each [[…{TABLE}]] with its own header, or change it by hand"
        + (f" to:\n\n{lines}" if lines else "."),
    )

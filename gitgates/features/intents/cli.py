"""`gitgates intent`: what agents may work on, and where."""

from __future__ import annotations

import os
from shlex import quote

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.features.intents.approved import approve_intents, intents_of_session, is_unapproved
from gitgates.features.intents.cli_select import release, select
from gitgates.features.intents.edit import add_pattern
from gitgates.features.intents.file import find_intent, load, read_intents, settings_of
from gitgates.features.intents.intent import Intents, IntentsError
from gitgates.features.intents.lease import read_leases
from gitgates.features.intents.requests import (
    APPROVED,
    REFUSED,
    ScopeRequest,
    ask,
    new_request,
    open_requests,
    record,
)
from gitgates.features.intents.scope import nearest
from gitgates.features.intents.session_context import context_of
from gitgates.git.repo import find_repo
from gitgates.hosts import calling_session
from gitgates.session.approval import require_person
from gitgates.session.caller import identify
from gitgates.session.rules import APPROVE
from gitgates.session.shell_commands import OPTION
from gitgates.store.files import replace_unchanged
from gitgates.store.log import file_name, utc
from gitgates.verbs.output import format_option, print_json, table
from gitgates.verbs.repository import configuration, current_repo, edits_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.intents.lease import Leases
    from gitgates.git.repo import Repo

_VERSION = 1
_APPROVE = "intent approve-scope"
_UNLIMITED = 1 << 30


@click.group("intent")
def command() -> None:
    """Show what agents may work on, and where.

    A person writes the intents to a file, by default .orchestration/active_intents.yaml, or the one
    set in [tool.gitgates.intents]. An agent selects one that is IN_PROGRESS.
    """


def open_intents() -> tuple[Repo, Intents]:
    """Return the repository of the current folder, and its intents.

    Raises: ConfigError, GitError; IntentsError where their file is wrong.
    """
    repo = current_repo()
    config = configuration(repo)
    settings_of(config)
    return repo, load(repo, config)


@command.command("list")
@click.option("--path", metavar="PATH", help="Only intents whose scope may contain this path.")
@format_option
def list_intents(path: str | None, fmt: str) -> int:
    """List the intents, in the order of the file; with --path, the closest first."""
    repo, intents = open_intents()
    matching = intents.intents
    if path is not None:
        matching = nearest(
            matching, repo.relative(path), len(matching), ignore_case=repo.ignores_case
        )
    if fmt == "json":
        documents = [intent._asdict() for intent in matching]
        print_json({"version": _VERSION, "file": intents.file, "intents": documents})
        return errors.OK
    rows: list[tuple[str, ...]] = [
        (intent.id, intent.status, intent.priority, intent.title) for intent in matching
    ]
    if rows:
        click.echo(table(rows), nl=False)
    else:
        click.echo(f"gitgates: {intents.file}: no matching intents", err=True)
    return errors.OK


@command.command("show")
@click.argument("name", metavar="ID")
@format_option
def show(name: str, fmt: str) -> int:
    """Show one intent in full with the latest work on it, as agents see it."""
    repo, intents = open_intents()
    intent = find_intent(intents, name)
    if fmt == "json":
        print_json({"version": _VERSION, "file": intents.file, "intents": [intent._asdict()]})
    else:
        click.echo(context_of(repo, configuration(repo), intent, _UNLIMITED), nl=False)
    return errors.OK


@command.command("validate")
@format_option
def validate(fmt: str) -> int:
    """Check the intents file, and report every problem at once.

    Exit status 0: it is valid or does not exist. 78: it has errors.
    """
    try:
        repo, intents = open_intents()
    except IntentsError as error:
        if fmt == "text":
            raise
        print_json({"version": _VERSION, "ok": False, "problems": error.message.splitlines()})
        return error.exit_status
    if fmt == "json":
        print_json({"version": _VERSION, "ok": True, "problems": []})
    elif read_intents(repo.root_abs, intents.file) is None:
        click.echo(f"{intents.file}: file not found, so there are no intents")
    else:
        active = len(intents.active)
        click.echo(
            f"{intents.file}: {counted(len(intents.intents), 'intent')}, {active} of them "
            "can be selected, no problems"
        )
    return errors.OK


@command.command("status")
@click.argument("name", metavar="[ID]", required=False)
@format_option
def status(name: str | None, fmt: str) -> int:
    """Show the intents that can be selected, their holders, and requests waiting for a person."""
    repo, intents = open_intents()
    displayed = (find_intent(intents, name),) if name else intents.active
    names = [intent.id for intent in displayed]
    waiting = [
        request for request in open_requests(repo, intents) if not name or request.intent in names
    ]
    leases = read_leases(repo.shared_state_abs)
    live = {name: lease for name, lease in leases.items() if lease.is_live}
    if fmt == "json":
        documents = [
            {
                "id": intent.id,
                "title": intent.title,
                "status": intent.status,
                "held": _holder_document(live, intent.id),
            }
            for intent in displayed
        ]
        request_documents = [request._asdict() for request in waiting]
        print_json({"version": _VERSION, "intents": documents, "scope_requests": request_documents})
        return errors.OK
    rows: list[tuple[str, ...]] = [
        (
            intent.id,
            intent.status,
            intent.title,
            live[intent.id].holding if intent.id in live else "",
        )
        for intent in displayed
    ]
    click.echo(table(rows) if rows else "no intent can be selected\n", nl=False)
    for request in waiting:
        click.echo(
            f"{request.intent} requests {_quoted(request.pattern)}: {visible_line(request.reason)}"
        )
        location = "" if request.root == repo.root_abs else f", in {visible_line(request.root)}"
        approve = _approve_command(request.intent, request.pattern)
        click.echo(f"  since {request.time}{location}; to approve it: {approve}")
    return errors.OK


@command.command("scope-expansion-request")
@click.argument("name", metavar="ID")
@click.argument("pattern", metavar="GLOB")
@click.option("--reason", required=True, help="What needs to change there, for the person to read.")
@click.option(OPTION, default="", hidden=True)
@format_option
def scope_expansion_request(name: str, pattern: str, *, reason: str, caller: str, fmt: str) -> int:
    """Ask a person to add GLOB to the scope of an intent.

    GLOB is a pattern as in .gitignore, relative to the root. Nothing changes until a person
    approves it.

    Exit status 0: requested, or already in the scope. 64: unknown intent, or no valid pattern.
    """
    repo, intents = open_intents()
    identified = identify(repo, environ.read(), nonce=caller) if caller else None
    session = identified.session if identified else calling_session(environ.read())
    request = ask(repo, intents, name, pattern, reason=reason, session=session)
    _print_state(fmt, name, pattern, state="requested" if request else "in-scope")
    return errors.OK


@command.command("approve-scope")
@click.argument("name", metavar="ID")
@click.argument("pattern", metavar="GLOB")
@click.option("--refuse", is_flag=True, help="Refuse the request.")
@click.option(
    "--token", default="", help="Token from a person: gitgates approve intent approve-scope."
)
@format_option
@edits_files
def approve_scope(name: str, pattern: str, *, refuse: bool, token: str, fmt: str) -> int:
    """Add GLOB to the scope of an intent, as a person.

    Writes to the intents file of the worktree of the request, or of this one, if nothing else in
    the file changes. Needs a terminal, or a token.

    Exit status 0: done. 64: unknown intent or pattern, or not allowed. 78: the file must be changed
    by hand.
    """
    repo, intents = open_intents()
    waiting = {
        (request.intent, request.pattern): request for request in open_requests(repo, intents)
    }
    request = waiting.get((name, pattern)) or new_request(repo, name, pattern)
    if refuse:
        require_person(repo, _APPROVE, token)
        record(repo, REFUSED, request)
        _print_state(fmt, name, pattern, state="refused")
    elif path_abs := _approve(repo, request, token):
        record(repo, APPROVED, request)
        _print_state(fmt, name, pattern, state="approved", path_abs=path_abs)
    else:
        _print_state(fmt, name, pattern, state="in-scope")
    return errors.OK


def _print_state(fmt: str, name: str, pattern: str, *, state: str, path_abs: str = "") -> None:
    """Print the state of a request: requested, in-scope, approved or refused."""
    if fmt == "json":
        print_json({"version": _VERSION, "intent": name, "pattern": pattern, "state": state})
        return
    what = _quoted(pattern)
    texts = {
        "requested": f"requested {what} for the scope of {name}; to approve it, a person runs: "
        f"{_approve_command(name, pattern)}",
        "in-scope": f"{what} is already in the scope of {name}",
        "approved": f"{what} is now in the scope of {name}: {path_abs}",
        "refused": f"{what} is refused for the scope of {name}",
    }
    click.echo(f"gitgates: {texts[state]}")


def _approve(repo: Repo, request: ScopeRequest, token: str) -> str:
    """Write a pattern into the intents file, as a person; return its path, or empty if it is there.

    Raises: UsageError without a person's approval, or if it makes no sense; ConfigError where the
    file has to be changed by hand, or is wrong.
    """
    if request.root != repo.root_abs and os.path.exists(f"{request.root}/.git"):
        other = find_repo(request.root, environ.read())
        repo = other if other.common_dir_abs == repo.common_dir_abs else repo
    config = configuration(repo)
    intents = load(repo, config)
    session = file_name(request.session) if request.session else ""
    if is_unapproved(repo, config, intents_of_session(repo, config, session)):
        raise errors.ConfigError(
            f"{os.path.join(repo.root_abs, intents.file)}: was changed since a person approved "
            "it, so it does not apply; nothing was written",
            f"Review it (git diff HEAD). To approve it, run in a terminal: {APPROVE}",
        )
    if request.pattern in find_intent(intents, request.intent).owned_scope:
        return ""
    raw = read_intents(repo.root_abs, intents.file) or b""
    changed = add_pattern(raw.decode("utf-8"), intents.file, request.intent, request.pattern)
    path_abs = os.path.join(repo.root_abs, intents.file)
    if changed is None:
        raise errors.ConfigError(
            f"{path_abs}: cannot be changed without changing more than the scope of "
            f"{request.intent}; nothing was written",
            f"Add {_quoted(request.pattern)} to its `owned_scope` yourself.",
        )
    require_person(repo, _APPROVE, token)
    replace_unchanged(repo.root_abs, intents.file, raw, changed.encode())
    approve_intents(repo, config)
    return path_abs


def _approve_command(name: str, pattern: str) -> str:
    return f"gitgates {_APPROVE} {name} {_quoted(pattern)}"


def _quoted(pattern: str) -> str:
    return quote(visible_line(pattern))


def _holder_document(live: Leases, name: str) -> dict[str, str] | None:
    """Return who holds an intent, and since when and until when; None if nobody does."""
    if (lease := live.get(name)) is None:
        return None
    times = {"since": utc(lease.acquired_s), "until": utc(lease.until_s)}
    return {**lease.holder._asdict(), **times}


for _verb in (select, release):
    command.add_command(_verb)

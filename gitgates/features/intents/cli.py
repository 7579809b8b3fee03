"""`gitgates intent`: what agents may work on, and where."""

from __future__ import annotations

import json
import os
from shlex import quote

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.errors import StateError, UsageError
from gitgates.core.record import Record
from gitgates.drivers.caller import find_caller, identify
from gitgates.drivers.rules import APPROVE
from gitgates.drivers.shell_commands import OPTION
from gitgates.features.intents import lease as leases_of
from gitgates.features.intents.approved import approve_intents, intents_of_session, is_unapproved
from gitgates.features.intents.context import context_of
from gitgates.features.intents.facts import IntentSelectedEntry
from gitgates.features.intents.file import load, read_intents
from gitgates.features.intents.gatekeeper import describe_active
from gitgates.features.intents.intent import Intents, settings_of
from gitgates.features.intents.lease import Holder, read_leases
from gitgates.features.intents.parse import ROOT_KEY, parse
from gitgates.features.intents.scope import nearest, wrong_pattern
from gitgates.git.repo import find_repo
from gitgates.hosts import calling_session
from gitgates.journal.journal import fact_of
from gitgates.store.files import replace_unchanged
from gitgates.store.log import file_name, read_ledger, utc, write_ledger
from gitgates.verbs.approval import require_person
from gitgates.verbs.output import format_option, print_json, table
from gitgates.verbs.repository import configuration, current_repo, edits_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.drivers.caller import Caller
    from gitgates.features.intents.intent import Intents
    from gitgates.git.repo import Repo

_VERSION = 1
_APPROVE = "intent approve-scope"
_UNLIMITED = 1 << 30
_OWN_SESSION = (
    "Your own session holds it. If this is your work, stop, and tell the session to run "
    "`gitgates intent release` before it starts a sub-agent for it."
)
_caller_option = click.option(OPTION, default="", hidden=True)
_session_option = click.option(
    "--session", default="", metavar="ID", help="The agent's session. Default: the calling session."
)
_agent_option = click.option(
    "--agent", default="", metavar="ID", help="A sub-agent of that session."
)


@click.group("intent")
def command() -> None:
    """Show what agents may work on, and where.

    A person writes the intents to a file, by default .orchestration/active_intents.yaml, or the one
    set in [tool.gitgates.intents]. An agent selects one that is IN_PROGRESS.
    """


def _open_intents() -> tuple[Repo, Intents]:
    """Return the current folder's repository, and its intents.

    Raises: ConfigError, GitError; IntentsError if the file has problems.
    """
    repo = current_repo()
    config = configuration(repo)
    settings_of(config)
    return repo, load(repo, config)


@command.command("list")
@click.option("--path", metavar="PATH", help="Only intents whose scope may contain this path.")
@format_option
def list_intents(path: str | None, fmt: str) -> int:
    """List the intents, in the file's order; with --path, the closest first."""
    repo, intents = _open_intents()
    matching = intents.intents
    if path is not None:
        most, ignore_case = len(matching), repo.ignores_case
        matching = nearest(matching, repo.relative(path), most, ignore_case=ignore_case)
    if fmt == "json":
        documents = [intent._asdict() for intent in matching]
        print_json({"version": _VERSION, "file": intents.file, "intents": documents})
    elif matching:
        rows = [(intent.id, intent.status, intent.priority, intent.title) for intent in matching]
        click.echo(table([*rows]), nl=False)
    else:
        click.echo(f"gitgates: {intents.file}: no matching intents", err=True)
    return errors.OK


@command.command("show")
@click.argument("name", metavar="ID")
def show(name: str) -> int:
    """Show one intent in full, with the latest work on it, as agents see it."""
    repo, intents = _open_intents()
    intent = intents.find(name)
    click.echo(context_of(repo, configuration(repo), intent, _UNLIMITED), nl=False)
    return errors.OK


@command.command("validate")
def validate() -> int:
    """Check the intents file, and report every problem at once.

    Exit status 0: it is valid or does not exist. 78: it has errors.
    """
    repo, intents = _open_intents()
    if read_intents(repo.root_abs, intents.file) is None:
        click.echo(f"{intents.file}: file not found, so there are no intents")
    else:
        total, active = counted(len(intents.intents), "intent"), len(intents.active)
        click.echo(f"{intents.file}: {total}, {active} selectable, no problems")
    return errors.OK


@command.command("status")
@click.argument("name", metavar="[ID]", required=False)
@format_option
def status(name: str | None, fmt: str) -> int:
    """Show the intents that can be selected, their holders, and requests waiting for a person."""
    repo, intents = _open_intents()
    displayed = (intents.find(name),) if name else intents.active
    waiting = [r for r in open_requests(repo, intents) if name in (None, r.intent)]
    live = {n: lease for n, lease in read_leases(repo.shared_state_abs).items() if lease.is_live}
    if fmt == "json":
        holders = {
            n: {
                **lease.holder._asdict(),
                "since": utc(lease.acquired_s),
                "until": utc(lease.until_s),
            }
            for n, lease in live.items()
        }
        rows = [
            {"id": i.id, "title": i.title, "status": i.status, "held": holders.get(i.id)}
            for i in displayed
        ]
        requests = [request._asdict() for request in waiting]
        print_json({"version": _VERSION, "intents": rows, "scope_requests": requests})
        return errors.OK
    lines: list[tuple[str, ...]] = [
        (i.id, i.status, i.title, live[i.id].holding if i.id in live else "") for i in displayed
    ]
    click.echo(table(lines) if lines else "no intent can be selected\n", nl=False)
    for request in waiting:
        pattern, reason = quote(visible_line(request.pattern)), visible_line(request.reason)
        click.echo(f"{request.intent} requests {pattern}: {reason}")
        place = "" if request.root == repo.root_abs else f", in {visible_line(request.root)}"
        click.echo(f"  since {request.time}{place}; to approve it: {_approve_command(request)}")
    return errors.OK


@command.command("select")
@click.argument("name", metavar="ID")
@_session_option
@_agent_option
@_caller_option
def select(name: str, *, session: str, agent: str, caller: str) -> int:
    """Select the intent to work on, and print its context.

    The agent holds it until it releases it, selects another one, or is inactive for `ttl`.
    A sub-agent selects its own. Exit status 75: another agent holds it.
    """
    repo, resolved = _caller(session, agent, caller)
    config, holder = configuration(repo), Holder(resolved.session, resolved.agent)
    settings, intents = settings_of(config), intents_of_session(repo, config, holder.session)
    state_abs, intent = repo.shared_state_abs, intents.get(name)
    leases = read_leases(state_abs)
    if intent is None or not intent.is_active:
        why = f"{intent.id} is {intent.status}" if intent else f"{intents.file}: no such intent"
        hint = describe_active(intents, leases, holder)
        raise errors.UsageError(f"{why}; it cannot be selected", hint)
    lease = leases_of.acquire(
        state_abs, intent.id, holder, ttl_s=settings.ttl_s, git_dir_abs=repo.git_dir_abs
    )
    if lease.holder != holder:
        others = describe_active(intents, read_leases(state_abs), holder)
        hint = (
            f"The lease is extended while its holder works. Wait, or select another one:\n{others}"
        )
        if lease.holder == Holder(holder.session):
            hint += f"\n{_OWN_SESSION}"
        raise errors.LockError(f"{intent.id} is {lease.holding}", hint)
    _note(resolved, IntentSelectedEntry(holder.agent, intent.id))
    click.echo(f"{intent.id} is held by {holder} now.")
    if lease.former:
        click.echo(f"It was taken over from {lease.former}, whose lease had expired.")
    click.echo(context_of(repo, config, intent, settings.context_bytes), nl=False)
    return errors.OK


@command.command("release")
@_session_option
@_agent_option
@_caller_option
def release(session: str, agent: str, caller: str) -> int:
    """Release the held intent, so that others can select it."""
    repo, resolved = _caller(session, agent, caller)
    holder = Holder(resolved.session, resolved.agent)
    lease = leases_of.release(repo.shared_state_abs, holder)
    if lease is None:
        hint = "To see who holds which: gitgates intent status"
        raise errors.UsageError(f"{holder} holds no intent", hint)
    click.echo(f"released: {lease.intent}")
    return errors.OK


def _caller(session: str, agent: str, nonce: str) -> tuple[Repo, Caller]:
    repo = current_repo()
    return repo, find_caller(repo, environ.read(), session=session, agent=agent, nonce=nonce)


def _note(caller: Caller, selected: IntentSelectedEntry) -> None:
    journal = caller.journals[0]
    try:
        journal.append(fact_of(selected))
    except OSError as error:
        text = f"{journal.path_abs}: cannot be written: {error.strerror}"
        raise errors.StateError(text) from error


@command.command("scope-expansion-request")
@click.argument("name", metavar="ID")
@click.argument("pattern", metavar="GLOB")
@click.option("--reason", required=True, help="What needs to change there, for the person to read.")
@_caller_option
def scope_expansion_request(name: str, pattern: str, *, reason: str, caller: str) -> int:
    """Ask a person to add GLOB to the scope of an intent.

    GLOB is a pattern as in .gitignore, relative to the root. Nothing changes until a person
    approves it.

    Exit status 0: requested, or already in the scope. 64: unknown intent, or invalid pattern.
    """
    repo, intents = _open_intents()
    intent = intents.find(name)
    identified = identify(repo, environ.read(), nonce=caller) if caller else None
    session = identified.session if identified else calling_session(environ.read())
    if not reason.strip():
        raise errors.UsageError("--reason is empty", "Say what needs to change there.")
    request = new_request(repo, name, pattern, reason=reason, session=session)
    if pattern in intent.owned_scope:
        _say(f"{{}} is already in the scope of {name}", pattern)
        return errors.OK
    record(repo, REQUESTED, request)
    person = f"to approve it, a person runs: {_approve_command(request)}"
    _say(f"requested {{}} for the scope of {name}; {person}", pattern)
    return errors.OK


@command.command("approve-scope")
@click.argument("name", metavar="ID")
@click.argument("pattern", metavar="GLOB")
@click.option("--refuse", is_flag=True, help="Refuse the request.")
@click.option(
    "--token", default="", help="Token from a person: gitgates approve intent approve-scope."
)
@edits_files
def approve_scope(name: str, pattern: str, *, refuse: bool, token: str) -> int:
    """Add GLOB to the scope of an intent, as a person.

    Writes to the intents file in the worktree of the request, or in this one, if nothing else in
    the file changes. Needs a terminal, or a token.

    Exit status 0: done. 64: unknown intent or pattern, or not allowed. 78: the file must be changed
    by hand.
    """
    repo, intents = _open_intents()
    waiting = {(r.intent, r.pattern): r for r in open_requests(repo, intents)}
    request = waiting.get((name, pattern)) or new_request(repo, name, pattern)
    if refuse:
        require_person(repo, _APPROVE, token)
        record(repo, REFUSED, request)
        _say(f"{{}} is refused for the scope of {name}", pattern)
    elif path_abs := _approve(repo, request, token):
        record(repo, APPROVED, request)
        _say(f"{{}} is now in the scope of {name}: {path_abs}", pattern)
    else:
        _say(f"{{}} is already in the scope of {name}", pattern)
    return errors.OK


def _approve(repo: Repo, request: ScopeRequest, token: str) -> str:
    """Write a pattern into the intents file, as a person; return the file, or "" if it has it.

    Raises: UsageError without a person's approval, or if the request is invalid; ConfigError if
    the file has problems, or must be changed by hand.
    """
    if request.root != repo.root_abs and os.path.exists(f"{request.root}/.git"):
        other = find_repo(request.root, environ.read())
        repo = other if other.common_dir_abs == repo.common_dir_abs else repo
    config = configuration(repo)
    intents = load(repo, config)
    path_abs = os.path.join(repo.root_abs, intents.file)
    session = file_name(request.session) if request.session else ""
    if is_unapproved(repo, config, intents_of_session(repo, config, session)):
        raise errors.ConfigError(
            f"{path_abs}: was changed since a person approved it, so it does not apply; nothing "
            "was written",
            f"Review it (git diff HEAD). To approve it, run in a terminal: {APPROVE}",
        )
    if request.pattern in intents.find(request.intent).owned_scope:
        return ""
    raw = read_intents(repo.root_abs, intents.file) or b""
    changed = add_pattern(raw.decode("utf-8"), intents.file, request.intent, request.pattern)
    if changed is None:
        raise errors.ConfigError(
            f"{path_abs}: cannot be changed without changing more than the scope of "
            f"{request.intent}; nothing was written",
            f"Add {quote(visible_line(request.pattern))} to its `owned_scope` yourself.",
        )
    require_person(repo, _APPROVE, token)
    replace_unchanged(repo.root_abs, intents.file, raw, changed.encode())
    approve_intents(repo, config)
    return path_abs


def _approve_command(request: ScopeRequest) -> str:
    return f"gitgates {_APPROVE} {request.intent} {quote(visible_line(request.pattern))}"


def _say(text: str, pattern: str) -> None:
    click.echo(f"gitgates: {text.format(quote(visible_line(pattern)))}")


REQUESTED, APPROVED, REFUSED = "scope-requested", "scope-approved", "scope-refused"
_LONGEST_REASON = 500


class ScopeRequest(Record):
    """A pattern requested for an intent's scope."""

    intent: str
    pattern: str
    root: str  # the worktree's root, absolute
    reason: str = ""
    session: str = ""  # the asking agent's; empty: unknown
    time: str = ""


def new_request(
    repo: Repo, name: str, pattern: str, *, reason: str = "", session: str = ""
) -> ScopeRequest:
    """Return a request. Raises: UsageError if the pattern cannot be in a scope."""
    why = wrong_pattern(pattern)
    if pattern.startswith(("!", "-")):
        first = pattern[0]
        why = f"a pattern that does not begin with `{first}`; to match that, write \\{first}"
    if why:
        raise UsageError(f"got {quote(visible_line(pattern))}, expected {why}")
    line = " ".join(reason.split())[:_LONGEST_REASON]
    return ScopeRequest(name, pattern, repo.root_abs, reason=line, session=session)


def record(repo: Repo, what: str, request: ScopeRequest) -> None:
    """Append a request or its answer to the ledger.

    Raises: StateError if it cannot be written.
    """
    fields = request._asdict()
    del fields["time"]
    try:
        write_ledger(repo.shared_state_abs, what, fields)
    except OSError as error:
        folder_abs = repo.shared_state_abs
        raise StateError(f"{folder_abs}: cannot be written: {error.strerror}") from error


def open_requests(repo: Repo, intents: Intents) -> tuple[ScopeRequest, ...]:
    """Return the unanswered requests of all worktrees, oldest first.

    A request from this worktree, or from one that no longer exists, also counts as answered if a
    person has added its pattern to the scope by hand.
    """
    pending: dict[tuple[str, str, str], ScopeRequest] = {}
    for entry in read_ledger(repo.shared_state_abs):
        if entry.get("what") not in (REQUESTED, APPROVED, REFUSED):
            continue
        request = ScopeRequest(**{key: str(entry.get(key, "")) for key in ScopeRequest._fields})
        key = request.intent, request.pattern, request.root
        pending.pop(key, None)
        intent = intents.get(request.intent)
        is_here = request.root == repo.root_abs or not os.path.exists(f"{request.root}/.git")
        is_there = is_here and intent and request.pattern in intent.owned_scope
        if entry["what"] == REQUESTED and not is_there:
            pending[key] = request
    return tuple(pending.values())


_KEY = "owned_scope"


def add_pattern(text: str, file: str, name: str, pattern: str) -> str | None:
    """Return the text of an intents file with one more pattern in an intent's scope.

    None if an insertion alone cannot do that, or would change anything else, such as a scope that
    two intents share.
    """
    before, problems = parse(text, file)
    at = next((at for at, intent in enumerate(before) if intent.id == name), None)
    if problems or at is None:
        return None
    changed = _in_toml(text, at, pattern) if file.endswith(".toml") else _in_yaml(text, at, pattern)
    scope = (*before[at].owned_scope, pattern)
    expected = (*before[:at], before[at]._replace(owned_scope=scope), *before[at + 1 :])
    differ = (at for at, pair in enumerate(zip(text, changed, strict=False)) if len({*pair}) > 1)
    is_insertion = changed.endswith(text[next(differ, len(text)) :])
    return changed if is_insertion and parse(changed, file) == (expected, ()) else None


def _in_yaml(text: str, at: int, pattern: str) -> str:
    from gitgates.core.yaml_load import load_nodes

    intent = _value(load_nodes(text), ROOT_KEY).value[at]
    scope = _value(intent, _KEY)
    end = scope.value[-1].end_mark.index
    item = json.dumps(pattern, ensure_ascii=False)
    if scope.flow_style:
        return f"{text[:end]}, {item}{text[end:]}"
    line_end = "\r\n" if "\r\n" in text else "\n"
    line = f"{' ' * scope.start_mark.column}- {item}"
    next_line = text.find("\n", end) + 1  # after a comment on the last item's line
    if not next_line:
        return f"{text}{line_end}{line}"
    return f"{text[:next_line]}{line}{line_end}{text[next_line:]}"


def _value(mapping: Any, key: str) -> Any:  # noqa: ANN401 - PyYAML has no types
    return next(value for name, value in mapping.value if name.value == key)


def _in_toml(text: str, at: int, pattern: str) -> str:
    import tomlkit

    document: Any = tomlkit.parse(text)
    document[ROOT_KEY][at][_KEY].append(pattern)
    return str(document.as_string())

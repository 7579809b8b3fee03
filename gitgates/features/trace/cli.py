"""`gitgates trace`: which agent wrote what."""

from __future__ import annotations

import json
import os
import sys
import time

import click

from gitgates import __version__
from gitgates.core import errors
from gitgates.core.clean import counted, visible_line
from gitgates.core.policy import LABELS
from gitgates.features.trace import ledger
from gitgates.hosts import calling_session
from gitgates.store.files import link_out, replace_file
from gitgates.store.log import utc, write_ledger
from gitgates.store.messages import unicode_only
from gitgates.verbs.approval import require_person
from gitgates.verbs.output import format_option, print_json, table
from gitgates.verbs.repository import current_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.features.trace.blame import BlamedBlock
    from gitgates.git.repo import Repo
    from gitgates.store.log import Fact

_VERSION = 1
_EXPORT = ".orchestration/agent_trace.jsonl"
_AGENT_TRACE = "0.1.0"  # the version of that format; its schema requires three numbers
_PRUNE = "trace prune"
_DAY_S = 24 * 3600.0
_WRITER_FIELDS = (*LABELS, "session", "agent", "agent_type", "tool", "time")


@click.group("trace")
def command() -> int:
    """Show which agent wrote what, and with which intent; verify the ledger.

    The trace is on if intents are configured, or by `[tool.gitgates.trace]`. The ledger contains
    hashes of files and blocks, not their text.
    """
    return errors.OK


def _label_options(function: Callable[..., int]) -> Callable[..., int]:
    for label in LABELS:
        text = f"Only records of this {label}."
        function = click.option(f"--{label}", metavar="ID", default="", help=text)(function)
    return function


@command.command("show")
@_label_options
@click.option(
    "--session", metavar="ID", default="", help="Only records of this session; a prefix is enough."
)
@click.option("--path", metavar="FILE", default="", help="Only records that changed this file.")
@format_option
def show(session: str, path: str, fmt: str, **labels: str) -> int:
    """Show the trace's records, newest last."""
    repo = current_repo()
    path_in_repo = repo.relative(path) if path else ""
    selected = {label: text for label, text in labels.items() if text}
    records = [
        record
        for record in _records(repo)
        if selected.items() <= record.items()
        and record["session"].startswith(session)
        and (
            not path_in_repo
            or any(path_in_repo in (file["path"], file.get("was")) for file in record["files"])
        )
    ]
    if fmt == "json":
        print_json({"version": _VERSION, "records": records})
    for record in records if fmt == "text" else ():
        click.echo("  ".join([*_labels(record), ledger.summary(record)]))
    if not records:
        is_narrow = selected or session or path
        what = "no matching records" if is_narrow else "the trace has no records"
        click.echo(f"gitgates: {what}", err=True)
    return errors.OK


@command.command("blame")
@click.argument("file")
@format_option
def blame(file: str, fmt: str) -> int:
    """Show which intent and session wrote each line of FILE.

    `older`: the line existed when the memory of files began. Lines without a record belong to
    nobody in the trace.
    """
    from gitgates.features.trace import blame as writers  # the other verbs need no git

    repo = current_repo()
    path = repo.relative(file)
    path_abs = f"{repo.root_abs}/{path}"
    if path.startswith("..") or not os.path.isfile(path_abs):
        raise errors.UsageError(f"{file} is not a file in {repo.root_abs}", "Specify a text file.")
    blocks = writers.blame(repo, _records(repo), path)
    if fmt == "json":
        documents = [_as_json(block) for block in blocks]
        print_json({"version": _VERSION, "path": path, "blocks": documents})
    elif blocks:
        head = ("lines", *LABELS, "session", "tool", "time", "how")
        sys.stdout.write(table([head, *map(_row, blocks)]))
    return errors.OK


@command.command("verify")
def verify() -> int:
    """Check the ledger: each record against its hash, the chain, and its end.

    Exit status 1: the ledger is damaged; the first line says where the damage begins. This finds
    accidents and careless edits, not a forgery with recomputed hashes.
    """
    repo = current_repo()
    try:
        verification = ledger.verify(repo.common_dir_abs)
    except OSError as error:
        raise _unreadable(repo, error) from error
    for text in (*verification.problems, *verification.notes):
        click.echo(visible_line(text))
    if verification.problems:
        return errors.BLOCKED
    if verification.records:
        click.echo(f"{counted(verification.records, 'record')}, all intact")
    else:
        click.echo("the ledger has no records; nothing was verified")
    return errors.OK


@command.command("export")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="",
    help=f"Default: {_EXPORT}; - for standard output.",
)
def export(output: str) -> int:
    """Write the trace as Agent Trace records (agent-trace.dev), one per line.

    Writes the whole trace, and overwrites the file.
    """
    repo = current_repo()
    lines = (json.dumps(_agent_trace(record), ensure_ascii=False) for record in _records(repo))
    # A path may not be text; for other programs, half a surrogate pair is not valid JSON.
    data = unicode_only("".join(f"{line}\n" for line in lines)).encode()
    if output == "-":
        sys.stdout.buffer.write(data)
        return errors.OK
    path_abs = os.path.realpath(output) if output else f"{repo.root_abs}/{_EXPORT}"
    why = "" if output else link_out(path_abs, repo.root_abs)
    if os.path.exists(path_abs) and not os.path.isfile(path_abs):
        why = f"{path_abs} is not a regular file"
    if why:
        raise errors.UsageError(f"{why}: nothing was written", "Specify a file: --output FILE")
    try:
        os.makedirs(os.path.dirname(path_abs), exist_ok=True)
        replace_file(path_abs, data, mode=None)
    except OSError as error:
        raise errors.StateError(f"{path_abs}: cannot be written: {error.strerror}") from error
    return errors.OK


def _agent_trace(record: Fact) -> Fact:
    """Return a ledger record in the published format Agent Trace (https://agent-trace.dev).

    `metadata` has the whole record, under `gitgates`, because the format lacks fields for some of
    it. Removed blocks have no range. The model is unknown.
    """
    vcs = {"vcs": {"type": "git", "revision": record["commit"]}} if record["commit"] else {}
    files = [
        {"path": file["path"], "conversations": [_conversation(file)]} for file in record["files"]
    ]
    return {
        "version": _AGENT_TRACE,
        "id": record["id"],
        "timestamp": record["time"],
        **vcs,
        "tool": {"name": "gitgates", "version": __version__},
        "files": files,
        "metadata": {"gitgates": record},
    }


def _conversation(file: Fact) -> Fact:
    ranges = []
    for block in file["blocks"]:
        first, count = block["new"]
        if count:
            digest = f"sha256:{block['sha256']}"
            end = first + count - 1
            ranges.append({"start_line": first, "end_line": end, "content_hash": digest})
    return {"contributor": {"type": "ai"}, "ranges": ranges}


@command.command("prune")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="Keep the newest N records.")
@click.option("--older-than", metavar="DAYS", type=click.IntRange(min=0), help="Remove older ones.")
@click.option("--token", default="", help=f"Token from a person: gitgates approve {_PRUNE}.")
def prune(keep: int | None, older_than: int | None, token: str) -> int:
    """Remove the oldest records; add a line about it, so that the rest can be verified.

    Lines known only from removed records then belong to nobody. Needs a terminal, or a token.
    """
    if (keep is None) == (older_than is None):
        hint = "Use either --keep N or --older-than DAYS."
        raise errors.UsageError("specify what to remove", hint)
    repo = current_repo()
    require_person(repo, _PRUNE, token)
    session = calling_session(repo.env)
    name = os.fsdecode(repo.git.ask("config", "user.name").stdout).strip() or "somebody"
    by = f"session {session}, with a token of {name}" if session else name
    before = utc(time.time() - older_than * _DAY_S) if older_than is not None else ""
    most = -1 if keep is None else keep
    try:
        removed = ledger.prune(repo.common_dir_abs, by, before=before, keep=most)
        if removed:
            write_ledger(repo.shared_state_abs, "trace-pruned", {"by": by, "records": removed})
    except ValueError as error:
        what = f"the ledger is damaged, so nothing was removed: {error}"
        raise errors.StateError(what, "See: gitgates trace verify") from error
    except OSError as error:
        raise _unreadable(repo, error) from error
    click.echo(f"{removed} records removed")
    return errors.OK


def _records(repo: Repo) -> Iterator[Fact]:
    try:
        yield from ledger.records(repo.common_dir_abs)
    except OSError as error:
        raise _unreadable(repo, error) from error


def _unreadable(repo: Repo, error: OSError) -> errors.StateError:
    location = error.filename or ledger.ledger_abs(repo.common_dir_abs)
    return errors.StateError(f"{location}: {error.strerror}", "Check the permissions of that file.")


def _as_json(block: BlamedBlock) -> dict[str, object]:
    record, how, until = block.writer
    fields = {name: record[name] if record else "" for name in _WRITER_FIELDS}
    fields["time"] = fields["time"] or until
    source = {"record": record["id"] if record else "", "how": how}
    return {"start": block.start, "end": block.end, **fields, **source}


def _row(block: BlamedBlock) -> tuple[str, ...]:
    lines = str(block.start) if block.start == block.end else f"{block.start}-{block.end}"
    record, how, until = block.writer
    if not record:
        since = f"{until[:19]}Z" if until else ""
        return lines, *("-" for _label in LABELS), "nobody in the trace", "", since, how
    writer = map(visible_line, (ledger.who(record), record["tool"]))
    return lines, *_labels(record), *writer, f"{record['time'][:19]}Z", how


def _labels(record: Fact) -> list[str]:
    return [visible_line(record[label]) or "-" for label in LABELS]

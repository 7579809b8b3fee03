"""`gitgates journal`: the message log of the repository, for people, scripts and agents."""

from __future__ import annotations

import json
import os
import sys

import click

from gitgates.config.values import did_you_mean
from gitgates.core import environ, errors
from gitgates.core.clean import sanitise, visible_line
from gitgates.hosts import calling_session
from gitgates.store import messages
from gitgates.store.messages import MOST_TEXT, Message, MessageLog, normalise_id
from gitgates.verbs.output import format_option, print_json, table
from gitgates.verbs.repository import current_repo, post_message

_VERSION = 1
_SHOWN = 20
_SHORT_COMMIT = 12
_limit = click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=_SHOWN,
    show_default=True,
    help="Maximum number; 0: all.",
)


def _complete_topics(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete topics, without error messages."""
    try:
        known = dict.fromkeys(one.topic for one in messages.read_log(_state()).messages)
    except errors.GitgatesError:
        return []
    return [topic for topic in known if topic.startswith(incomplete) and topic.isprintable()]


@click.group("journal", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Post to the repository's message log, read it, search it (without a command: its topics).

    All worktrees, people, scripts and agents share one append-only log. It needs no configuration.
    """
    if context.invoked_subcommand is None:
        context.invoke(topics, fmt="text")
    return errors.OK


@command.command("post")
@click.argument("topic", shell_complete=_complete_topics)
@click.option(
    "-m",
    "--message",
    "given",
    metavar="TEXT",
    multiple=True,
    help="Text; - for standard input, which is also read without -m. Each further -m is a new "
    "paragraph.",
)
@click.option(
    "--ref", "refs", metavar="ID", multiple=True, help="Id of a message that this one refers to."
)
def post(topic: str, given: tuple[str, ...], refs: tuple[str, ...]) -> int:
    """Append a message to TOPIC; print its id.

    A topic is one line, such as `build` or `review/parser`. The message also records the
    time, the commit and branch checked out, whether there are uncommitted changes, and the session
    of the posting agent. To refer to an earlier message: --ref ID.
    """
    draft = Message(
        topic=topic,
        text="\n\n".join(given) if given not in ((), ("-",)) else _standard_input(),
        session=calling_session(environ.read()),
        refs=refs,
    )
    click.echo(post_message(current_repo(), draft))
    return errors.OK


@command.command("read")
@click.argument("topic", shell_complete=_complete_topics)
@_limit
@click.option("--since", metavar="ID", default="", help="Only messages after this one.")
@format_option
def read(topic: str, limit: int, since: str, fmt: str) -> int:
    """Show the newest messages of TOPIC, the newest last.

    A topic that ends in `/` includes all topics below it: `review/` shows `review/parser`.
    """
    log = _log()
    later = _after(log, since) if since else log.messages
    found = [one for one in later if messages.is_in(one.topic, topic)]
    shown = found[-limit:]
    if fmt == "json":
        listed = [messages.as_json(one) for one in shown]
        print_json({"version": _VERSION, "messages": listed, "total": len(found)})
        return errors.OK
    sys.stdout.writelines(_message_text(one) for one in shown)
    if not found:
        click.echo(_nothing_in(log, topic, since), err=True)
    _tell_more(len(found) - len(shown), "older", limit)
    return errors.OK


@command.command("show")
@click.argument("message_id", metavar="ID")
@format_option
def show(message_id: str, fmt: str) -> int:
    """Show one message, by its id."""
    message = messages.find(_state(), message_id)
    if message is None:
        raise _unknown(message_id)
    if fmt == "json":
        print_json({"version": _VERSION, "messages": [messages.as_json(message)]})
    else:
        sys.stdout.write(_message_text(message))
    return errors.OK


@command.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--topic",
    metavar="TOPIC",
    default="",
    shell_complete=_complete_topics,
    help="Only this topic; with / at the end, all topics below it.",
)
@_limit
@format_option
def search(query: tuple[str, ...], topic: str, limit: int, fmt: str) -> int:
    """Show the messages with all words of QUERY, best match first.

    Searches topics and texts, ignoring case and accents. `pars*` matches a prefix, and
    `"out of memory"` a phrase; other characters have no special meaning.
    """
    from gitgates.features.messages.search import search as find_messages  # loads `re` and sqlite3
    from gitgates.features.messages.search import snippet

    found = find_messages(_state(), " ".join(query), topic=topic, limit=limit)
    parts = [(one, snippet(one.text, found.terms)) for one in found.messages]
    if fmt == "json":
        listed = [{**messages.as_json(one), "snippet": part} for one, part in parts]
        print_json({"version": _VERSION, "messages": listed, "total": found.total})
        return errors.OK
    for one, part in parts:
        sys.stdout.write(f"{_head(one)}    {_on_one_line(part)}\n")
    if not parts:
        click.echo("gitgates: no matching message", err=True)
    _tell_more(found.total - len(parts), "more", limit)
    return errors.OK


@command.command("topics")
@format_option
def topics(fmt: str) -> int:
    """List the topics, the one with the newest message first."""
    found: dict[str, tuple[int, str]] = {}
    for one in _log().messages:
        found[one.topic] = (found.pop(one.topic, (0, ""))[0] + 1, one.time)
    rows = [(topic, number, last) for topic, (number, last) in reversed(found.items())]
    if fmt == "json":
        listed = [
            {"topic": topic, "messages": number, "last": last} for topic, number, last in rows
        ]
        print_json({"version": _VERSION, "topics": listed})
    elif not rows:
        sys.stdout.write("no messages\n")
    else:
        lines = [(str(number), _seconds(last), _on_one_line(topic)) for topic, number, last in rows]
        sys.stdout.write(table([("messages", "last", "topic"), *lines], right=(0,)))
    return errors.OK


@command.command("export")
@click.option("-o", "--output", metavar="FILE", default="", help="Default: standard output.")
def export(output: str) -> int:
    """Write all messages as JSON lines, byte for byte as in the log, oldest first."""
    log = _log()
    data = b"".join(line + b"\n" for line in log.lines)
    if not output:
        sys.stdout.buffer.write(data)
        return errors.OK
    log_abs = messages.file_abs(_state())
    if os.path.exists(log_abs) and os.path.exists(output) and os.path.samefile(log_abs, output):
        raise errors.UsageError(
            f"--output {output}: is the message log itself", "Choose another file."
        )
    try:
        with open(output, "wb") as file:
            file.write(data)
    except OSError as error:
        raise errors.StateError(
            f"--output {output}: cannot be written: {error.strerror}"
        ) from error
    return errors.OK


def _state() -> str:
    return current_repo().shared_state_abs


def _log() -> MessageLog:
    """Return the log; report lines that cannot be parsed."""
    log = messages.read_log(_state())
    if log.left_out:
        what = "1 line is" if log.left_out == 1 else f"{log.left_out} lines are"
        path_abs = messages.file_abs(_state())
        click.echo(
            f"gitgates: {path_abs}: {what} damaged or of an unknown version; skipped", err=True
        )
    return log


def _after(log: MessageLog, since: str) -> tuple[Message, ...]:
    ids = [one.id for one in log.messages]
    for wanted in (since, normalise_id(since)):
        if wanted in ids:
            return log.messages[ids.index(wanted) + 1 :]
    raise _unknown(since)


def _unknown(message_id: str) -> errors.UsageError:
    hint = "Ids are shown by `gitgates journal post`, `read` and `search`."
    return errors.UsageError(f"no message `{_on_one_line(message_id)}`", hint)


def _nothing_in(log: MessageLog, topic: str, since: str) -> str:
    said = f"gitgates: no message in `{_on_one_line(topic)}`"
    known = tuple(dict.fromkeys(one.topic for one in log.messages))
    if any(messages.is_in(one, topic) for one in known):
        return f"{said} after {_on_one_line(since)}" if since else said
    near = did_you_mean(topic, known)
    return f"{said}. {_on_one_line(near)}" if near else said


def _tell_more(number: int, which: str, limit: int) -> None:
    if number > 0:
        click.echo(f"gitgates: {number} {which}; --limit {limit + number} shows all", err=True)


def _standard_input() -> str:
    """Return standard input without its last newline.

    Raises: UsageError where nobody says anything there, or too much is said.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise errors.UsageError("the message is empty", "Use -m TEXT, or pipe it in.")
    raw = sys.stdin.buffer.read(MOST_TEXT + 3)
    said = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if len(raw) > MOST_TEXT + 2:
        raise errors.UsageError(
            f"the text is longer than {MOST_TEXT} bytes",
            "Post a summary, and name the file with the rest.",
        )
    return said


def _message_text(message: Message) -> str:
    """Return a whole message, without escape sequences."""
    plain = sanitise(message.text.encode("utf-8", "replace"), colour=False).decode()
    body = "".join(f"    {line}".rstrip() + "\n" for line in plain.split("\n"))
    return f"{_head(message)}  {_circumstances(message)}\n\n{body}\n"


def _head(message: Message) -> str:
    topic = _on_one_line(message.topic)
    return f"{_on_one_line(message.id)}  {_seconds(message.time)}  {topic}\n"


def _circumstances(message: Message) -> str:
    where = message.branch or ("detached" if message.commit else "no branch")
    at = message.commit[:_SHORT_COMMIT] or "no commit"
    more = {
        "session": message.session,
        "agent": message.agent,
        "refs": ", ".join(message.refs),
    }
    parts = [f"{where} {at}, {'dirty' if message.dirty else 'clean'}"]
    parts += [f"{name} {value}" for name, value in more.items() if value]
    parts += [json.dumps(dict(message.data))] if message.data else []
    return _on_one_line("; ".join(parts))


def _on_one_line(text: str) -> str:
    """Return text as one line, with control characters escaped."""
    return visible_line(" ".join(text.split()))


def _seconds(time: str) -> str:
    return f"{time[:19]}Z"

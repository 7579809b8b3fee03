"""`gitgates journal`: the repository's message log, for people, scripts and agents."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterator

import click

from gitgates.config.values import did_you_mean
from gitgates.core import environ, errors
from gitgates.core.clean import sanitise, visible_line
from gitgates.hosts import calling_session
from gitgates.store import messages
from gitgates.store.messages import MOST_TEXT, Message, normalise_id
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
        all_messages = (message for _line, message in messages.stream(_state()))
        all_topics = dict.fromkeys(message.topic for message in all_messages if message)
    except errors.GitgatesError:
        return []
    return [topic for topic in all_topics if topic.startswith(incomplete) and topic.isprintable()]


@click.group("journal", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Post to the repository's message log, read it, search it (without a command: list topics).

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
    "texts",
    metavar="TEXT",
    multiple=True,
    help="Text; - for standard input, which is also read without -m. Each further -m is a new "
    "paragraph.",
)
@click.option(
    "--ref", "refs", metavar="ID", multiple=True, help="Id of a message that this one refers to."
)
def post(topic: str, texts: tuple[str, ...], refs: tuple[str, ...]) -> int:
    """Append a message to TOPIC; print its id.

    A topic is one line, such as `build` or `review/parser`. The message also records the
    time, the commit and branch checked out, whether there are uncommitted changes, and the session
    of the posting agent. Use --ref ID to refer to an earlier message.
    """
    draft = Message(
        topic=topic,
        text="\n\n".join(texts) if texts not in ((), ("-",)) else _standard_input(),
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
    """Show the newest messages in TOPIC, newest last.

    A topic that ends in `/` includes all topics below it: `review/` shows `review/parser`.
    """
    newest: deque[Message] = deque(maxlen=limit or None)
    total, found, all_topics = 0, "", dict[str, None]()
    for _line, message in _readable():
        all_topics[message.topic] = None
        if (not since or found) and messages.is_in(message.topic, topic):
            newest.append(message)
            total += 1
        if message.id in (since, normalise_id(since)) and found != since:
            found, total = message.id, 0  # the id as typed wins over the normalised one
            newest.clear()
    if since and not found:
        raise _unknown(since)
    if fmt == "json":
        documents = [messages.as_json(message) for message in newest]
        print_json({"version": _VERSION, "messages": documents, "total": total})
        return errors.OK
    sys.stdout.writelines(_message_text(message) for message in newest)
    if not total:
        click.echo(_nothing_in(tuple(all_topics), topic, since), err=True)
    _report_more(total - len(newest), "older", limit)
    return errors.OK


@command.command("show")
@click.argument("message_id", metavar="ID")
@format_option
def show(message_id: str, fmt: str) -> int:
    """Show one message by its id."""
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
    """Show the messages that contain all words of QUERY, best match first.

    Searches topics and texts, ignoring case and accents. `pars*` matches a prefix, and
    `"out of memory"` a phrase; other characters have no special meaning.
    """
    from gitgates.features.messages.search import search as find_messages  # loads `re` and sqlite3
    from gitgates.features.messages.search import snippet

    matches = find_messages(_state(), " ".join(query), topic=topic, limit=limit)
    excerpts = [(message, snippet(message.text, matches.terms)) for message in matches.messages]
    if fmt == "json":
        documents = [
            {**messages.as_json(message), "snippet": excerpt} for message, excerpt in excerpts
        ]
        print_json({"version": _VERSION, "messages": documents, "total": matches.total})
        return errors.OK
    for message, excerpt in excerpts:
        sys.stdout.write(f"{_head(message)}    {_on_one_line(excerpt)}\n")
    if not excerpts:
        click.echo("gitgates: no matching message", err=True)
    _report_more(matches.total - len(excerpts), "more", limit)
    return errors.OK


@command.command("topics")
@format_option
def topics(fmt: str) -> int:
    """List the topics, the one with the newest message first."""
    counts: dict[str, tuple[int, str]] = {}
    for _line, message in _readable():
        counts[message.topic] = (counts.pop(message.topic, (0, ""))[0] + 1, message.time)
    rows = [(topic, number, last) for topic, (number, last) in reversed(counts.items())]
    if fmt == "json":
        documents = [
            {"topic": topic, "messages": number, "last": last} for topic, number, last in rows
        ]
        print_json({"version": _VERSION, "topics": documents})
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
    data = b"".join(line + b"\n" for line, _message in _readable())
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


def _readable() -> Iterator[tuple[bytes, Message]]:
    """Yield each line of the log with its message; report lines that cannot be parsed."""
    left_out = 0
    for line, message in messages.stream(_state()):
        if message:
            yield line, message
        left_out += message is None
    if left_out:
        what = "1 line is" if left_out == 1 else f"{left_out} lines are"
        path_abs = messages.file_abs(_state())
        click.echo(
            f"gitgates: {path_abs}: {what} damaged or of an unknown version; skipped", err=True
        )


def _unknown(message_id: str) -> errors.UsageError:
    hint = "Ids are shown by `gitgates journal post`, `read` and `search`."
    return errors.UsageError(f"no message `{_on_one_line(message_id)}`", hint)


def _nothing_in(all_topics: tuple[str, ...], topic: str, since: str) -> str:
    problem = f"gitgates: no message in `{_on_one_line(topic)}`"
    if any(messages.is_in(name, topic) for name in all_topics):
        return f"{problem} after {_on_one_line(since)}" if since else problem
    near = did_you_mean(topic, all_topics)
    return f"{problem}. {_on_one_line(near)}" if near else problem


def _report_more(number: int, which: str, limit: int) -> None:
    if number > 0:
        click.echo(f"gitgates: {number} {which}; --limit {limit + number} shows all", err=True)


def _standard_input() -> str:
    """Return standard input without its final newline.

    Raises: UsageError if there is no input, or the text is too long.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise errors.UsageError("the message is empty", "Use -m TEXT, or pipe it in.")
    raw = sys.stdin.buffer.read(MOST_TEXT + 3)
    text = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if len(raw) > MOST_TEXT + 2:
        raise errors.UsageError(
            f"the text is longer than {MOST_TEXT} bytes",
            "Post a summary, and name the file with the rest.",
        )
    return text


def _message_text(message: Message) -> str:
    """Return a whole message, without escape sequences."""
    plain = sanitise(message.text.encode("utf-8", "replace"), colour=False).decode()
    body = "".join(f"    {line}".rstrip() + "\n" for line in plain.split("\n"))
    return f"{_head(message)}  {_circumstances(message)}\n\n{body}\n"


def _head(message: Message) -> str:
    topic = _on_one_line(message.topic)
    return f"{_on_one_line(message.id)}  {_seconds(message.time)}  {topic}\n"


def _circumstances(message: Message) -> str:
    branch = message.branch or ("detached" if message.commit else "no branch")
    commit = message.commit[:_SHORT_COMMIT] or "no commit"
    more = {
        "session": message.session,
        "agent": message.agent,
        "refs": ", ".join(message.refs),
    }
    parts = [f"{branch} {commit}, {'dirty' if message.dirty else 'clean'}"]
    parts += [f"{name} {value}" for name, value in more.items() if value]
    parts += [json.dumps(dict(message.data))] if message.data else []
    return _on_one_line("; ".join(parts))


def _on_one_line(text: str) -> str:
    """Return text as one line, with control characters escaped."""
    return visible_line(" ".join(text.split()))


def _seconds(time: str) -> str:
    return f"{time[:19]}Z"

"""A repository's message log: append-only, shared by its worktrees, one JSON object per line.

An id counts hundredths of a second since the epoch, in Crockford's base 32: short, sortable, and
without letters that look like digits. Ids are assigned under the log's lock, each one greater than
the last, so they are unique and in the order of the lines.
"""

from __future__ import annotations

import os
import time
from itertools import islice

from gitgates.core.clean import visible_line
from gitgates.core.errors import StateError, UsageError
from gitgates.core.record import Record
from gitgates.store.files import length_of
from gitgates.store.log import append_lines, lines_of, parse_lines, read_lines, to_line, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.store.log import Fact

FILE = "messages.jsonl"
VERSION = 1
MOST_TEXT = 1024 * 1024  # bytes, as UTF-8
MOST_TOPIC = 200  # characters
_LONGEST_EXCERPT = 40  # characters of input in an error
_TAIL = 4096
_NEWEST_BYTES = 1 << 20
_FEW = 20  # up to so many ids are searched for in each line before it is parsed
_AT_ONCE = 1000  # lines that are parsed together, which is quicker
_TEXTS = ("id", "time", "topic", "text", "session", "agent", "commit", "branch")
_TOPIC_HINT = "Use a name such as `build` or `review/parser`."
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_READ = str.maketrans(_DIGITS, "0123456789abcdefghijklmnopqrstuv")  # as `int` reads the same
_MISTYPED = str.maketrans("oil", "011")
_CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_EACH_DIGIT = str.maketrans("123456789", "000000000")


class Message(Record):
    """One message. Before it is posted, it has no id and no time."""

    topic: str
    text: str
    id: str = ""
    time: str = ""  # as `utc` writes it
    session: str = ""
    agent: str = ""  # a sub-agent's id
    commit: str = ""  # that was checked out; empty: none yet
    branch: str = ""  # empty: none was checked out
    dirty: bool = False  # there were changes or untracked files, or git could not say
    data: Mapping[str, object] = {}  # what the message is about, by name
    refs: tuple[str, ...] = ()  # ids of other messages


class MessageLog(Record):
    """All messages, the oldest first."""

    messages: tuple[Message, ...]
    lines: tuple[bytes, ...]  # of these messages, as in the file
    left_out: int  # lines that are torn, damaged, or of another version


def post(shared_state_abs: str, draft: Message) -> Message:
    """Append a message; return it with its id and time.

    Anything in its texts that is not Unicode becomes U+FFFD.

    Raises: UsageError if topic, text or refs make no sense; StateError if the log cannot be
    written, or read for the refs.
    """
    _check_topic(draft.topic)
    _check_text(draft.text)
    stamp_ms = int(time.time() * 1000)  # never later than it is
    message = draft._replace(
        time=utc(stamp_ms / 1000, milliseconds=True),
        text=unicode_only(draft.text),
        session=unicode_only(draft.session),
        agent=unicode_only(draft.agent),
        branch=unicode_only(draft.branch),
        refs=_existing_ids(shared_state_abs, draft.refs),
    )
    posted: list[Message] = []

    def make(fd: int, size: int) -> bytes:
        number = max(stamp_ms // 10, _last_number(fd, size) + 1)
        posted.append(message._replace(id=id_of(number)))
        return to_line({"v": VERSION, **as_json(posted[-1])})

    path_abs = file_abs(shared_state_abs)
    try:
        append_lines(path_abs, make)
    except OSError as error:
        raise StateError(
            f"{path_abs}: nothing was posted: {error.strerror or error}",
            "Check the permissions of that folder and its disk space, and post again.",
        ) from error
    return posted[-1]


def find(shared_state_abs: str, message_id: str) -> Message | None:
    """Return a message by its id; None if there is none.

    Letters that are easily mistyped are read as the digits that they look like.

    Raises: StateError if the log cannot be read.
    """
    return _find_all(shared_state_abs, (message_id,)).get(message_id)


def _find_all(shared_state_abs: str, message_ids: tuple[str, ...]) -> dict[str, Message]:
    """Return messages by their ids, as they were given.

    Raises: as `find`.
    """
    meant = {
        given: {unicode_only(given), normalise_id(unicode_only(given))} for given in message_ids
    }
    parts = [id_.encode() for ids in meant.values() for id_ in ids]
    length = _NEWEST_BYTES  # usually, they are recent
    try:
        size = length_of(file_abs(shared_state_abs))
        while True:
            lines = read_newest(shared_state_abs, length)
            if len(parts) < _FEW:
                candidates = (
                    line for line in lines.split(b"\n") if any(id_ in line for id_ in parts)
                )
                lines = b"\n".join(candidates)
            by_id = {message.id: message for message in parse_log(lines).messages[::-1]}
            pairs = ((given, ids & by_id.keys()) for given, ids in meant.items())
            messages = {id_: by_id[min(ids)] for id_, ids in pairs if ids}
            if len(messages) == len(meant) or length >= size:
                return messages
            length *= 4
    except OSError as error:
        raise _unreadable(shared_state_abs, error) from error


def read_newest(shared_state_abs: str, length: int) -> bytes:
    """Return the complete lines in the last bytes of the log; of a shorter log, all lines.

    Raises: OSError if it cannot be read.
    """
    path_abs = file_abs(shared_state_abs)
    start = max(length_of(path_abs) - length, 0)
    lines = read_lines(path_abs, start)
    return lines.partition(b"\n")[2] if start else lines


def read_log(shared_state_abs: str) -> MessageLog:
    """Return the whole log.

    Raises: StateError if it cannot be read.
    """
    try:
        return parse_log(read_lines(file_abs(shared_state_abs)))
    except OSError as error:
        raise _unreadable(shared_state_abs, error) from error


def stream(shared_state_abs: str) -> Iterator[tuple[bytes, Message | None]]:
    """Yield each line of the log without its newline, and its message, or None if invalid.

    Raises: StateError if the log cannot be read.
    """
    try:
        lines = lines_of(file_abs(shared_state_abs))
        while part := [*islice(lines, _AT_ONCE)]:
            texts = [text for line in part if (text := line.rstrip(b"\n"))]
            yield from zip(texts, map(_message, parse_lines(texts)), strict=True)
    except OSError as error:
        raise _unreadable(shared_state_abs, error) from error


def _unreadable(shared_state_abs: str, error: OSError) -> StateError:
    what = f"{file_abs(shared_state_abs)}: cannot be read: {error.strerror or error}"
    return StateError(what, "Check its permissions.")


def parse_log(raw: bytes) -> MessageLog:
    """Return the messages in a part of a log."""
    lines = [line for line in raw.split(b"\n") if line]
    read = zip(lines, map(_message, parse_lines(lines)), strict=True)
    pairs = [(line, message) for line, message in read if message]
    return MessageLog(
        messages=tuple(message for _line, message in pairs),
        lines=tuple(line for line, _message in pairs),
        left_out=len(lines) - len(pairs),
    )


def message_at(line: bytes) -> Message | None:
    """Return the message in a line; None if the line is invalid."""
    return _message(parse_lines([line])[0])


def is_in(topic: str, selector: str) -> bool:
    """Return whether a topic equals another, or is below it if that ends in `/`."""
    is_above = selector.endswith("/") or not selector
    return topic.startswith(selector) if is_above else topic == selector


def file_abs(shared_state_abs: str) -> str:
    """Return the path of the log."""
    return f"{shared_state_abs}/{FILE}"


def as_json(message: Message) -> dict[str, object]:
    """Return a message as a JSON object."""
    fields: dict[str, object] = message._asdict()
    text = fields.pop("text")
    first = {name: fields.pop(name) for name in ("id", "time", "topic")}
    data, refs = dict(message.data), list(message.refs)
    return {**first, **fields, "refs": refs, "data": data, "text": text}


def id_of(number: int) -> str:
    """Return the id of a number."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def number_of(message_id: str) -> int:
    """Return the number of an id; 0 if it is not a gitgates id."""
    if not message_id or not set(message_id) <= set(_DIGITS):
        return 0
    return int(message_id.translate(_READ), len(_DIGITS))


def normalise_id(typed: str) -> str:
    """Normalise a typed id: `O` for `0`, `l` for `1`, in capitals."""
    return typed.strip().lower().translate(_MISTYPED)


def unicode_only(text: str) -> str:
    """Replace each surrogate with U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes that were not UTF-8 became lone surrogates, which no other program could read.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def excerpt(text: str) -> str:
    """Return the beginning of a text for an error message."""
    return visible_line(text[:_LONGEST_EXCERPT])


def _check_text(text: str) -> None:
    if not text.strip():
        raise UsageError("the text is empty", "Pass text with -m TEXT, or on standard input.")
    if "\0" in text:
        raise UsageError("the text contains a NUL character", "Post text, and name files by path.")
    length = len(text.encode("utf-8", "replace"))
    if length > MOST_TEXT:
        raise UsageError(
            f"the text has {length} bytes; the maximum is {MOST_TEXT}",
            "Post a summary, and name the file with the rest.",
        )


def _check_topic(topic: str) -> None:
    """Refuse a topic that could not be typed, shown on one line, or distinguished from another."""
    if not topic.strip("/ "):
        raise UsageError("the topic is empty", _TOPIC_HINT)
    if len(topic) > MOST_TOPIC:
        why = f"the topic has {len(topic)} characters; the maximum is {MOST_TOPIC}"
        raise UsageError(why, _TOPIC_HINT)
    if topic != unicode_only(topic):
        why = "is not valid UTF-8"
    elif topic.splitlines() != [topic] or _CONTROLS & set(topic):
        why = "has a control character or a second line"
    elif any(not part or part != part.strip() for part in topic.split("/")):
        why = "has an empty part, or a leading or trailing space"
    else:
        return
    raise UsageError(f"the topic `{excerpt(topic)}` {why}", _TOPIC_HINT)


def _existing_ids(shared_state_abs: str, refs: tuple[str, ...]) -> tuple[str, ...]:
    known = _find_all(shared_state_abs, refs) if refs else {}
    for ref in refs:
        if ref not in known:
            hint = "Ids are shown by `gitgates journal post` and `read`."
            raise UsageError(f"no message `{excerpt(ref)}` to refer to", hint)
    return tuple(dict.fromkeys(known[ref].id for ref in refs))


def _last_number(fd: int, size: int) -> int:
    """Return the number of our newest id in the file; 0 if there is none."""
    length = _TAIL
    while True:
        start = max(size - length, 0)
        lines = os.pread(fd, size - start, start).split(b"\n")
        for line in reversed(lines[1:] if start else lines):
            message = message_at(line) if line else None
            if message and (number := number_of(message.id)):
                return number
        if not start:
            return 0
        length *= 16


def _message(fact: Fact | None) -> Message | None:
    if fact is None or fact.get("v") != VERSION:
        return None
    texts = {name: fact.get(name, "") for name in _TEXTS}
    refs, data = fact.get("refs", []), fact.get("data", {})
    if not isinstance(refs, list) or not isinstance(data, dict):
        return None
    if not all(isinstance(text, str) for text in (*texts.values(), *refs)):
        return None
    message = Message(**texts, dirty=fact.get("dirty") is True, data=data, refs=tuple(refs))
    has_time = message.time[:19].translate(_EACH_DIGIT) == "0000-00-00T00:00:00"
    is_whole = message.id and message.topic and has_time and message.time.endswith("Z")
    return message if is_whole else None

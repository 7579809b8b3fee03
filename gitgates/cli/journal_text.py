"""Messages as text for people. What anybody has posted can write on a terminal, and no more."""

from __future__ import annotations

import json
import sys
import unicodedata

from gitgates.clean import tame, visible_line
from gitgates.git.message_stamps import when
from gitgates.git.message_words import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.git.message_words import Term
    from gitgates.git.messages import Message

_SNIPPET = 160
_BEFORE = 60  # of that, what stands before the first word that was searched
_NEAR = 30
_SHORT_COMMIT = 12


def write(parts: Iterable[str]) -> None:
    """Write texts to standard output."""
    for part in parts:
        sys.stdout.write(part)


def message_text(message: Message) -> str:
    """Return a whole message."""
    plain = tame(message.text.encode("utf-8", "replace"), colour=False).decode()
    lines = plain.split("\n")
    body = "".join(f"    {line}".rstrip() + "\n" for line in lines)
    return f"{_head(message)}  {_standing(message)}\n\n{body}\n"


def found_text(message: Message, part: str) -> str:
    """Return what is shown of a message that was searched."""
    return f"{_head(message)}    {on_one_line(part)}\n"


def topics_text(rows: list[tuple[str, int, float]]) -> str:
    """Return topics, each with its number of messages and the time of the last one."""
    if not rows:
        return "no message is posted here\n"
    lines = [f"{'messages':>8}  {'last':<20}  topic"]
    lines += [f"{number:>8}  {_time(last)}  {on_one_line(topic)}" for topic, number, last in rows]
    return "".join(f"{line}\n" for line in lines)


def snippet(text: str, terms: tuple[Term, ...]) -> str:
    """Return a part of a text, with the first word in it that was searched."""
    text = unicodedata.normalize("NFC", text)
    wanted = tuple(word for term in terms for word in term.words.split())
    begins = tuple(term.words.split()[-1] for term in terms if term.begins)
    found = (
        start
        for start, word in places(text)
        if word in wanted or (begins and word.startswith(begins))
    )
    # Not in the middle of a word, where an end of one is near.
    at = max(next(found, 0) - _BEFORE, 0)
    at = text.find(" ", at, at + _NEAR) + 1 or at if at else 0
    end = min(at + _SNIPPET, len(text))
    if end < len(text) and (gap := text.rfind(" ", end - _NEAR, end)) > 0:
        end = gap
    part = " ".join(text[at:end].split())
    return f"{'…' if at else ''}{part}{'…' if end < len(text) else ''}"


def on_one_line(text: str) -> str:
    """Return any text as one line that commands nothing."""
    return visible_line(" ".join(text.split()))


def _head(message: Message) -> str:
    return f"{on_one_line(message.id)}  {_time(message.stamp)}  {on_one_line(message.topic)}\n"


def _standing(message: Message) -> str:
    where = message.branch or ("detached" if message.commit else "no branch")
    at = message.commit[:_SHORT_COMMIT] or "no commit"
    parts = [f"{where} {at}, {'dirty' if message.dirty else 'clean'}"]
    if message.session:
        parts.append(f"session {message.session}")
    if message.agent:
        parts.append(f"agent {message.agent}")
    if message.refs:
        parts.append(f"refs {', '.join(message.refs)}")
    if message.data:
        parts.append(json.dumps(dict(message.data)))
    return on_one_line("; ".join(parts))


def _time(stamp: float) -> str:
    return when(stamp)[:19] + "Z"

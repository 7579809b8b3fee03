"""Search the messages, with an SQLite FTS5 index or, without one, by reading all of them.

The index is beside the log. It is a cache, rebuilt whenever the log has changed. Only this module
loads sqlite3.
"""

from __future__ import annotations

import os
import re
import unicodedata

from gitgates.core.clean import plain
from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.store.files import open_state, remove_file
from gitgates.store.messages import (
    excerpt,
    file_abs,
    is_in,
    message_at,
    read_log,
    stream,
    unicode_only,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from gitgates.store.messages import Message

INDEX = "messages.sqlite"
_LAYOUT = 3  # the version of the tables, and of the result of `words`
_BUSY_S = 0.5
_TABLES = """
BEGIN IMMEDIATE;
DROP TABLE IF EXISTS log; DROP TABLE IF EXISTS messages; DROP TABLE IF EXISTS words;
CREATE TABLE log (state TEXT);
CREATE TABLE messages (number INTEGER PRIMARY KEY, topic TEXT, line BLOB);
CREATE VIRTUAL TABLE words USING fts5(topic, text, content='', tokenize='ascii');
"""
_FROM = "FROM words JOIN messages ON number = words.rowid WHERE words MATCH ?"
_BEST = "ORDER BY bm25(words, 4.0, 1.0), number DESC LIMIT ?"  # words in the topic count more

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff"
_WORD = re.compile(f"[{_ALONE}{_EMOJI}]|[^\\W_{_ALONE}]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_TERM = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_SNIPPET = 160
_BEFORE = 60  # characters of an excerpt before the first match
_NEAR = 30


class Term(Record):
    """A phrase: consecutive words."""

    words: str  # joined by one space
    begins: bool = False  # the last one is a prefix


class SearchResult(Record):
    """The messages that match a query."""

    messages: tuple[Message, ...]  # best first; without the index, newest first
    total: int  # their number, including those beyond the limit
    terms: tuple[Term, ...]
    indexed: bool = False


def search(shared_state_abs: str, query: str, *, topic: str = "", limit: int = 0) -> SearchResult:
    """Return the messages that contain all words of a query, in their topic or text.

    `topic`: only there; if it ends in `/`, in all topics below it. `limit`: 0 means none.

    Raises: UsageError if a query has no word; StateError if the log cannot be read.
    """
    query_terms = terms(query)
    if not query_terms:
        raise UsageError(
            f"`{excerpt(query)}` contains no search term",
            'Use words, "a phrase", or a prefix: pars*',
        )
    if matches := _search_index(shared_state_abs, query_terms, unicode_only(topic), limit):
        return matches
    phrases = [f" {term.words}{'' if term.begins else ' '}" for term in query_terms]
    matching = []
    for message in reversed(read_log(shared_state_abs).messages):
        both = f" {words(message.topic)} \n {words(message.text)} "
        if is_in(message.topic, topic) and all(phrase in both for phrase in phrases):
            matching.append(message)
    return SearchResult(tuple(matching[: limit or None]), len(matching), query_terms)


def words(text: str) -> str:
    """Return a text's normalised words, joined by spaces.

    Case, accents and variants of a letter make no difference. Each Chinese or Japanese character,
    and each emoji, is a word.
    """
    if "\x1b" in text:
        text = plain(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).casefold()
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return " ".join(_WORD.findall(text.lower()))


def terms(query: str) -> tuple[Term, ...]:
    """Parse a query: `word`, `prefix*`, `"a phrase"`. Nothing else is special."""
    parsed: list[Term] = []
    for quoted, star, bare in _TERM.findall(query):
        joined = words(bare or quoted)
        if joined:
            parsed.append(Term(joined, begins=bare.endswith("*") if bare else bool(star)))
    return tuple(dict.fromkeys(parsed))


def snippet(text: str, query_terms: tuple[Term, ...]) -> str:
    """Return an excerpt of a text around the first match."""
    text = unicodedata.normalize("NFC", text)
    query_words = tuple(word for term in query_terms for word in term.words.split())
    prefixes = tuple(term.words.split()[-1] for term in query_terms if term.begins)
    starts = (
        match.start()
        for match in _WORD.finditer(text)
        if (word := words(match[0])) in query_words or (prefixes and word.startswith(prefixes))
    )
    # Do not cut a word, if its end is near.
    at = max(next(starts, 0) - _BEFORE, 0)
    at = text.find(" ", at, at + _NEAR) + 1 or at if at else 0
    end = min(at + _SNIPPET, len(text))
    if end < len(text) and (gap := text.rfind(" ", end - _NEAR, end)) > 0:
        end = gap
    part = " ".join(text[at:end].split())
    return f"{'…' if at else ''}{part}{'…' if end < len(text) else ''}"


def _search_index(
    shared_state_abs: str, query_terms: tuple[Term, ...], topic: str, limit: int
) -> SearchResult | None:
    """Search the index; None if it cannot be used."""
    try:
        from sqlite3 import Error, connect  # Python may be built without it
    except ImportError:
        return None
    path_abs, log_abs = f"{shared_state_abs}/{INDEX}", file_abs(shared_state_abs)
    try:
        now = os.stat(log_abs)  # raises if there is no log to index
        state = f"{_LAYOUT} {now.st_ino} {now.st_size} {now.st_mtime_ns}"
        # Refuses a FIFO, which SQLite would wait for.
        os.close(open_state(path_abs, os.O_RDWR | os.O_CREAT))
        index = connect(path_abs, timeout=_BUSY_S, isolation_level=None)
        try:
            if not _is_current(index, state):
                _rebuild(index, shared_state_abs, state)
            return _look_up(index, query_terms, topic, limit)
        finally:
            index.close()
    except Error as error:
        if "locked" not in str(error):  # it is damaged: the next search rebuilds it
            remove_file(path_abs)
            remove_file(f"{path_abs}-journal")
    except OSError:
        pass
    return None


def _is_current(index: Connection, state: str) -> bool:
    tables = index.execute("SELECT count(*) FROM sqlite_master WHERE name = 'log'").fetchone()
    row = index.execute("SELECT * FROM log").fetchone() if tables == (1,) else None
    return row is not None and row[0] == state


def _rebuild(index: Connection, shared_state_abs: str, state: str) -> None:
    """Index the whole log; if a line is appended meanwhile, the stored `state` is stale."""
    index.executescript(_TABLES)
    for line, message in stream(shared_state_abs):
        if message is None:
            continue
        row = (unicode_only(message.topic), line)
        number = index.execute("INSERT INTO messages (topic, line) VALUES (?, ?)", row).lastrowid
        text = (number, words(message.topic), words(message.text))
        index.execute("INSERT INTO words (rowid, topic, text) VALUES (?, ?, ?)", text)
    index.execute("INSERT INTO log VALUES (?)", (state,))
    index.execute("COMMIT")


def _look_up(
    index: Connection, query_terms: tuple[Term, ...], topic: str, limit: int
) -> SearchResult:
    match = " AND ".join(f'"{term.words}"{"*" if term.begins else ""}' for term in query_terms)
    values: list[object] = [match]
    clauses = _FROM
    if topic.endswith("/"):
        clauses += " AND substr(messages.topic, 1, ?) = ?"
        values += [len(topic), topic]
    elif topic:
        clauses += " AND messages.topic = ?"
        values.append(topic)
    (total,) = index.execute(f"SELECT count(*) {clauses}", values).fetchone()
    rows = index.execute(f"SELECT line {clauses} {_BEST}", [*values, limit or -1])
    messages = (message_at(line) for (line,) in rows)
    return SearchResult(
        tuple(message for message in messages if message), total, query_terms, indexed=True
    )

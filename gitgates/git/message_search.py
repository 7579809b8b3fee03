"""Search the messages: with an index of SQLite, or without, and both find the same.

The index is a cache beside the log: made anew whenever the log is not the one that it was made
from. Where SQLite, its FTS5 or the place for it is missing, all messages are read instead. This is
the only place that loads sqlite3.
"""

from __future__ import annotations

import os
import time
import unicodedata

from gitgates.errors import UsageError
from gitgates.git.message_checks import shown, sound
from gitgates.git.message_words import Term, hits, terms, words
from gitgates.git.messages import file_abs, is_in, message_at, read_log
from gitgates.record import Record
from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from gitgates.git.messages import Log, Message
    from gitgates.git.repo import Repo

INDEX = "messages.sqlite"
_LAYOUT = 1  # of the tables, and of what `words` returns
_UNFINISHED = ".tmp"
_LEFT_S = 3600.0  # then nobody is at work on it any more
_TOPIC_COUNTS = 4  # as much as so many mentions in the text
_TABLES = """
CREATE TABLE made_from (mark TEXT);
CREATE TABLE places (number INTEGER PRIMARY KEY, topic TEXT, start INTEGER, length INTEGER);
CREATE VIRTUAL TABLE words USING fts5(topic, text, content='', tokenize='ascii');
"""
_FROM = "FROM words JOIN places ON number = words.rowid WHERE words MATCH ?"
_ORDER = f"ORDER BY bm25(words, {_TOPIC_COUNTS}.0, 1.0), number DESC LIMIT ?"


class Query(Record):
    """What is searched."""

    text: str
    topic: str = ""  # one that ends in `/` means all below it; empty: all
    limit: int = 0  # 0: none


class Found(Record):
    """What was found."""

    messages: tuple[Message, ...]  # the best first; of equal ones, the newest
    total: int  # of all, those beyond the limit too
    terms: tuple[Term, ...]
    indexed: bool = False


def search(repo: Repo, query: Query) -> Found:
    """Return the messages that have all words of a query, in their topic or their text.

    Raises: UsageError where a query has no word; StateError where the log cannot be read.
    """
    asked = terms(query.text)
    if not asked:
        raise UsageError(
            f"`{shown(query.text)}` has no word to search for",
            'Words, "several in a row", or a beginning: pars*',
        )
    found = _ask_index(repo, query, asked)
    if found is None:
        log = read_log(repo)
        made = _make(repo, log)
        found = (_ask_index(repo, query, asked) if made else None) or _scan(log, query, asked)
    return found


def _scan(log: Log, query: Query, asked: tuple[Term, ...]) -> Found:
    scored: list[tuple[int, int, Message]] = []
    for number, message in enumerate(log.messages):
        if not is_in(message.topic, query.topic):
            continue
        topic, text = words(message.topic), words(message.text)
        counts = [_TOPIC_COUNTS * hits(term, topic) + hits(term, text) for term in asked]
        if all(counts):
            scored.append((sum(counts), number, message))
    scored.sort(key=lambda one: one[:2], reverse=True)
    best = scored[: query.limit or None]
    return Found(tuple(message for _score, _number, message in best), len(scored), asked)


def _ask_index(repo: Repo, query: Query, asked: tuple[Term, ...]) -> Found | None:
    """Return what the index says; None where it is missing, broken, or of another log."""
    try:
        from sqlite3 import Error  # a Python may have been built without it
    except ImportError:
        return None
    try:
        index = _open(f"{repo.shared_state_abs}/{INDEX}")
        try:
            if index.execute("SELECT mark FROM made_from").fetchone() != (_mark(repo),):
                return None
            total, places = _look_up(index, query, asked)
        finally:
            index.close()
        return Found(_read(repo, places), total, asked, indexed=True)
    except (Error, OSError, ValueError):
        return None


def _open(path_abs: str) -> Connection:
    from sqlite3 import connect
    from urllib.parse import quote

    os.close(open_state(path_abs, os.O_RDONLY))  # the library would wait for a fifo
    # It is only ever replaced as a whole: so it needs no lock, and no folder that can be written.
    return connect(f"file:{quote(os.fsencode(path_abs))}?mode=ro&immutable=1", uri=True)


def _look_up(
    index: Connection, query: Query, asked: tuple[Term, ...]
) -> tuple[int, list[tuple[int, int]]]:
    """Return how many match, and where in the log the best ones are."""
    match = " AND ".join(f'"{term.words}"{"*" if term.begins else ""}' for term in asked)
    values: list[object] = [match]
    where = _FROM
    topic = sound(query.topic)
    if topic.endswith("/"):
        where += " AND substr(places.topic, 1, ?) = ?"
        values += [len(topic), topic]
    elif topic:
        where += " AND places.topic = ?"
        values.append(topic)
    (total,) = index.execute(f"SELECT count(*) {where}", values).fetchone()
    best = index.execute(
        f"SELECT start, length {where} {_ORDER}",
        [*values, query.limit or -1],
    )
    return total, best.fetchall()


def _read(repo: Repo, places: list[tuple[int, int]]) -> tuple[Message, ...]:
    """Return the messages in these places of the log.

    Raises: ValueError where there is none.
    """
    found: list[Message] = []
    with open(file_abs(repo), "rb", opener=open_state) as file:
        for start, length in places:
            file.seek(start)
            message = message_at(file.read(length))
            if message is None:
                raise ValueError(start)
            found.append(message)
    return tuple(found)


def _mark(repo: Repo) -> str:
    """Return what tells one state of the log from another, and our words from other ones.

    Raises: OSError where there is no log.
    """
    now = os.stat(file_abs(repo))
    its = f"{now.st_size} {now.st_mtime_ns} {now.st_ino}"
    return f"{_LAYOUT} {unicodedata.unidata_version} {its}"


def _make(repo: Repo, log: Log) -> bool:
    """Make the index of a log; tell whether that was possible."""
    try:
        from sqlite3 import Error
    except ImportError:
        return False
    index_abs = f"{repo.shared_state_abs}/{INDEX}"
    made_abs = f"{index_abs}.{os.getpid()}.{time.monotonic_ns()}{_UNFINISHED}"
    try:
        mark = _mark(repo)
        if f" {log.size} " not in mark:
            return False  # somebody has just posted
        _clear(repo.shared_state_abs)
        os.close(os.open(made_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            _fill(made_abs, mark, log)
            os.replace(made_abs, index_abs)
        except BaseException:
            os.unlink(made_abs)
            raise
    except (Error, OSError):
        return False
    return True


def _fill(made_abs: str, mark: str, log: Log) -> None:
    from sqlite3 import connect

    index = connect(made_abs, isolation_level=None)
    try:
        index.executescript(f"PRAGMA journal_mode=OFF; BEGIN; {_TABLES}")
        index.executemany(
            "INSERT INTO places VALUES (?, ?, ?, ?)",
            (
                (number, sound(message.topic), start, len(line))
                for number, (start, line, message) in enumerate(log.entries)
            ),
        )
        index.executemany(
            "INSERT INTO words (rowid, topic, text) VALUES (?, ?, ?)",
            (
                (number, words(message.topic), words(message.text))
                for number, message in enumerate(log.messages)
            ),
        )
        index.execute("INSERT INTO made_from VALUES (?)", (mark,))
        index.execute("COMMIT")  # with a sync, so that no half of it is ever taken for the whole
    finally:
        index.close()


def _clear(folder_abs: str) -> None:
    """Remove what processes that were killed have left unfinished."""
    for entry in os.scandir(folder_abs):
        ours = entry.name.startswith(f"{INDEX}.") and entry.name.endswith(_UNFINISHED)
        if ours and time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT_S:
            os.unlink(entry.path)

"""The message log of a repository: append-only, shared by its worktrees, one JSON object a line.

It is written and read as the journals of sessions are (journal.py). Ids are given under the file's
lock, each later than the one before: unique, and in the order of the lines.
"""

from __future__ import annotations

import json
import os
import time

from gitgates.errors import GitError, StateError, UsageError
from gitgates.git.message_checks import check_text, check_topic, shown, sound
from gitgates.git.message_stamps import as_meant, id_of, number_of, stamp_of, when
from gitgates.record import Record
from gitgates.store.log import append_lines, parse_lines, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.store.log import Fact

FILE = "messages.jsonl"
VERSION = 1
_TAIL = 4096
_TEXTS = ("id", "time", "topic", "text", "session", "agent", "commit", "branch")


class Message(Record):
    """One message."""

    id: str
    stamp: float  # since the epoch
    topic: str
    text: str
    session: str = ""
    agent: str = ""  # a sub-agent's id
    commit: str = ""  # that was checked out; empty: none yet
    branch: str = ""  # empty: none was checked out
    dirty: bool = False  # there were changes, untracked files too; or git could not say
    data: Mapping[str, object] = {}  # what the message is about, by name
    refs: tuple[str, ...] = ()  # ids of other messages


class Draft(Record):
    """A message before it is posted."""

    topic: str
    text: str
    session: str = ""
    agent: str = ""
    data: Mapping[str, object] = {}
    refs: tuple[str, ...] = ()


class Log(Record):
    """All that there is, the oldest first."""

    entries: tuple[tuple[int, bytes, Message], ...]  # where its line begins, the line, the message
    size: int  # of the file, in bytes
    left_out: int  # lines that are torn, garbage, or of another version

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages alone."""
        return tuple(message for _start, _line, message in self.entries)


def post(repo: Repo, git: Git, draft: Draft) -> Message:
    """Append a message, with where the repository stands; return it.

    What is no Unicode in its texts is replaced by U+FFFD.

    Raises: UsageError where topic, text or refs make no sense; GitError where git is not there;
    StateError where the log cannot be written, or read for the refs.
    """
    check_topic(draft.topic)
    check_text(draft.text)
    commit, branch, dirty = _standing(git)
    stamp_ms = int(time.time() * 1000)  # never later than it is
    message = Message(
        id="",
        stamp=stamp_ms / 1000,
        topic=draft.topic,
        text=sound(draft.text),
        session=sound(draft.session),
        agent=sound(draft.agent),
        commit=commit,
        branch=sound(branch),
        dirty=dirty,
        data=draft.data,
        refs=_known(repo, draft.refs),
    )
    given: list[Message] = []

    def make(fd: int, size: int) -> bytes:
        number = max(stamp_ms // 10, _last_number(fd, size) + 1)
        given.append(message._replace(id=id_of(number)))
        return json.dumps({"v": VERSION, **as_json(given[-1])}).encode("ascii") + b"\n"

    path_abs = file_abs(repo)
    try:
        append_lines(path_abs, make)
    except OSError as error:
        raise StateError(
            f"{path_abs}: nothing was posted: {error.strerror or error}",
            "See to the rights of that folder and to the space on its disk, and post again.",
        ) from error
    return given[-1]


def find(repo: Repo, message_id: str) -> Message | None:
    """Return a message by its id; None where there is none.

    Letters that are easily mistyped are read as the digits that they look like.

    Raises: StateError where the log cannot be read.
    """
    raw = _raw(repo)
    for wanted in dict.fromkeys((message_id, as_meant(message_id))):
        # A log of a year is not parsed for one message of it.
        needle = f'"{wanted}"'.encode("utf-8", "replace")
        at = raw.find(needle)
        while at >= 0:
            start, end = raw.rfind(b"\n", 0, at) + 1, raw.find(b"\n", at)
            message = message_at(raw[start : end if end > 0 else None])
            if message and message.id == wanted:
                return message
            at = raw.find(needle, end) if end > 0 else -1
    return None


def read_all(repo: Repo, topic: str = "") -> tuple[Message, ...]:
    """Return the messages of a topic, the oldest first.

    A topic that ends in `/` means all below it, an empty one all that there are.

    Raises: StateError where the log cannot be read.
    """
    return tuple(one for one in read_log(repo).messages if is_in(one.topic, topic))


def read_log(repo: Repo) -> Log:
    """Return the whole log.

    Raises: StateError where it cannot be read.
    """
    raw = _raw(repo)
    places: list[tuple[int, bytes]] = []
    start = 0
    for line in raw.split(b"\n"):
        if line:
            places.append((start, line))
        start += len(line) + 1
    facts = parse_lines([line for _start, line in places])
    entries = tuple(
        (start, line, message)
        for (start, line), fact in zip(places, facts, strict=True)
        if (message := _message(fact))
    )
    return Log(entries, len(raw), len(places) - len(entries))


def message_at(line: bytes) -> Message | None:
    """Return the message of one line; None where it is none that we understand."""
    return _message(parse_lines([line])[0])


def is_in(topic: str, wish: str) -> bool:
    """Tell whether a topic is the one that is meant, or below it where that ends in `/`."""
    return topic.startswith(wish) if wish.endswith("/") or not wish else topic == wish


def file_abs(repo: Repo) -> str:
    """Return the path of the log."""
    return f"{repo.shared_state_abs}/{FILE}"


def as_json(message: Message) -> dict[str, object]:
    """Return a message as JSON has it."""
    return {
        "id": message.id,
        "time": when(message.stamp),
        "topic": message.topic,
        "session": message.session,
        "agent": message.agent,
        "commit": message.commit,
        "branch": message.branch,
        "dirty": message.dirty,
        "refs": list(message.refs),
        "data": dict(message.data),
        "text": message.text,
    }


def _raw(repo: Repo) -> bytes:
    path_abs = file_abs(repo)
    try:
        return read_lines(path_abs)
    except OSError as error:
        raise StateError(
            f"{path_abs}: cannot be read: {error.strerror or error}", "See to its rights."
        ) from error


def _known(repo: Repo, refs: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for ref in dict.fromkeys(refs):
        message = find(repo, ref)
        if message is None:
            hint = "Ids are what `gitgates journal post` prints and `read` shows."
            raise UsageError(f"no message `{shown(ref)}` to refer to", hint)
        found.append(message.id)
    return tuple(dict.fromkeys(found))


def _standing(git: Git) -> tuple[str, str, bool]:
    """Return commit, branch, and whether anything is not as in the commit."""
    branch, commit = git.ask_all(
        (("symbolic-ref", "--quiet", "HEAD"), b""),
        (("rev-parse", "--verify", "--quiet", "HEAD^{commit}"), b""),
    )
    try:
        # Not each file of an untracked folder: one name is as good as a thousand.
        status = git.ask("status", "--porcelain", "-z", "--untracked-files=normal")
        dirty = bool(status.exit_status or status.stdout)
    except GitError:
        dirty = True  # it did not come to an end
    name = os.fsdecode(branch.stdout).rstrip("\n").removeprefix("refs/heads/")
    return commit.stdout.decode("ascii", "replace").strip(), name, dirty


def _last_number(fd: int, size: int) -> int:
    """Return the number of the newest id of ours in the file; 0: there is none."""
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
    texts = [fact.get(name, "") for name in _TEXTS]
    refs, data = fact.get("refs", []), fact.get("data", {})
    if not isinstance(refs, list) or not isinstance(data, dict):
        return None
    if not all(isinstance(one, str) for one in (*texts, *refs)):
        return None
    message_id, moment, topic, text, session, agent, commit, branch = texts
    stamp = stamp_of(moment)
    if stamp is None or not message_id or not topic:
        return None
    return Message(
        id=message_id,
        stamp=stamp,
        topic=topic,
        text=text,
        session=session,
        agent=agent,
        commit=commit,
        branch=branch,
        dirty=fact.get("dirty") is True,
        data=data,
        refs=tuple(refs),
    )

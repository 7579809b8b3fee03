"""Find out what weakens the checks in what a session has changed: git and settings in."""

from __future__ import annotations

import os

from gitgates.config import load
from gitgates.errors import ConfigError
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.session_trees import trees
from gitgates.record import Record
from gitgates.review.kinds import kinds_of
from gitgates.store.files import open_regular
from gitgates.types import Config, Review
from gitgates.weakening.agents import find_in_agent_settings, read_off
from gitgates.weakening.find import Finding, Pair, find
from gitgates.weakening.finding import AGENT_HOOKS, GATE
from gitgates.weakening.gates import compare_gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.git.run import Git
    from gitgates.git.session_change import Span

_LARGEST = 1024 * 1024  # bytes of settings
_LINK, _SUBMODULE = b"120000", b"160000"
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "-M", "-l400")
_NO_SNAPSHOT = "in a file that no snapshot has: who wrote it cannot be told"
_LOCAL_SETTINGS = ".claude/settings.local.json"


class _Entry(Record):
    """One file that differs, as git names it."""

    path: str
    was: str
    old_id: str  # empty: it was not there, or is no file
    new_id: str


def weakened(span: Span, config: Config) -> tuple[Finding, ...]:
    """Return what weakens the checks, sorted by path and line. `config` is that of now.

    Raises: GitError where one of the trees is not there.
    """
    git = reading_git(span.repo)
    start, now = trees(span)
    settings = _Settings(git, start, now)
    pairs = _pairs(git, [*_entries(git, start, now)], (settings.before or config).review)
    found = [
        *find(pairs),
        *settings.findings(),
        *settings.local_findings(span.repo.root_abs),
        *find_in_agent_settings(pairs, (settings.before or config).review.reviewer),
        *_hooks_off(span.repo.root_abs, (git, now)),
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.path, one.line)))


def _entries(git: Git, start: str, now: str) -> Iterable[_Entry]:
    fields = iter(git.out(*_RAW, start, now, "--").split(b"\0"))
    for meta in fields:
        if not meta:
            continue
        old_mode, new_mode, old_id, new_id, status = meta[1:].split(b" ")
        was = next(fields) if status[:1] == b"R" else b""
        path = next(fields)
        yield _Entry(
            path=os.fsdecode(path),
            was=os.fsdecode(was),
            old_id=_file_id(old_mode, old_id),
            new_id=_file_id(new_mode, new_id),
        )


def _file_id(mode: bytes, object_id: bytes) -> str:
    is_file = mode.strip(b"0") and mode not in (_LINK, _SUBMODULE)
    return object_id.decode() if is_file else ""


def _pairs(git: Git, entries: list[_Entry], review: Review) -> tuple[Pair, ...]:
    """Return both sides of each file. What a session itself calls generated is none of it."""
    names = tuple({name for one in entries for name in (one.path, one.was) if name})
    kinds = kinds_of(names, review._replace(ignore=(), critical=()))
    blobs = read_blobs(git, [blob for one in entries for blob in (one.old_id, one.new_id) if blob])
    return tuple(
        Pair(
            path=one.path,
            was=one.was,
            before=blobs.get(one.old_id),
            after=blobs.get(one.new_id),
            is_test=kinds[one.path].kind == "tests",
            read_by_nobody=bool(kinds[one.path].left_out),
        )
        for one in entries
        if (one.old_id in blobs or one.new_id in blobs)
        and (not one.old_id or one.old_id in blobs)
        and (not one.new_id or one.new_id in blobs)
    )


class _Settings:
    """Our own settings, as they stand in two trees."""

    def __init__(self, git: Git, start: str, now: str) -> None:
        names = [f"{tree}:{name}" for tree in (start, now) for name in load.FILES]
        blobs = read_blobs(git, names)
        self._old = tuple(blobs.get(f"{start}:{name}") for name in load.FILES)
        self._new = tuple(blobs.get(f"{now}:{name}") for name in load.FILES)
        self.before, _trouble = _parse(_shared(self._old))

    def findings(self) -> tuple[Finding, ...]:
        """Return which of our own gates have become weaker."""
        if self.before is None or self._old == self._new:
            return ()
        path = self.before.sources[0]
        after, trouble = _parse(_shared(self._new))
        if trouble:
            return (Finding(path, GATE, f"the settings cannot be read any more: {trouble}"),)
        return compare_gates(self.before, after, path)

    def local_findings(self, root_abs: str) -> tuple[Finding, ...]:
        """Return what the local settings take away, where they are not the same as before."""
        try:
            local = load.read_files(root_abs)[2]
        except ConfigError:
            return ()
        if local is None or local == self._old[2]:
            return ()
        shared, _trouble = _parse(_shared(self._new))
        whole, trouble = _parse((*self._new[:2], local))
        if trouble or whole is None:
            return ()
        return tuple(
            one._replace(detail=f"{one.detail} ({_NO_SNAPSHOT})") if self._new[2] is None else one
            for one in compare_gates(shared, whole, load.LOCAL_FILE)
        )


def _shared(raw: tuple[bytes | None, ...]) -> tuple[bytes | None, ...]:
    return (*raw[:2], None)


def _parse(raw: tuple[bytes | None, ...]) -> tuple[Config | None, str]:
    """Return a configuration, and what is wrong with it."""
    try:
        config, problems = load.parse_files(raw)
    except ConfigError as error:
        return None, error.message
    fatal = [problem for problem in problems if not problem.deferred]
    return (None, f"{fatal[0].where}: {fatal[0].message}") if fatal else (config, "")


def _hooks_off(root_abs: str, place: tuple[Git, str]) -> Iterable[Finding]:
    """Yield that settings of an agent which no snapshot has switch all hooks off."""
    git, now = place
    try:
        with open(f"{root_abs}/{_LOCAL_SETTINGS}", "rb", opener=open_regular) as file:
            content = file.read(_LARGEST)
    except OSError:
        return
    if read_off(content) and not read_blobs(git, [f"{now}:{_LOCAL_SETTINGS}"]):
        yield Finding(_LOCAL_SETTINGS, AGENT_HOOKS, f"disableAllHooks: true ({_NO_SNAPSHOT})")

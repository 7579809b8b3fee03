"""Find out what weakens the checks in what a session has changed.

Each file is looked at as a whole, as its language reads it, before and now: a test that has moved
is not gone, and a comment is no code. Cold: only who reviews asks for this.
"""

from __future__ import annotations

import os

from gitgates.config import load
from gitgates.errors import ConfigError
from gitgates.git.authorship import trees
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.policies.significance import kinds_of
from gitgates.store.files import open_regular
from gitgates.weakening.commands import find_in_commands
from gitgates.weakening.finding import AGENT_HOOKS, GATE, Pair, Weakening
from gitgates.weakening.gates import compare_gates, find_in_agent_settings, read_settings
from gitgates.weakening.marks import find_marks
from gitgates.weakening.source import read_pair
from gitgates.weakening.tests import find_in_tests
from gitgates.weakening.tool_settings import find_in_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from gitgates.git.authorship import Span
    from gitgates.git.repo import Git
    from gitgates.types import Config, Review

    Raw: TypeAlias = tuple[bytes | None, ...]  # of each file of settings; the last one is local

_LARGEST = 1024 * 1024  # bytes of settings
_LINK, _SUBMODULE = b"120000", b"160000"
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "-M", "-l400")
_NO_SNAPSHOT = "in a file that no snapshot has: who wrote it cannot be told"


def find(pairs: tuple[Pair, ...]) -> tuple[Weakening, ...]:
    """Return what weakens the checks in files that have changed, sorted by path and line. Pure.

    The pairs are all that have changed: what left one of them may have come to another.
    """
    sources = tuple(source for pair in pairs if (source := read_pair(pair)))
    found = [*find_in_tests(sources), *find_marks(sources), *find_in_commands(pairs)]
    found += [one for pair in pairs for one in find_in_settings(pair)]
    order = sorted(found, key=lambda one: (one.path, one.line, one.what, one.detail))
    return tuple(dict.fromkeys(order))


def weakened(span: Span, config: Config) -> tuple[Weakening, ...]:
    """Return what weakens the checks, sorted by path and line. `config` is that of now.

    Raises: GitError where one of the trees is not there.
    """
    git = reading_git(span.repo)
    start, now = trees(span)
    old, new = _settings_in(git, start), _settings_in(git, now)
    before = _parse(_shared(old))[0]
    review = (before or config).review
    pairs = _pairs(git, (start, now), review)
    found = [
        *find(pairs),
        *_gates(before, old, new),
        *_local_gates(span.repo.root_abs, old, new),
        *find_in_agent_settings(pairs, review.reviewer),
        *_hooks_off(span.repo.root_abs, git, now),
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.path, one.line)))


def _pairs(git: Git, sides: tuple[str, str], review: Review) -> tuple[Pair, ...]:
    """Return both sides of each file. What a session itself calls generated is none of it."""
    entries = [*_entries(git, *sides)]
    names = tuple({name for one in entries for name in one[:2] if name})
    kinds = kinds_of(names, review._replace(ignore=(), critical=()))
    blobs = read_blobs(git, [blob for one in entries for blob in one[2:] if blob])
    return tuple(
        Pair(
            path=path,
            was=was,
            before=blobs.get(old_id),
            after=blobs.get(new_id),
            is_test=kinds[path].kind == "tests",
            read_by_nobody=bool(kinds[path].left_out),
        )
        for path, was, old_id, new_id in entries
        if (old_id or new_id) and all(not blob or blob in blobs for blob in (old_id, new_id))
    )


def _entries(git: Git, start: str, now: str) -> Iterable[tuple[str, str, str, str]]:
    """Yield path, path before a renaming, and both blobs of each file that differs."""
    fields = iter(git.out(*_RAW, start, now, "--").split(b"\0"))
    for meta in fields:
        if meta:
            old_mode, new_mode, old_id, new_id, status = meta[1:].split(b" ")
            was = os.fsdecode(next(fields)) if status[:1] == b"R" else ""
            path = os.fsdecode(next(fields))
            yield path, was, _file_id(old_mode, old_id), _file_id(new_mode, new_id)


def _file_id(mode: bytes, object_id: bytes) -> str:
    is_file = mode.strip(b"0") and mode not in (_LINK, _SUBMODULE)
    return object_id.decode() if is_file else ""


def _settings_in(git: Git, tree: str) -> Raw:
    blobs = read_blobs(git, [f"{tree}:{name}" for name in load.FILES])
    return tuple(blobs.get(f"{tree}:{name}") for name in load.FILES)


def _gates(before: Config | None, old: Raw, new: Raw) -> Iterable[Weakening]:
    """Return which of our own gates have become weaker."""
    if before is None or old == new:
        return ()
    after, trouble = _parse(_shared(new))
    path = before.sources[0]
    if trouble:
        return (Weakening(path, GATE, f"the settings cannot be read any more: {trouble}"),)
    return compare_gates(before, after, path)


def _local_gates(root_abs: str, old: Raw, new: Raw) -> Iterable[Weakening]:
    """Yield what the local settings take away, where they are not the same as before."""
    try:
        local = load.read_files(root_abs)[2]
    except ConfigError:
        return
    whole = _parse((*new[:2], local))[0]
    if local in (None, old[2]) or whole is None:
        return
    for one in compare_gates(_parse(_shared(new))[0], whole, load.LOCAL_FILE):
        yield one if new[2] else one._replace(detail=f"{one.detail} ({_NO_SNAPSHOT})")


def _shared(raw: Raw) -> Raw:
    return (*raw[:2], None)


def _parse(raw: Raw) -> tuple[Config | None, str]:
    """Return a configuration, and what is wrong with it."""
    try:
        config, problems = load.parse_files(raw)
    except ConfigError as error:
        return None, error.message
    fatal = [problem for problem in problems if not problem.deferred]
    return (None, f"{fatal[0].where}: {fatal[0].message}") if fatal else (config, "")


def _hooks_off(root_abs: str, git: Git, now: str) -> Iterable[Weakening]:
    """Yield that settings of an agent which no snapshot has switch all hooks off."""
    for agent in AGENTS:
        path_abs = agent_host(agent).settings_files(root_abs, {}).get("local", "")
        path = os.path.relpath(path_abs or root_abs, root_abs)
        try:
            with open(path_abs, "rb", opener=open_regular) as file:
                content = file.read(_LARGEST)
        except OSError:
            continue
        if read_settings(agent, content).off and not read_blobs(git, [f"{now}:{path}"]):
            off = agent_settings(agent).OFF
            yield Weakening(path, AGENT_HOOKS, f"{off}: true ({_NO_SNAPSHOT})")

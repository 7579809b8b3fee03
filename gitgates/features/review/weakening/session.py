"""Detect what weakens the checks in the change of a session.

Each file is looked at as a whole, as its language reads it, before and now: a test that has moved
is not gone, and a comment is no code. Cold: only who reviews asks for this.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import TypeAlias

from gitgates.config import load
from gitgates.config.weaker import weaker
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config
from gitgates.features.review.config import Review, settings_of
from gitgates.features.review.significance import kinds_of
from gitgates.features.review.weakening.commands import find_in_commands
from gitgates.features.review.weakening.finding import AGENT_HOOKS, GATE, Pair, Weakening
from gitgates.features.review.weakening.source import read_pair
from gitgates.features.review.weakening.tests import find_in_tests, find_marks
from gitgates.features.review.weakening.tool_settings import find_in_settings
from gitgates.git.authorship import Span, trees
from gitgates.git.diff import changes
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.repo import Git
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.settings.base import HookSettings
from gitgates.store.files import read_regular

Raw: TypeAlias = tuple[bytes | None, ...]  # of each file of settings; the last one is local

_NO_SNAPSHOT = "in a file that is in no snapshot: its author is unknown"


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

    Raises: GitError if one of the trees does not exist.
    """
    git, root_abs = reading_git(span.repo), span.repo.root_abs
    start, now = trees(span)
    old, new = (_settings_in(git, tree) for tree in (start, now))
    before = _parse(_shared(old))[0]
    review = settings_of(before or config)
    pairs = _pairs(git, span, review)
    found = [*find(pairs), *find_in_agent_settings(pairs, review.reviewer)]
    if before and old != new:
        after, trouble = _parse(_shared(new))
        text = f"the settings can no longer be read: {trouble}"
        path = before.sources[0]
        found += [Weakening(path, GATE, text)] if trouble else compare_gates(before, after, path)
    found += [*_local_gates(root_abs, old, new), *_hooks_off(root_abs, git, now)]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.path, one.line)))


def _pairs(git: Git, span: Span, review: Review) -> tuple[Pair, ...]:
    """Return both sides of each file. What a session itself calls generated is none of it."""
    start, now = trees(span)
    # Git is asked by names on lines of their own.
    found = [one for one in changes(span) if not one.submodule and "\n" not in one.path + one.was]
    sides = {
        one.path: (
            f"{start}:{one.was or one.path}" if one.status != "A" else "",
            f"{now}:{one.path}" if one.status != "D" else "",
        )
        for one in found
    }
    kinds = kinds_of(tuple(sides), review._replace(ignore=(), critical=()))
    blobs = read_blobs(git, [name for both in sides.values() for name in both if name])
    return tuple(
        Pair(
            path=one.path,
            was=one.was,
            before=blobs.get(sides[one.path][0]),
            after=blobs.get(sides[one.path][1]),
            is_test=kinds[one.path].kind == "tests",
            read_by_nobody=bool(kinds[one.path].left_out),
        )
        for one in found
        if all(not name or name in blobs for name in sides[one.path])
    )


def _settings_in(git: Git, tree: str) -> Raw:
    blobs = read_blobs(git, [f"{tree}:{name}" for name in load.FILES])
    return tuple(blobs.get(f"{tree}:{name}") for name in load.FILES)


def _local_gates(root_abs: str, old: Raw, new: Raw) -> Iterable[Weakening]:
    """Yield what changed local settings weaken."""
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
            content = read_regular(path_abs)
        except OSError:
            continue
        if read_settings(agent, content).off and not read_blobs(git, [f"{now}:{path}"]):
            host = agent_host(agent)
            said = f"{host.OFF.key}: {host.OFF.value} ({_NO_SNAPSHOT})"
            yield Weakening(path, AGENT_HOOKS, said)


# Our own gates


def compare_gates(before: Config | None, after: Config | None, path: str) -> tuple[Weakening, ...]:
    """Return what has become weaker. `path` is the file that the settings stand in."""
    if before is None:
        return ()
    if after is None:
        return (Weakening(path, GATE, "all gitgates settings were removed"),)
    return tuple(Weakening(path, GATE, text) for text in weaker(before, after))


# Hooks of agents


def find_in_agent_settings(pairs: tuple[Pair, ...], reviewer: str) -> tuple[Weakening, ...]:
    """Return removed and disabled hooks, and changes of the reviewer's instructions."""
    found: list[Weakening] = []
    for agent, pair in product(AGENTS, pairs):
        host = agent_settings(agent)
        if host.SETTINGS_PATH.search(pair.path):
            texts = _compare_hooks_of_agent(pair, agent)
            found += (Weakening(pair.path, AGENT_HOOKS, text) for text in texts)
        elif host.AGENT_PATH.search(pair.old_path) and pair.before is not None:
            name = pair.old_path.rpartition("/")[2].rpartition(".")[0]
            if name == reviewer.rpartition(":")[2]:
                what = "deleted" if pair.after is None else "changed"
                found.append(
                    Weakening(pair.path, AGENT_HOOKS, f"the reviewer's instructions: {what}")
                )
    return tuple(found)


def read_settings(agent: str, content: bytes | None) -> HookSettings:
    """Return the parsed settings; empty if they cannot be read, as the client cannot, either."""
    try:
        return agent_settings(agent).read((content or b"").decode("utf-8", "replace"), "")
    except ConfigError:
        return HookSettings()


def _compare_hooks_of_agent(pair: Pair, agent: str) -> Iterable[str]:
    old, new = read_settings(agent, pair.before), read_settings(agent, pair.after)
    if new.off and not old.off:
        host = agent_host(agent)
        yield f"{host.OFF.key}: {host.OFF.value}"
    # Another way to our own program is no other hook; one that does not keep the agent waiting is.
    was, now = (
        Counter(
            (h.event, h.matcher or "*", "" if h.is_ours else h.command)
            for h in side.hooks
            if not (h.is_ours and h.loose)
        )
        for side in (old, new)
    )
    for event, matcher, command in was - now:
        where = "" if matcher == "*" else f" for `{matcher}`"
        yield f"{event}: `{command or 'gitgates agent-hook ' + agent}` was removed{where}"

"""Detect what weakens the checks in the change of a session.

Each file is looked at as a whole, as its language reads it, before and now: a test that has moved
is not gone, and a comment is not code. Cold: only reviews need it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from gitgates.config import LOCAL_FILE, load
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
from gitgates.git.diff import Trees, file_differences
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.repo import Git
from gitgates.git.settings import settings_in
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.settings.base import HookSettings
from gitgates.store.files import read_regular

if TYPE_CHECKING:
    from gitgates.config.sources import Raw

_NO_SNAPSHOT = "in a file that is in no snapshot: its author is unknown"


def find(pairs: tuple[Pair, ...]) -> tuple[Weakening, ...]:
    """Return what weakens the checks in files that have changed, sorted by path and line. Pure.

    The pairs are all files that have changed: what left one may have moved to another.
    """
    sources = tuple(source for pair in pairs if (source := read_pair(pair)))
    findings = [*find_in_tests(sources), *find_marks(sources), *find_in_commands(pairs)]
    findings += [finding for pair in pairs for finding in find_in_settings(pair)]
    order = sorted(
        findings, key=lambda finding: (finding.path, finding.line, finding.what, finding.detail)
    )
    return tuple(dict.fromkeys(order))


def weakened(trees: Trees, config: Config) -> tuple[Weakening, ...]:
    """Return what weakens the checks, sorted by path and line. `config` is that of now.

    Raises: GitError if one of the trees does not exist.
    """
    start, now = trees.before, trees.after
    git, root_abs = reading_git(trees.repo), trees.repo.root_abs
    old, new = settings_in(git, (start, now))
    before = _parse(_shared(old))[0]
    review = settings_of(before or config)
    pairs = _pairs(git, trees, review)
    findings = [*find(pairs), *find_in_agent_settings(pairs, review.reviewer)]
    if before and old != new:
        after, trouble = _parse(_shared(new))
        text = f"the settings can no longer be read: {trouble}"
        path = before.sources[0]
        findings += [Weakening(path, GATE, text)] if trouble else compare_gates(before, after, path)
    findings += [*_local_gates(root_abs, old, new), *_hooks_off(root_abs, git, now)]
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: (finding.path, finding.line)))


def _pairs(git: Git, trees: Trees, review: Review) -> tuple[Pair, ...]:
    """Return both sides of each file. `review` is older than the session, so that exempts none."""
    start, now = trees.before, trees.after
    # Git reads names one per line.
    changed_files = [
        file
        for file in file_differences(trees)
        if not file.submodule and "\n" not in file.path + file.was
    ]
    sides = {
        file.path: (
            f"{start}:{file.was or file.path}" if file.status != "A" else "",
            f"{now}:{file.path}" if file.status != "D" else "",
        )
        for file in changed_files
    }
    kinds = kinds_of(tuple(sides), review._replace(ignore=(), critical=()))
    blobs = read_blobs(git, [name for both in sides.values() for name in both if name])
    return tuple(
        Pair(
            path=file.path,
            renamed_from=file.was,
            before=blobs.get(sides[file.path][0]),
            after=blobs.get(sides[file.path][1]),
            is_test=kinds[file.path].kind == "tests",
            read_by_nobody=bool(kinds[file.path].left_out),
        )
        for file in changed_files
        if all(not name or name in blobs for name in sides[file.path])
    )


def _local_gates(
    root_abs: str, old: Raw | ConfigError, new: Raw | ConfigError
) -> Iterable[Weakening]:
    """Yield what changed local settings weaken."""
    if isinstance(old, ConfigError) or isinstance(new, ConfigError):
        return
    try:
        local = load.read_files(root_abs)[LOCAL_FILE]
    except ConfigError:
        return
    whole = _parse({**new, LOCAL_FILE: local})[0]
    if local in (None, old[LOCAL_FILE]) or whole is None:
        return
    for finding in compare_gates(_parse(_shared(new))[0], whole, LOCAL_FILE):
        yield (
            finding
            if new[LOCAL_FILE]
            else finding._replace(detail=f"{finding.detail} ({_NO_SNAPSHOT})")
        )


def _shared(raw: Raw | ConfigError) -> Raw | ConfigError:
    return raw if isinstance(raw, ConfigError) else {**raw, LOCAL_FILE: None}


def _parse(raw: Raw | ConfigError) -> tuple[Config | None, str]:
    """Return a configuration, or its first problem."""
    try:
        if isinstance(raw, ConfigError):
            raise raw
        config, problems = load.parse_files(raw)
    except ConfigError as error:
        return None, error.message
    fatal = [problem for problem in problems if not problem.deferred]
    return (None, f"{fatal[0].location}: {fatal[0].message}") if fatal else (config, "")


def _hooks_off(root_abs: str, git: Git, now: str) -> Iterable[Weakening]:
    """Yield settings of agents that switch all hooks off, in files of no snapshot."""
    for agent in AGENTS:
        path_abs = agent_host(agent).settings_files(root_abs, {}).get("local", "")
        path = os.path.relpath(path_abs or root_abs, root_abs)
        try:
            content = read_regular(path_abs)
        except OSError:
            continue
        if read_settings(agent, content).off and not read_blobs(git, [f"{now}:{path}"]):
            host = agent_host(agent)
            setting = f"{host.OFF.key}: {host.OFF.value} ({_NO_SNAPSHOT})"
            yield Weakening(path, AGENT_HOOKS, setting)


# Our own gates


def compare_gates(before: Config | None, after: Config | None, path: str) -> tuple[Weakening, ...]:
    """Return what has become weaker. `path` is the file with the settings."""
    if before is None:
        return ()
    if after is None:
        return (Weakening(path, GATE, "all gitgates settings were removed"),)
    return tuple(Weakening(path, GATE, text) for text in weaker(before, after))


# Hooks of agents


def find_in_agent_settings(pairs: tuple[Pair, ...], reviewer: str) -> tuple[Weakening, ...]:
    """Return removed and disabled hooks, and changes of the reviewer's instructions."""
    findings: list[Weakening] = []
    for agent, pair in product(AGENTS, pairs):
        host = agent_settings(agent)
        if host.SETTINGS_PATH.search(pair.path):
            texts = _compare_hooks_of_agent(pair, agent)
            findings += (Weakening(pair.path, AGENT_HOOKS, text) for text in texts)
        elif host.AGENT_PATH.search(pair.old_path) and pair.before is not None:
            name = pair.old_path.rpartition("/")[2].rpartition(".")[0]
            if name == reviewer.rpartition(":")[2]:
                what = "deleted" if pair.after is None else "changed"
                findings.append(
                    Weakening(pair.path, AGENT_HOOKS, f"the reviewer's instructions: {what}")
                )
    return tuple(findings)


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
    # Another path to our own program is the same hook, unless it does not keep the agent waiting.
    old_hooks, new_hooks = (
        Counter(
            (h.event, h.matcher or "*", "" if h.is_ours else h.command)
            for h in side.hooks
            if not (h.is_ours and h.loose)
        )
        for side in (old, new)
    )
    for event, matcher, command in old_hooks - new_hooks:
        scope = "" if matcher == "*" else f" for `{matcher}`"
        yield f"{event}: `{command or 'gitgates agent-hook ' + agent}` was removed{scope}"

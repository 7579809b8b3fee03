"""The vocabulary of findings, and the patterns of `patterns.toml`."""

from __future__ import annotations

import functools
import os
import re
import tomllib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from gitgates.core.record import Record

T = TypeVar("T")

TEST_FILE_GONE = "test file deleted"
TEST_GONE = "test removed"
ASSERTIONS_GONE = "assertions removed"
EMPTY_ASSERTION = "assertion that always holds"
SKIPPED = "test skipped"
ONLY = "all other tests skipped"
SUPPRESSED = "warning suppressed"
SETTING = "check's settings changed"
CI = "CI relaxed"
RECIPE = "check relaxed"
HIDDEN = "hidden from diffs"
BYPASSED = "hooks bypassed"
GATE = "gate relaxed"
AGENT_HOOKS = "agent's hooks relaxed"


class Weakening(Record):
    """One thing that weakens the checks."""

    path: str
    what: str  # in a word or two: one of those above
    detail: str  # the line, the name, or what has become of a setting
    line: int = 0  # in the file as it is now; 0: it is about no line of it


class Pair(Record):
    """One changed file: its content before and after."""

    path: str
    before: bytes | None  # None: it was not there
    after: bytes | None  # None: it is gone
    renamed_from: str = ""  # its path before, if it was renamed
    is_test: bool = False  # taken for a test by more than its name
    read_by_nobody: bool = False  # generated, vendored: what its code says of checks does not count

    @property
    def old_path(self) -> str:
        """Its path before."""
        return self.renamed_from or self.path

    @property
    def texts(self) -> tuple[str | None, str | None]:
        """Both sides as text."""
        before, after = (
            None if content is None else content.decode("utf-8", "replace")
            for content in (self.before, self.after)
        )
        return before, after


@functools.cache
def patterns() -> dict[str, Any]:
    """Return what `patterns.toml` holds."""
    with open(os.path.join(os.path.dirname(__file__), "patterns.toml"), "rb") as file:
        return tomllib.load(file)


@functools.cache
def pattern(*keys: str) -> re.Pattern[str]:
    """Return the pattern at some keys; one that never matches if there is none."""
    value: Any = patterns()
    for key in keys:
        value = value.get(key, {})
    return re.compile(alternatives(value) if value else r"(?!)", re.MULTILINE)


def alternatives(value: str | list[str]) -> str:
    """Return the alternatives of one pattern joined, with the shared parts put in."""
    text = value if isinstance(value, str) else "|".join(value)
    for name, shared in patterns()["shared"].items():
        if name in text:
            text = text.replace(name, alternatives(shared))
    return text


def pair_by(
    key: Callable[[T], Hashable], old: Iterable[T], new: Iterable[T]
) -> tuple[list[tuple[T, T]], list[T], list[T]]:
    """Pair the items of two sides by key; return the pairs, and the rest."""
    waiting: dict[Hashable, list[T]] = {}
    for item in new:
        waiting.setdefault(key(item), []).append(item)
    pairs, unpaired = [], []
    for item in old:
        if candidates := waiting.get(key(item)):
            pairs.append((item, candidates.pop(0)))
        else:
            unpaired.append(item)
    return pairs, unpaired, [item for items in waiting.values() for item in items]

"""What weakens the checks, between two states of some files: both sides in, findings out. Pure.

Each side is looked at as a whole, as its language reads it, and the two are compared: a test that
has moved is not gone, and a comment is no code. Cold: only who reviews asks for this.

- `tests`: tests that are gone, assertions that are, in each test and beside them.
- `weaker`: tests that are still there, and claim less, for fewer cases, or without an effect.
- `marks`: tests that are skipped, tools that are told to look away.
- `settings`: what configures tools. `ci`, `recipes`: what runs them, or keeps them off.
- `gates`: our own gates. `agents`: the hooks of an agent.
"""

from __future__ import annotations

from gitgates.weakening.ci import find_in_ci
from gitgates.weakening.finding import Finding, Pair
from gitgates.weakening.marks import find_marks
from gitgates.weakening.precommit import find_manual
from gitgates.weakening.recipes import find_in_recipes
from gitgates.weakening.settings import find_in_settings
from gitgates.weakening.source import read_pair
from gitgates.weakening.tests import find_in_tests

__all__ = ["Finding", "Pair", "find"]


def find(pairs: tuple[Pair, ...]) -> tuple[Finding, ...]:
    """Return what weakens the checks in what has changed, sorted by path and line.

    The pairs are all files that have changed: what left one of them may have come to another.
    """
    sources = tuple(source for pair in pairs if (source := read_pair(pair)))
    found = [*find_in_tests(sources), *find_marks(sources)]
    for pair in pairs:
        manual = find_manual(pair)
        found += [*manual, *_but_stages(find_in_settings(pair), manual)]
    found += [*find_in_ci(pairs), *find_in_recipes(pairs)]
    return tuple(sorted(dict.fromkeys(found), key=_place))


def _but_stages(found: list[Finding], manual: list[Finding]) -> list[Finding]:
    """Leave out that stages are others where it is told of which hooks, or where `manual` went."""
    return [
        one
        for one in found
        if "stages: " not in one.detail or not (manual or one.detail.endswith("stages: - manual"))
    ]


def _place(finding: Finding) -> tuple[str, int, str, str]:
    return finding.path, finding.line, finding.what, finding.detail

"""Tests that are gone, and assertions that are, in a test or beside all of them. Pure.

A test is known by its name: in its file, then anywhere else. One whose name is gone, but whose body
is there under a name that is new, was renamed. What is left over was removed.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from gitgates.weakening.finding import ASSERTIONS_GONE, TEST_FILE_GONE, TEST_GONE, Finding
from gitgates.weakening.merged import is_in_rows, is_merged
from gitgates.weakening.read_tests import read_tests
from gitgates.weakening.weaker import find_weaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitgates.weakening.claims import Claim
    from gitgates.weakening.read_tests import Test, TestFile
    from gitgates.weakening.source import Source

    Pairs = list[tuple[Test, Test]]

_ALIKE = 0.5  # of two bodies' lines: then one test has become the other
_MOST_COMPARED = 40_000  # pairs of tests, all over the change
_NAMED = 5
_MOST_TOLD = 20  # tests that are gone from a file, one by one


def find_in_tests(sources: tuple[Source, ...]) -> list[Finding]:
    """Return tests and assertions that are gone."""
    before = [read_tests(number, one.before, one.old) for number, one in enumerate(sources)]
    after = [read_tests(number, one.after, one.new) for number, one in enumerate(sources)]
    pairs, gone, fresh = _match(before, after)
    rows = _new_rows(pairs, fresh)
    gone = [test for test in gone if not is_in_rows(test, rows)]
    return [
        *_removed(sources, before, gone),
        *_fewer(sources, (before, after), pairs),
        *find_weaker(tuple(one.pair.path for one in sources), pairs, fresh),
    ]


def _new_rows(pairs: Pairs, fresh: list[Test]) -> tuple[str, ...]:
    """Return the rows that tests have got."""
    got = [row for old, new in pairs for row in (Counter(new.rows) - Counter(old.rows)).elements()]
    return (*got, *(row for test in fresh for row in test.rows))


def _match(before: list[TestFile], after: list[TestFile]) -> tuple[Pairs, list[Test], list[Test]]:
    """Return each test with what has become of it, those that are gone, and those that are new."""
    old = [test for read in before for test in read.tests]
    new = [test for read in after for test in read.tests]
    pairs: Pairs = []
    keys: tuple[Callable[[Test], object], ...] = (
        lambda test: (test.file, test.name),
        lambda test: test.name,
    )
    for key in keys:
        found, old, new = _match_by(key, old, new)
        pairs += found
    if len(old) * len(new) > _MOST_COMPARED:
        return pairs, old, new
    gone = []
    for test in old:
        nearest = max(new, key=partial(_nearness, test), default=None)
        if nearest is None or _nearness(test, nearest)[0] < _ALIKE:
            gone.append(test)
            continue
        new.remove(nearest)
        pairs.append((test, nearest))
    return pairs, gone, new


def _match_by(
    key: Callable[[Test], object], old: list[Test], new: list[Test]
) -> tuple[list[tuple[Test, Test]], list[Test], list[Test]]:
    waiting: dict[object, list[Test]] = {}
    for test in new:
        waiting.setdefault(key(test), []).append(test)
    pairs, left = [], []
    for test in old:
        found = waiting.get(key(test))
        if found:
            pairs.append((test, found.pop(0)))
        else:
            left.append(test)
    return pairs, left, [test for tests in waiting.values() for test in tests]


def _nearness(one: Test, other: Test) -> tuple[float, bool]:
    common = sum((Counter(one.body) & Counter(other.body)).values())
    length = len(one.body) + len(other.body)
    return (2 * common / length if length else 0.0), one.file == other.file


def _removed(
    sources: tuple[Source, ...], before: list[TestFile], gone: list[Test]
) -> Iterable[Finding]:
    by_file: dict[int, list[Test]] = {}
    for test in gone:
        by_file.setdefault(test.file, []).append(test)
    for number, source in enumerate(sources):
        pair, tests = source.pair, by_file.get(number, [])
        if pair.after is not None and len(tests) > _MOST_TOLD:
            yield Finding(pair.path, TEST_GONE, f"{len(tests)} tests: {_names(tests)}")
        elif pair.after is not None:
            for test in tests:
                where = f", of {pair.was}" if pair.was else ""
                yield Finding(pair.path, TEST_GONE, f"{test.name} (line {test.line} before{where})")
        elif tests or (before[number].beside and not before[number].tests):
            detail = f"with {_names(tests)}" if tests else "with its assertions"
            yield Finding(pair.path, TEST_FILE_GONE, detail)


def _names(tests: list[Test]) -> str:
    named = ", ".join(test.name for test in tests[:_NAMED])
    more = f" and {len(tests) - _NAMED} more" if len(tests) > _NAMED else ""
    return f"{named}{more}"


def _fewer(
    sources: tuple[Source, ...],
    sides: tuple[list[TestFile], list[TestFile]],
    pairs: Pairs,
) -> Iterable[Finding]:
    """Compare assertions, test by test; what is there again elsewhere has only moved."""
    balance = _Balance(sides)
    for old, new in sorted(pairs, key=lambda pair: (pair[1].file, pair[1].line)):
        lost = balance.lost(old.claims, new.claims)
        if lost and not is_merged(old, new):
            detail = f"in {new.name}: {_numbers(old.claims, new.claims)}, without `{lost}`"
            yield Finding(sources[new.file].pair.path, ASSERTIONS_GONE, detail, new.line)
    for source, before, after in zip(sources, *sides, strict=True):
        lost = balance.lost(before.beside, after.beside)
        if lost and source.pair.after is not None:
            detail = f"beside tests: {_numbers(before.beside, after.beside)}, without `{lost}`"
            yield Finding(source.pair.path, ASSERTIONS_GONE, detail)


def _numbers(before: tuple[Claim, ...], after: tuple[Claim, ...]) -> str:
    return f"{len(before)} → {len(after)}"


class _Balance:
    """Which assertions are gone from the whole change, and which are new in it."""

    def __init__(self, sides: tuple[list[TestFile], list[TestFile]]) -> None:
        before, after = (Counter(claim for read in side for claim in _all(read)) for side in sides)
        self._gone = before - after
        self._new = after - before

    def lost(self, before: tuple[Claim, ...], after: tuple[Claim, ...]) -> str:
        """Return the first assertion that a place has lost without another instead; or nothing.

        One that compares two lists stands for as many as they have entries.
        """
        gone = _take(Counter(before) - Counter(after), self._gone)
        new = _take(Counter(after) - Counter(before), self._new)
        is_less = sum(one.weight for one in gone) > sum(one.weight for one in new)
        return gone[0].shown if len(gone) > len(new) and is_less else ""


def _all(read: TestFile) -> Iterable[Claim]:
    yield from read.beside
    for test in read.tests:
        yield from test.claims


def _take(wanted: Counter[Claim], stock: Counter[Claim]) -> list[Claim]:
    """Return what is wanted as far as it is in stock, and take it out of that."""
    taken = wanted & stock
    stock.subtract(taken)
    return list(taken.elements())

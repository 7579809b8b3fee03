"""Tests that are still there, and hold less: what each claims, expects, reaches, runs for. Pure."""

from __future__ import annotations

import re
from collections import Counter

from gitgates.weakening.claims import EXACT, LOOSE, SAME, is_about_the_same
from gitgates.weakening.finding import (
    CASES_GONE,
    EMPTY_ASSERTION,
    NOT_REACHED,
    SWALLOWED,
    WEAKER_ASSERTION,
    Finding,
)
from gitgates.weakening.swallowed import find_swallowed
from gitgates.weakening.unreached import find_unreached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.read_tests import Test

    Pairs = list[tuple[Test, Test]]

# family → what an error is named by, where one is expected
_EXPECTED = {
    "python": r"\b(?:raises|warns|assertRaises(?:Regex)?|assertWarns(?:Regex)?)\(\s*"
    r"(?P<error>\([^)\n]*\)|[\w.]+)",
    "c": r"\bassert(?:Throws|ThrowsExactly|FailsWith)\s*[(<]\s*(?P<error>[\w.]+?)(?=\.class|::|>)"
    r"|\bThrows(?:Any)?(?:Async)?<(?P<other>[\w.]+)>",
    "php": r"\bexpectException\(\s*\\?(?P<error>[\w\\]+)::class",
    "ruby": r"\braise_error\(?\s*(?P<error>[A-Z][\w:]*)",
}
_MATCHED = re.compile(r"\bmatch\s*=(?!=)|\bassert(?:Raises|Warns)Regex\b")
_BROAD = frozenset(
    [
        "Exception",
        "BaseException",
        "Throwable",
        "RuntimeException",
        "Error",
        "StandardError",
        "Warning",
    ]
)
_SHOWN = 3


def find_weaker(paths: tuple[str, ...], pairs: Pairs, fresh: list[Test]) -> Iterable[Finding]:
    """Yield what tests have lost that are still there; `fresh` are those that are new."""
    gone_claims = _gone(
        [(old.claims, new.claims) for old, new in pairs], [one.claims for one in fresh]
    )
    gone_rows = _gone([(old.rows, new.rows) for old, new in pairs], [one.rows for one in fresh])
    for old, new in pairs:
        path = paths[new.file]
        if old.code == new.code and old.rows == new.rows and old.claims == new.claims:
            continue
        for what, text, place in _weaker_claims(old, new, gone_claims):
            yield Finding(path, what, f"in {new.name}: {text}", new.line + 1 + place)
        for text in _broader(old, new):
            yield Finding(path, WEAKER_ASSERTION, f"in {new.name}: {text}", new.line)
        if text := _fewer_rows(old, new, gone_rows):
            split_up = sum(1 for one in fresh if one.file == new.file)
            if split_up < len(old.rows) - len(new.rows):
                yield Finding(path, CASES_GONE, f"of {new.name}: {text}", new.line)
        yield from _not_held(path, old, new)


def _gone(
    pairs: list[tuple[tuple[object, ...], tuple[object, ...]]], fresh: list[tuple[object, ...]]
) -> Counter[object]:
    """Return what is not there any more, all over the change."""
    before = Counter(one for old, _ in pairs for one in old)
    after = Counter(one for _, new in pairs for one in new)
    return before - after - Counter(one for new in fresh for one in new)


def _weaker_claims(old: Test, new: Test, gone: Counter[object]) -> Iterable[tuple[str, str, int]]:
    """Yield the exact claims that have become loose ones about the same."""
    lost = [one for one in (Counter(old.claims) - Counter(new.claims)).elements() if gone[one]]
    came = list((Counter(new.claims) - Counter(old.claims)).elements())
    exact = [one for one in lost if one.force == EXACT]
    others = [one for one in came if one.force == EXACT]
    for one in list(exact):
        again = next((other for other in others if set(one.about) & set(other.about)), None)
        if again is not None:
            exact.remove(one)
            others.remove(again)
    # What is claimed exactly of something else instead may be the same in other words.
    surplus = len(exact) - sum(one.weight for one in others)
    loose = [one for one in came if one.force in (LOOSE, SAME)]
    for one in exact:
        weak = next((w for w in loose if w.force == SAME or is_about_the_same(one, w)), None)
        if surplus <= 0 or weak is None:
            continue
        loose.remove(weak)
        surplus -= 1
        what = EMPTY_ASSERTION if weak.force == SAME else WEAKER_ASSERTION
        place = new.places[new.claims.index(weak)]
        yield what, f"`{one.shown}` is now `{weak.shown}`", place


def _broader(old: Test, new: Test) -> Iterable[str]:
    """Yield where an error is expected of a wider kind, or with any message."""
    was, now = _errors(old), _errors(new)
    lost, came = list((was - now).elements()), list((now - was).elements())
    for error in lost:
        wider = next((one for one in came if _is_wider(one, error)), None)
        if wider is not None:
            came.remove(wider)
            yield f"expects `{error}`, now any `{wider}`"
    if old.syntax == "python" and was.total() == now.total():
        less = _matches(old) - _matches(new)
        if less > 0 and len(new.claims) <= len(old.claims):
            yield "expects an error, now with any message"


def _is_wider(one: str, error: str) -> bool:
    if one.startswith("("):
        inside = [name.strip() for name in one[1:-1].split(",")]
        return error in inside and len([name for name in inside if name]) > 1
    last, was = (re.split(r"[.:\\]", name)[-1] for name in (one, error))
    return last in _BROAD and was not in _BROAD


def _errors(test: Test) -> Counter[str]:
    pattern = _EXPECTED.get(test.syntax)
    if pattern is None:
        return Counter()
    found = re.finditer(pattern, "\n".join(test.code))
    return Counter(
        " ".join((one["error"] or one.groupdict().get("other") or "").split()) for one in found
    )


def _matches(test: Test) -> int:
    return len(_MATCHED.findall("\n".join(test.code)))


def _fewer_rows(old: Test, new: Test, gone: Counter[object]) -> str:
    """Tell which cases a test does not run for any more; where it has none, we cannot tell."""
    lost = [row for row in (Counter(old.rows) - Counter(new.rows)).elements() if gone[row]]
    if not new.rows or len(new.rows) >= len(old.rows) or not lost:
        return ""
    named = ", ".join(f"`{row[:60]}`" for row in lost[:_SHOWN])
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    return f"{len(old.rows)} → {len(new.rows)}, without {named}{more}"


def _not_held(path: str, old: Test, new: Test) -> Iterable[Finding]:
    """Yield what keeps assertions from being reached, or their failure from being seen."""
    if (found := find_unreached(new)) and not find_unreached(old):
        text, place = found
        yield Finding(
            path, NOT_REACHED, f"in {new.name}: `{text}` before them", new.line + 1 + place
        )
    quiet = list(find_swallowed(new))
    for text, place in quiet[len(list(find_swallowed(old))) :]:
        yield Finding(path, SWALLOWED, f"in {new.name}: `{text}`", new.line + 1 + place)

"""The words that projects use for their tasks, and what a gate of each is like. Data."""

from __future__ import annotations

import re

from gitgates.record import Record


class Word(Record):
    """One kind of gate."""

    name: str  # the gate's
    spellings: tuple[str, ...]  # best first
    description: str
    timeout: str
    fast: bool  # before each commit; the others before a push


# Of two spellings the one that only looks is better than the one that rewrites.
WORDS: tuple[Word, ...] = (
    Word(
        "format",
        (
            *("format-check", "formatcheck", "check-format", "checkformat"),
            *("fmt-check", "fmtcheck", "check-fmt", "prettier-check", "format", "fmt"),
        ),
        "Formatting",
        "1m",
        fast=True,
    ),
    Word("lint", ("lint", "lints", "linting"), "Linting", "2m", fast=True),
    Word(
        "typecheck",
        ("typecheck", "type-check", "check-types", "types", "typing", "type", "mypy", "pyright"),
        "Types",
        "3m",
        fast=True,
    ),
    Word("check", ("check", "checks"), "The project's own checks", "5m", fast=True),
    Word("test", ("test", "tests"), "Tests", "10m", fast=False),
    Word("build", ("build",), "Build", "10m", fast=False),
)

_SEPARATOR = re.compile(r"[:_.\s]+")
_CHECK_MODE = re.compile(
    r"--check\b|--diff\b|--list-different\b|--dry-run\b|--verify-no-changes\b|gofmt -l\b"
    r"|prettier -[cl]\b|\bcheck[-:]?f|f(?:orma|m)t[-_:]?check"
)
_FIXES = re.compile(r"--fix\b|--write\b")
# A bare `test` or `tests` may as well be a folder that a linter looks at.
_TESTS = re.compile(
    r"\b(?:pytest|unittest|jest|vitest|mocha|ctest|tox|rspec)\b"
    r"|\b(?:go|cargo|npm|pnpm|yarn|bun|deno|make|just|task|mise|run|mix|dotnet|swift) tests?\b"
)


def find_word(name: str) -> tuple[Word, int] | None:
    """Return the word that a task's name spells, and how good a spelling it is: 0 is best."""
    plain = _SEPARATOR.sub("-", name.strip().lower())
    for word in WORDS:
        if plain in word.spellings:
            return word, word.spellings.index(plain)
    return None


def is_writing(word: Word, name: str, command: str, body: str) -> bool:
    """Tell whether a task rewrites files, as far as its words show."""
    plain = _SEPARATOR.sub("-", name.lower())
    if word.name == "format":
        return "check" not in plain and not _CHECK_MODE.search(f"{command} {body}")
    return bool(_FIXES.search(body))


def runs_tests(body: str) -> bool:
    """Tell whether the text of a task runs tests."""
    return bool(_TESTS.search(body))

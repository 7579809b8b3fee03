"""Patterns of other tools become patterns of gitignore that select the same paths."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gitgates.engine.plan.match import select
from gitgates.setup.convert.globs import (
    NoPatternError,
    from_doublestar,
    from_gobwas,
    from_regex,
)

REGEX = {
    r"\.py$": ["*.py"],
    r"^src/": ["/src/"],
    r"^(src/|testing/|scripts/)": ["/src/", "/testing/", "/scripts/"],
    r"^docs/conf.py$": ["docs/conf.py"],
    r"(CHANGES|the_basics)\.md$": ["*CHANGES.md", "*the_basics.md"],
    r"^src/.*\.pyi?$": ["src/**/*.pyi", "src/**/*.py"],
    r"tests/[^/]+\.js$": ["**/*tests/*.js"],
    "migrations": ["*migrations*"],
    "(?x)^(\n  a/  # one\n  | b\\.txt\n)": ["/a/", "/b.txt*"],
    "^nox/": ["/nox/"],
    "^charts/.*/": ["charts/*/"],
    "^!a/b$": [r"\!a/b"],
    ".*": ["*"],
    "": ["*"],
    "/vendor/": ["*/**/vendor/"],
    r"(^|/)package\.json$": ["/package.json", "*/**/package.json"],
}
GOBWAS = {
    "*.{js,ts}": ["*.js", "*.ts"],
    "src/*.js": ["src/**/*.js"],
    "src/**/*.js": ["src/*/**/*.js"],
    "**/*.rb": ["*/**/*.rb"],
    "{package.json,packages/*/package.json}": ["/package.json", "packages/*/**/package.json"],
    "config/x.rb": ["config/x.rb"],
    "*": ["*"],
    "a[!b]": None,
}
PATHS = [
    "a.py", "src/a.py", "src/x/b.pyi", "x/src/a.py", "docs/conf.py",
    "CHANGES.md", "x/the_basics.md",
    "ab", "a/b", "a1/c/2b", "tests/x.js", "u/tests/y.js", "tests/z/x.js", "migrations/1.sql",
    "b.txt", "a/c", "nox/n.py", "vendor/v.c", "lib/vendor/v.c", "x1", "$x", "src/app.js",
    "src/x/app.js", "src/x/y/app.js", "app.js", "app.ts", "app.rb", "lib/app.rb", "package.json",
    "packages/a/package.json", "packages/package.json", "config/x.rb", "config/y/x.rb",
]  # fmt: skip


@pytest.mark.parametrize(("expression", "patterns"), REGEX.items())
def test_regular_expressions(expression: str, patterns: list[str]) -> None:
    assert from_regex(expression) == patterns
    found = [path for path in PATHS if re.search(expression, path)]
    assert [*select(tuple(PATHS), tuple(patterns), ())] == found


@pytest.mark.parametrize(("glob", "patterns"), GOBWAS.items())
def test_globs_of_lefthook(glob: str, patterns: list[str] | None) -> None:
    if patterns is None:
        with pytest.raises(NoPatternError):
            from_gobwas(glob)
        return
    assert from_gobwas(glob) == patterns
    plain = _braces(glob)
    found = [path for path in PATHS if any(fnmatch.fnmatchcase(path, part) for part in plain)]
    assert [*select(tuple(PATHS), tuple(patterns), ())] == found


def _braces(glob: str) -> list[str]:
    head, brace, rest = glob.partition("{")
    inside, _, tail = rest.partition("}")
    return [f"{head}{part}{tail}" for part in inside.split(",")] if brace else [glob]


def test_usual_globs() -> None:
    assert from_doublestar("*.{js,ts}") == ["/*.js", "/*.ts"]
    assert from_doublestar("src/**/*.js") == ["src/**/*.js"]


@pytest.mark.parametrize(
    "expression",
    [
        r"(?!a)b",
        r"\d+",
        r"a{2}",
        r"[^a]",
        r"x[0-9]",
        r"^\$x$",
        r"[\w]",
        r"(a",
        "a)",
        r"a^b",
        r"\bx",
        "(a|b)+",
        "*",
        "a.*b",
        "a/$",
    ],
)
def test_what_has_no_counterpart_is_refused(expression: str) -> None:
    with pytest.raises(NoPatternError):
        from_regex(expression)


_PART = st.sampled_from(["a", "b", "/", r"\.", ".*", "[^/]*", "(a|b/)", "x?"])


@given(
    st.lists(_PART, min_size=1, max_size=6).map("".join),
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "$"]),
    st.text("ab/.x", min_size=1, max_size=9).filter(
        lambda path: not {"", ".", ".."} & {*path.split("/")}
    ),
)
@example(body="[^/]*/a", start="", end="", path="a")
@example(body="(a|b/)", start="^", end="", path="b/a")
def test_the_same_paths_are_selected(body: str, start: str, end: str, path: str) -> None:
    expression = f"{start}{body}{end}"
    try:
        patterns = from_regex(expression)
    except NoPatternError:
        return
    # A pattern that selects a folder selects all that lies in it.
    parts = path.split("/")
    prefixes = ["/".join(parts[:count]) for count in range(1, len(parts))]
    is_found = bool(re.search(expression, path))
    is_selected = bool(select((path,), tuple(patterns), ()))
    if is_found:
        assert is_selected, patterns
    elif is_selected:
        assert any(re.search(expression, prefix) for prefix in prefixes), patterns

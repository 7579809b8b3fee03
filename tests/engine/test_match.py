"""Patterns select what `git check-ignore` would ignore."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgates.engine.plan.match import match_name, matches, parse, select


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ignore")
    subprocess.run(["git", "init", "-q", path], check=True)
    return path


def ask_git(repo: Path, cases: list[tuple[list[str], str]]) -> list[bool]:
    """Ask once, each path in a folder that has its patterns."""
    paths = [f"c{number}/{path}" for number, (_lines, path) in enumerate(cases)]
    for number, (lines, _path) in enumerate(cases):
        (repo / f"c{number}").mkdir(exist_ok=True)
        (repo / f"c{number}/.gitignore").write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        ["git", "-C", repo, "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths).encode() + b"\0",
        capture_output=True,
        check=False,
    )
    ignored = set(done.stdout.decode().split("\0"))
    return [path in ignored for path in paths]


SEGMENT = st.text(alphabet="ab.x", min_size=1, max_size=3).filter(lambda t: t not in (".", ".."))
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
PIECE = st.sampled_from(["a", "b", "x", ".", "*", "?", "[ab]", "[!a]", "\\*", "[a-x]", "a*b"])
# A ** that is only part of a segment means different things to git, depending on what precedes it.
GLOB_SEGMENT = st.just("**") | st.lists(PIECE, min_size=1, max_size=3).map("".join).filter(
    lambda text: "**" not in text
)
PATTERN = st.builds(
    lambda neg, root, body, tail: neg + root + body + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(GLOB_SEGMENT, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
)


@pytest.mark.slow
@given(cases=st.lists(st.tuples(st.lists(PATTERN, min_size=1, max_size=4), PATH), max_size=30))
def test_selection_agrees_with_git(repo: Path, cases: list[tuple[list[str], str]]) -> None:
    found = [matches(path, [parse(line) for line in lines]) for lines, path in cases]
    assert found == (ask_git(repo, cases) if cases else [])


RULES = [
    (["*.py"], "a/b/c.py", True),
    (["*.py"], "c.pyc", False),
    (["vendor/"], "x/vendor/lib.c", True),
    (["vendor/"], "vendor", False),
    (["/src"], "src/a.c", True),
    (["/src"], "lib/src/a.c", False),
    (["src/*.c"], "src/a.c", True),
    (["src/*.c"], "src/deep/a.c", False),
    (["src/**/*.c"], "src/deep/er/a.c", True),
    (["*.py", "!test_*.py"], "test_a.py", False),
    (["docs", "!docs/keep.md"], "docs/keep.md", True),
    (["\\!important"], "!important", True),
    (["sp ace/*"], "sp ace/new\nline", True),
    (["[[:digit:]]*"], "7up", True),
    (["[unclosed"], "[unclosed", False),
]


def test_rules_of_gitignore() -> None:
    wrong = [
        (lines, path)
        for lines, path, expected in RULES
        if matches(path, [parse(line) for line in lines]) is not expected
    ]
    assert wrong == []


def test_select_keeps_the_order_and_honours_exclude() -> None:
    paths = ("b.py", "vendor/a.py", "a.py", "readme.md")
    assert select(paths, ("*.py",), ("vendor/",)) == ("b.py", "a.py")
    assert select(paths, None, ()) == paths
    assert select(paths, (), ()) == ()


def test_many_stars_take_no_exponential_time() -> None:
    assert not match_name("*a" * 30 + "b", "a" * 200)
    assert not select(("/".join("a" * 200),), ("**/a/" * 30 + "b",), ())

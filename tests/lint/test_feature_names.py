"""A feature is named in its folder, in its rows of the table and in the list of verbs.

Counted are the modules elsewhere that name it: by the words that their identifiers, imports and
short strings are made of. Strings of more than two words are prose, or patterns, and not counted.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import size

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gitgates"
MAY_NAME = {"core/policy.py", "cli/__init__.py"}
# feature → how many other modules name it, at most.
MOST = {"advice": 0, "guard": 0, "intents": 0, "trace": 0}
MOST["review"] = 1  # drivers/shell_commands.py: which of its commands change no file
MOST["guard"] = 1  # core/guarded.py: the table of its rules
MOST["land"] = 2  # an option of headless, which starts it
MOST |= {"headless": 26, "mcp": 12}  # modes of clients, too, and a protocol of theirs
NOT_COUNTED = {
    "commits",
    "evidence",
    "examples",
    "gates",
    "messages",
    "proof",
    "remote",
    "undo",
    "worktree",
}  # common words, for other subjects, too
# How else a feature is called.
SYNONYMS = {"intent": "intents", **dict.fromkeys(("reviews", "reviewer", "reviewers"), "review")}
OTHERS = {"TypeGuard", "code-review", "vscode_reviewPlan"}  # names that are not ours


def mentions(tree: ast.Module) -> set[str]:
    """Return the features that a module names."""
    words = {word for name in {*_names(tree)} - OTHERS for word in _words(name)}
    return {SYNONYMS.get(word, word) for word in words} & MOST.keys()


@functools.cache
def _words(name: str) -> list[str]:
    return re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _names(tree: ast.Module) -> Iterator[str]:
    for node in size.nodes_of(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if len(text.split()) <= 2:
                yield text
            case _:
                pass


@functools.cache
def _modules() -> dict[str, set[str]]:
    return {
        module.path.removeprefix("gitgates/"): mentions(module.tree)
        for module in size.read_modules(ROOT)
    }


@pytest.mark.parametrize("feature", MOST)
def test_a_feature_is_named_in_its_folder_and_its_row(feature: str) -> None:
    assert feature in _modules()["core/policy.py"] | _modules()["cli/__init__.py"]
    elsewhere = [
        file
        for file, features in sorted(_modules().items())
        if feature in features
        and file not in MAY_NAME
        and not file.startswith(f"features/{feature}/")
    ]
    assert len(elsewhere) <= MOST[feature], elsewhere


def test_no_feature_is_left_out() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("features/*/__init__.py")}
    assert folders == {*MOST, *NOT_COUNTED}


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("from gitgates.features import advice", {"advice"}),
        ("import gitgates.features.trace.ledger", {"trace"}),
        ("class ReviewerChangedEntry: pass", {"review"}),
        ("call(intent=1)", {"intents"}),
        ("f(_GUARD_ALONE, x.review_file)", {"guard", "review"}),
        ("'GITGATES_ADVICE'", {"advice"}),
        ("f'gitgates review {verb}'", {"review"}),
        ("'Fix it, then ask for a review.'", set()),
        ("x: TypeGuard[int] = guarded, 'code-review', traceback, preview", set()),
    ],
)
def test_what_names_a_feature(source: str, named: set[str]) -> None:
    assert mentions(ast.parse(source)) == named

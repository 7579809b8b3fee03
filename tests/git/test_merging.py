"""Commits that are merged, squashed and rebased without a working tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import Repo
from land_support import BY, begin, branch, opened

from gitgates.features.land.candidate import merge_in_checkout
from gitgates.git.merging import Building, ConflictError, merge_trees, merges_in_memory

if TYPE_CHECKING:
    from gitgates.git.merging import Merge

MERGES = pytest.mark.parametrize("merge", [merge_trees, merge_in_checkout])


@pytest.fixture
def two(repo: Repo) -> Repo:
    """A branch of two commits, one of them by somebody else, beside a commit on main."""
    begin(repo)
    branch(repo, "b", {"b.txt": "b\n"})
    repo.git("checkout", "-q", "b")
    repo.write("shared.txt", "one\nmore\n")
    repo.git("commit", "-qam", "more\n\nbecause", "--author", "Ann <ann@example.invalid>")
    repo.git("checkout", "-q", "main")
    repo.write("a.txt", "a\n")
    repo.commit_all("a")
    return repo


@MERGES
def test_each_method_makes_the_same_tree(two: Repo, merge: Merge) -> None:
    if merge is merge_trees and not merges_in_memory(opened(two)):
        pytest.skip("git is older than 2.38")
    before = two.git("for-each-ref"), two.git("status", "--porcelain")
    making = Building(opened(two), BY, merge)
    base, tip = two.git("rev-parse", "main"), two.git("rev-parse", "b")
    merged = making.merged(base, tip, "Merge branch 'b'\n")
    squashed, rebased = making.squashed(base, tip, "Land b"), making.rebased(base, tip)
    assert {two.git("rev-parse", f"{each}^{{tree}}") for each in (merged, squashed, rebased)} == {
        two.git("rev-parse", f"{merged}^{{tree}}")
    }
    assert two.git("ls-tree", "--name-only", merged).split() == [
        *("a.txt", "b.txt", "gitgates.toml", "shared.txt"),
    ]
    assert (
        two.git("log", "-1", "--format=%P|%an|%s", merged) == f"{base} {tip}|Test|Merge branch 'b'"
    )
    assert two.git("log", "-1", "--format=%P|%an|%B", squashed) == (
        f"{base}|Ann|Land b\n\n* write b.txt\n* more"
    )
    assert two.git("log", "--format=%an|%cn|%B", f"{base}..{rebased}") == (
        "Ann|Test|more\n\nbecause\n\nTest|Test|write b.txt"
    )
    assert making.merged(merged, base, "nothing") == merged
    assert making.rebased(two.git("rev-parse", "b~2"), tip) == tip  # it is there already
    assert (two.git("for-each-ref"), two.git("status", "--porcelain")) == before


@MERGES
def test_a_conflict_has_its_paths_and_both_sides(two: Repo, merge: Merge) -> None:
    two.write("shared.txt", "one\nother\n")
    two.commit_all("other")
    with pytest.raises(ConflictError) as caught:
        merge(opened(two), two.git("rev-parse", "main"), two.git("rev-parse", "b"))
    assert caught.value.paths == ["shared.txt"]
    marked = two.git("cat-file", "blob", f"{caught.value.tree}:shared.txt")
    assert "other\n=======\nmore\n" in marked

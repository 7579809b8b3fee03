"""Save points that are damaged, and words that name none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Repo
from points_support import CONFIG, found, record, undo

from gitgates.features.undo.moments import recorded
from gitgates.files.memory import Memory


@pytest.fixture
def begun(repo: Repo) -> Repo:
    """A repository with two points of a session."""
    repo.config(CONFIG)
    repo.write("a", "1\n")
    repo.commit("base")
    record(repo)
    for content in ("2\n", "3\n"):
        repo.write("a", content)
        record(repo, "s")
    return repo


def test_a_damaged_point_is_listed_beside_whole_ones(begun: Repo) -> None:
    (_one, two) = recorded(found(begun))
    folder = Memory(found(begun)).folder_abs
    Path(folder, "objects", two.tree[:2], two.tree[2:]).unlink()
    listed = json.loads(undo(begun, "--format", "json").stdout)["points"]
    assert [row["changed"] for row in listed] == ["damaged", "1 file, +1 −1"]


def test_a_damaged_index_does_not_keep_the_list(begun: Repo) -> None:
    (begun.path / ".git/gitgates/files.index").write_bytes(b"damaged")
    assert b"+1" in undo(begun).stdout
    undo(begun, "1")
    assert (begun.path / "a").read_text() == "1\n"


def test_a_number_that_no_point_has(begun: Repo) -> None:
    for word in ("0", "00", "9" * 5000):
        done = begun.gitgates("undo", word)
        assert done.returncode == os.EX_USAGE
        assert b"there is no save point" in done.stderr

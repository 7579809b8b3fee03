"""Save points that are damaged, and words that name none."""

from __future__ import annotations

import json
import os
import time

import pytest
from conftest import Repo
from points_support import CONFIG, SETTINGS, found, record, undo

from gitgates.features.undo import points


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
    one, two = points.points_of(found(begun))
    state_abs = begun.path / f".git/gitgates/undo/git/objects/{two.after[:2]}/{two.after[2:]}"
    state_abs.unlink()
    listed = json.loads(undo(begun, "--format", "json").stdout)["points"]
    assert [row["changed"] for row in listed] == ["damaged", "1 file, +1 −1"]
    assert points.prune(found(begun), SETTINGS, time.time() + 2e6, at_once=True) == ""
    assert one.id == 1


def test_a_damaged_index_does_not_keep_the_list(begun: Repo) -> None:
    (begun.path / ".git/gitgates/undo.index").write_bytes(b"damaged")
    assert b"+1" in undo(begun).stdout
    undo(begun, "1")
    assert (begun.path / "a").read_text() == "1\n"


def test_a_line_with_wrong_types_is_no_point(begun: Repo) -> None:
    log = begun.path / ".git/gitgates/undo/points.jsonl"
    fields = json.loads(log.read_bytes().splitlines()[-1])
    with log.open("a") as file:
        for wrong in ({"time_s": "x"}, {"before": 3}, {"after": None}):
            file.write(json.dumps({**fields, **wrong, "id": fields["id"] + 1}) + "\n")
            file.flush()
            assert [point.id for point in points.points_of(found(begun))] == [1, 2]


def test_a_number_that_no_point_has(begun: Repo) -> None:
    for word in ("0", "00", "9" * 5000):
        done = begun.gitgates("undo", word)
        assert done.returncode == os.EX_USAGE
        assert b"there is no save point" in done.stderr

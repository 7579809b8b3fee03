"""Objects of git, read many at once."""

from __future__ import annotations

import os

import pytest
from conftest import Repo

from gitgates.git import object_store
from gitgates.git.object_store import iterate_blobs, read_blobs
from gitgates.git.repo import find_repo

FILES = {"a": "a\n", "empty": "", "large": "x" * 40, "odd name\n": "\n\n", "z": "no newline"}


@pytest.mark.parametrize("most_bytes", [1, 11, 1 << 20])
def test_blobs_are_read_in_parts(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    monkeypatch.setattr(object_store, "_MOST_BYTES", most_bytes)
    ids = {}
    for name, content in FILES.items():
        repo.write(name, content)
        ids[name] = repo.git("hash-object", "-w", name)
    git = find_repo(str(repo.path), dict(os.environ)).git
    names = [ids["a"], "0" * 40, *ids.values(), "HEAD:missing"]
    small = {ids[name]: text.encode() for name, text in FILES.items() if name != "large"}
    assert list(iterate_blobs(git, names, 39)) == list(small.items())
    assert read_blobs(git, names) == {id_: FILES[name].encode() for name, id_ in ids.items()}
    assert read_blobs(git, []) == {}

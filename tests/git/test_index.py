"""Whether an index has files is read from its bytes, and where these do not tell, that is no."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Repo

from gitgates.git.index import has_exactly, names_ending

A, B = b"[gates]\n", b"[tool]\n"
FILES = {"gitgates.toml": A, "web/gitgates.toml": B, "pyproject.toml": None}


def index_of(repo: Repo) -> bytes:
    return (repo.path / ".git/index").read_bytes()


@pytest.fixture
def staged(repo: Repo) -> Repo:
    for name, content in FILES.items():
        if content:
            repo.write(name, content)
    repo.write("x/not-gitgates.toml", A)
    repo.git("add", ".")
    return repo


def test_all_files_are_there_as_they_are(staged: Repo) -> None:
    assert has_exactly(index_of(staged), FILES)
    assert has_exactly(index_of(staged), {"gitgates.toml": A.replace(b"\n", b"\r\n")})
    for name, content in {
        "gitgates.toml": B,
        "web/gitgates.toml": None,
        "not-gitgates.toml": A,
        "pyproject.toml": B,
    }.items():
        assert not has_exactly(index_of(staged), {**FILES, name: content}), name


def test_flags_of_other_files_change_nothing_and_of_these_are_no_answer(staged: Repo) -> None:
    staged.git("update-index", "--skip-worktree", "x/not-gitgates.toml")
    assert index_of(staged)[7] == 3
    assert has_exactly(index_of(staged), FILES)
    staged.git("update-index", "--assume-unchanged", "gitgates.toml")
    staged.git("update-index", "--skip-worktree", "web/gitgates.toml")
    for name in ("gitgates.toml", "web/gitgates.toml"):
        for content in (FILES[name], None):
            assert not has_exactly(index_of(staged), {name: content}), name


@pytest.mark.parametrize("how", [("--index-version", "4"), ("--split-index",)])
def test_another_form_of_the_index_is_no_answer(staged: Repo, how: tuple[str, ...]) -> None:
    staged.git("update-index", *how)
    assert not has_exactly(index_of(staged), FILES)
    assert not has_exactly(index_of(staged), {"pyproject.toml": None})
    assert not has_exactly(b"", {})


def test_the_ids_of_sha256(tmp_path: Path) -> None:
    tmp_path.joinpath("repo").mkdir()
    repo = Repo(tmp_path / "repo")
    repo.git("init", "-q", "--object-format=sha256")
    repo.write("gitgates.toml", A)
    repo.git("add", ".")
    assert has_exactly(index_of(repo), {"gitgates.toml": A, "pyproject.toml": None})
    assert not has_exactly(index_of(repo), {"gitgates.toml": B})


def test_names_of_the_same_end(staged: Repo) -> None:
    staged.write(f"{'long/' * 60}gitgates.toml", B)
    assert names_ending(index_of(staged), "gitgates.toml") == {"web/gitgates.toml"}
    staged.git("add", ".")
    assert names_ending(index_of(staged), "gitgates.toml") is None  # one has too long a name

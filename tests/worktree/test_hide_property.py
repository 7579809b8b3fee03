"""Over random repositories, stagings and edits: hiding and putting back changes nothing at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import forked
import pytest
from conftest import Repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_concurrent_edits import arm
from worktree_state import whole

# Names that are files in one state and folders in another, and names that need care.
NAMES = ["a", "b", "d/a", "d/b", "d/e/f", "x y", "-n", "ü", os.fsdecode(b"r\xff")]
CONTENTS = [b"", b"one\n", b"two\r\n", b"\0\xff", b"one\ntwo\nthree\n", b"x" * 5000]

File = st.tuples(st.sampled_from(CONTENTS), st.booleans())
Change = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), File),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(["a", "d", "nowhere"])),
    st.tuples(st.just("folder"), st.sampled_from(["a", "b"]), st.none()),
    st.tuples(st.just("announce"), st.sampled_from(NAMES), st.none()),
)
Changes = st.lists(Change, max_size=6)


def clear(path: Path) -> None:
    """Make place for something at `path`: nothing there, real folders above."""
    for above in reversed(path.parents):
        if above.is_symlink() or above.is_file():
            above.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def apply(repo: Repo, changes: list[tuple[str, str, object]]) -> None:
    for kind, name, detail in changes:
        path = repo.path / name
        clear(path)
        if kind == "write":
            assert isinstance(detail, tuple)
            path.write_bytes(detail[0])
            path.chmod(0o755 if detail[1] else 0o640)
        elif kind == "link":
            path.symlink_to(str(detail))
        elif kind == "folder":
            path.mkdir()
            (path / "inside").write_bytes(b"inside\n")
        elif kind == "announce":
            path.write_bytes(b"announced\n")
            repo.ask("git", "add", "-N", "--", name)


@pytest.mark.slow
@settings(
    max_examples=settings().max_examples // 2,  # each is a commit
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(committed=Changes, staged=Changes, unstaged=Changes, fails=st.booleans())
def test_identity(
    tmp_path: Path,
    committed: list[tuple[str, str, object]],
    staged: list[tuple[str, str, object]],
    unstaged: list[tuple[str, str, object]],
    *,
    fails: bool,
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        repo = Repo.init(Path(folder) / "repo")
        command = "find . -type f -exec cat {} + > /dev/null; " + ("false" if fails else "true")
        arm(repo, command)
        apply(repo, committed)
        repo.git("add", "-A")
        repo.git("commit", "-qm", "base", "--allow-empty")
        apply(repo, staged)
        repo.git("add", "-A")
        apply(repo, unstaged)
        before = whole(repo)
        hook = ("git-hook", "none", "pre-commit")
        done = forked.run(hook, str(repo.path), dict(os.environ), b"", hosts=True)
        assert done.returncode == int(fails), done.stderr
        assert whole(repo) == before
        assert not (repo.path / ".git/gitgates/rescue").exists()
        assert repo.git("fsck", "--strict", "--no-dangling") == ""

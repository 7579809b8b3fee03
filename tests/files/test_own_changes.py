"""What an author has made of files, told from who changed what: by values, and with commits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import Repo
from files_support import repository
from span_support import Colleague

from gitgates.files import points as recorded
from gitgates.files.changes import Change, History, Stretch, Version, fold
from gitgates.files.points import SESSION, Author, points, points_since, record


def version(blob: str) -> Version | None:
    return Version(0o100644, blob) if blob else None


def stretch(is_own: bool, **changed: str) -> Stretch:  # noqa: FBT001 - a letter in the cases below
    """Return a stretch: path → blobs before and after, as `old>new`."""
    by_path = {}
    for path, text in changed.items():
        before, _, after = text.partition(">")
        by_path[path] = Change(version(before), version(after))
    return Stretch(1.0, is_own, by_path)


def folded(*stretches: Stretch) -> tuple[dict[str, str], set[str]]:
    by_path, away = fold(stretches)
    shown = {
        path: f"{change.before.blob if change.before else ''}>"
        f"{change.after.blob if change.after else ''}"
        for path, change in by_path.items()
    }
    return shown, away


OWN, THEIRS = True, False


@pytest.mark.parametrize(
    ("stretches", "own", "away"),
    [
        ([stretch(OWN, a="1>2"), stretch(THEIRS, a="2>3")], {"a": "1>2"}, set()),
        ([stretch(THEIRS, a="1>2"), stretch(OWN, a="2>3")], {"a": "2>3"}, set()),
        (
            [stretch(OWN, a="1>2"), stretch(THEIRS, a="2>3"), stretch(OWN, a="3>4")],
            {"a": "1>4"},
            set(),
        ),
        ([stretch(OWN, a="1>2"), stretch(THEIRS, a="2>1")], {}, set()),
        (
            [stretch(OWN, a=">2"), stretch(THEIRS, a="2>"), stretch(THEIRS, a=">2")],
            {"a": ">2"},
            set(),
        ),
        (
            [stretch(OWN, a=">2"), stretch(THEIRS, a="2>", b=">2"), stretch(OWN, b="2>3")],
            {"b": ">3"},
            set(),
        ),
        ([stretch(OWN, a="1>2"), stretch(OWN, a="2>1")], {"a": "1>2"}, {"a"}),
        ([stretch(OWN, a="1>"), stretch(OWN, a=">1")], {}, set()),
        (
            [stretch(OWN, a="1>2"), stretch(OWN, a="2>9")._replace(brought={"a"})],
            {"a": "1>2"},
            {"a"},
        ),
        ([stretch(OWN, a="1>2")._replace(brought={"a"})], {}, set()),
        ([stretch(OWN, a="1>2", b="1>2")._replace(older={"a"})], {"b": "1>2"}, set()),
    ],
)
def test_whose_a_change_is(stretches: list[Stretch], own: dict[str, str], away: set[str]) -> None:
    assert folded(*stretches) == (own, away)


@pytest.mark.slow
def test_a_commit_on_a_remote_is_somebody_elses_and_a_local_one_may_be_the_authors(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("a", "1\n")
    repo.commit_all("base")
    repo.add_origin()
    began_s, real = time.time() - 600, time.time
    agent, found = Author(SESSION, "s"), repository(repo)
    monkeypatch.setattr(recorded.time, "time", lambda: began_s)  # type: ignore[attr-defined]
    record(found, Author())
    monkeypatch.setattr(recorded.time, "time", real)  # type: ignore[attr-defined]
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Repo(tmp_path / "side")
    side.write("own", "1\n")
    minute_ago = {"GIT_COMMITTER_DATE": f"@{int(real()) - 60} +0000"}
    side.git("add", ".")
    side.git("commit", "-qm", "own", env=minute_ago)
    Colleague(repo, tmp_path / "colleague").push("theirs", "1\n")  # a minute ago, too
    record(found, Author())  # before the command that brings them
    repo.git("pull", "-q", "--ff-only", "origin", "main")
    record(found, agent)
    repo.git("merge", "-q", "--no-edit", "side")
    record(found, agent)
    assert points_since(found, began_s) == points(found)
    history = History(
        *(found, points(found), lambda point: point.author == agent), began_s=began_s, ignored=False
    )
    assert {*history.changes()} == {"own"}

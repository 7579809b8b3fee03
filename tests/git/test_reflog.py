"""Which moves of HEAD made a commit, and which belong to a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgates.core.agent_types import Point
from gitgates.git.authorship import (
    ReflogEntry,
    entries_since,
    last_switch,
    makes_commit,
    read_reflog,
)

MADE = (
    *("commit: x", "commit (initial): x", "commit (amend): x", "commit (merge): Merge 'main'"),
    *("commit (cherry-pick): x", "cherry-pick: x", 'revert: Revert "x"', "am: x"),
    *("rebase (pick): x", "rebase (reword): x", "rebase (squash): x", "rebase (fixup): x"),
    *("rebase (edit): x", "rebase (continue): x", "rebase -i (pick): x", "rebase (merge): x"),
    *("pull --rebase (pick): x", "pull --rebase origin main (pick): x"),
    *("merge other: Merge made by the 'ort' strategy.", "merge other: In-index merge"),
    *("pull: Merge made by the 'ort' strategy.", "pull -q origin main: Merge made by octopus."),
    *("commit: Fast-forward", "commit: fast-forward", "commit (amend): updating HEAD"),
    *("commit: checkout: moving from a to b", "commit: (finish)", "restack", ""),
)
MOVED = (
    *("checkout: moving from main to other", "reset: moving to HEAD~1", "clone: from /a"),
    *("merge other: Fast-forward", "pull: Fast-forward", "pull -q origin main: Fast-forward"),
    *("rebase (start): checkout main", "rebase (finish): returning to refs/heads/main"),
    *("rebase (abort): updating HEAD", "rebase -i (start): checkout main", "initial pull"),
    *("pull --rebase (start): checkout 1234", "pull --rebase (finish): refs/heads/a onto b"),
    *("rebase finished: returning to refs/heads/main", "rebase: fast-forward"),
    *("Branch: renamed refs/heads/a to refs/heads/b", "merge other: updating HEAD"),
)


@pytest.mark.parametrize("message", MADE)
def test_makes_a_commit(message: str) -> None:
    assert makes_commit(message)


@pytest.mark.parametrize("message", MOVED)
def test_goes_to_a_commit(message: str) -> None:
    assert not makes_commit(message)


def entries(*known: tuple[str, int]) -> tuple[ReflogEntry, ...]:
    return tuple(ReflogEntry(new, stamp, "commit: x") for new, stamp in known)


def news(found: tuple[ReflogEntry, ...]) -> str:
    return "".join(entry.new for entry in found)


def test_the_time_tells_what_belongs_to_a_session() -> None:
    log = entries(("a", 10), ("b", 20), ("c", 29), ("d", 30), ("e", 40))
    assert news(entries_since(log, Point("tree", "x", 30.5))) == "cde"
    assert news(entries_since(log, Point("tree", "x", 99.0))) == ""
    assert news(entries_since((), Point("tree", "x", 30.5))) == ""


def test_the_place_tells_it_where_times_are_made_up() -> None:
    log = entries(("a", 100), ("start", 100), ("b", 5), ("c", 5))
    assert news(entries_since(log, Point("tree", "start", 200.0))) == "bc"


def test_to_come_back_to_the_start_hides_nothing() -> None:
    log = entries(("start", 100), ("b", 200), ("start", 201), ("c", 202))
    assert news(entries_since(log, Point("tree", "start", 150.0))) == "bstartc"


def test_lines_that_are_no_moves_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/HEAD").write_bytes(
        b"0 1 A \xff B <a@b> 100 +0000\tcommit: \xc3\xa9 \xff\n"
        b"garbage\n\n"
        b"1 2 A <a@b> then +0000\tcommit: x\n"
        b"1 2 <> 101 +0000\n"
        b"2 3 A <a@b> 102 +0000\tcheckout: moving from a to b\n"
    )
    found = read_reflog(str(tmp_path))
    assert [(one.new, one.stamp) for one in found] == [("1", 100), ("2", 101), ("3", 102)]
    assert last_switch(found) == "3"
    assert read_reflog(str(tmp_path / "none")) == ()
